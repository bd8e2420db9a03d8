<?php

declare(strict_types=1);

namespace Talea\Tests;

use PHPUnit\Framework\TestCase;

/** The benchmark, as quickly as it can be run. @group processes */
final class BenchTest extends TestCase
{
    private string $library;

    protected function setUp(): void
    {
        if (!extension_loaded('apcu')) {
            self::markTestSkipped('the benchmark needs the extension apcu');
        }
        $this->library = sprintf('%s/talea-library-%d', sys_get_temp_dir(), getmypid());
    }

    protected function tearDown(): void
    {
        foreach (['src/Prometheus/Storage', 'src/Prometheus', 'src', ''] as $folder) {
            array_map('unlink', glob("$this->library/$folder/*.php") ?: []);
            is_dir("$this->library/$folder") && rmdir("$this->library/$folder");
        }
    }

    public function testTaleaAloneIsMeasuredAndTheReportSaysHowToHaveTheLibrary(): void
    {
        $report = self::reportOf([]);
        self::assertMatchesRegularExpression('/^  counter +5 +[\d.,]+ +[\d.,]+$/m', $report);
        self::assertMatchesRegularExpression('/^  foreign +metrics +talea +talea-adapter$/m', $report);
        self::assertMatchesRegularExpression('/^  series lost +0 +0 +met/m', $report);
        self::assertMatchesRegularExpression('/^  memory of PHP beyond the page, MB +[\d.,]+ +1 +met/m', $report);
        self::assertMatchesRegularExpression('/^  summary, spread +5 +[\d.,]+ +[\d.,]+$/m', $report);
        self::assertMatchesRegularExpression('/^  an observation of a summary, spread values, ns +[\d.,]+ +300 /m', $report);
        self::assertMatchesRegularExpression('/^getOrRegister, first, ns\n\n  kind +batches +talea\n  counter +5 +[\d.,]+$/m', $report);
        self::assertStringContainsString('PROMPHP=FOLDER', $report);
        self::assertStringContainsString('1 whole rounds', $report);
    }

    public function testAnEngineOfTheLibraryIsMeasuredTunedAndUntuned(): void
    {
        $this->putLibrary();
        $report = self::reportOf(['PROMPHP' => $this->library, 'PROMPHP_ENGINES' => 'PlainApcu']);
        self::assertMatchesRegularExpression('/^  kind +batches +talea +talea-adapter +PlainApcu +PlainApcu-tuned$/m', $report);
        self::assertMatchesRegularExpression('/^  render\(\) to their page +[\d.,]+ +0\.020 .*measured, PlainApcu-tuned$/m', $report);
        self::assertMatchesRegularExpression('/^  updateCounter\(\) to theirs +[\d.,]+ +0\.35 .*measured, PlainApcu-tuned$/m', $report);
        self::assertMatchesRegularExpression('/^  workers +labels +talea +talea-adapter +PlainApcu +PlainApcu-tuned\n +4 +50 +0 +0 +0 +0$/m', $report);
        self::assertStringContainsString('through the library', $report);
        $own = '/^create after a wipe, ms\n\n  metrics +talea-adapter +PlainApcu +PlainApcu-tuned\n +50 +[\d.,]+ +[\d.,]+ +[\d.,]+$/m';
        self::assertMatchesRegularExpression($own, $report);
        foreach (['create', 'increment'] as $figure) {
            self::assertMatchesRegularExpression("/^  $figure to theirs, in their benchmark +[\\d.,]+ +0\\.70 .*PlainApcu-tuned$/m", $report);
        }
        self::assertStringNotContainsString('PROMPHP=FOLDER', $report);
    }

    public function testAMeasurementThatTakesTooLongIsEndedAndReported(): void
    {
        $this->putLibrary();
        $slow = "<?php namespace Prometheus\\Storage; final class Slow implements Adapter {
            public function collect(): array { sleep(60); return []; }
            public function updateCounter(array \$data): void {}
            public function updateGauge(array \$data): void {}
            public function updateHistogram(array \$data): void {}
            public function updateSummary(array \$data): void {}
            public function wipeStorage(): void {}
        }";
        file_put_contents("$this->library/src/Prometheus/Storage/Slow.php", $slow);
        $report = self::reportOf(
            ['PROMPHP' => $this->library, 'PROMPHP_ENGINES' => 'Slow', 'LIMIT' => '0.3', 'ONLY' => 'operations'],
        );
        self::assertMatchesRegularExpression('/^collect, ms\n\n.*\n +0 +50 +[\d.,]+ +> 300 +> 300$/m', $report);
    }

    public function testAFailureOfAnEngineOfTheLibraryIsReportedAndTheOthersAreMeasured(): void
    {
        $this->putLibrary();
        file_put_contents("$this->library/src/Prometheus/Storage/Bad.php", '<?php throw new Exception("It cannot.");');
        $report = self::reportOf(['PROMPHP' => $this->library, 'PROMPHP_ENGINES' => 'Bad', 'ONLY' => 'lost']);
        self::assertMatchesRegularExpression('/^Failed: \["lost","Bad",.*It cannot/m', $report);
        self::assertMatchesRegularExpression('/^  series lost through the adapter +0 +0 +met/m', $report);
    }

    public function testAFolderThatHasNoLibraryIsRefused(): void
    {
        self::assertStringContainsString('neither vendor/autoload.php nor src/Prometheus', self::reportOf(['PROMPHP' => '/usr'], 255));
    }

    /** A stand-in for the library, in the library's folders. */
    private function putLibrary(): void
    {
        mkdir("$this->library/src/Prometheus/Storage", recursive: true);
        foreach (['Prometheus', 'Library'] as $from) {
            foreach (['', 'Storage/'] as $folder) {
                foreach (glob(__DIR__ . "/$from/$folder*.php") as $file) {
                    copy($file, "$this->library/src/Prometheus/$folder" . basename($file));
                }
            }
        }
    }

    /** @param array<string, string> $variables */
    private static function reportOf(array $variables, int $code = 0): string
    {
        $extension = (string) getenv('TALEA_PHP_EXTENSION');
        $command = ['timeout', '60', PHP_BINARY, '-d', "extension=$extension", dirname(__DIR__) . '/bench/run.php'];
        $environment = $variables + ['QUICK' => '1', 'PATH' => (string) getenv('PATH'), 'TALEA_PHP_EXTENSION' => $extension];
        $process = proc_open($command, [1 => ['pipe', 'w'], 2 => ['redirect', 1]], $pipes, null, $environment);
        $report = stream_get_contents($pipes[1]);
        self::assertSame($code, proc_close($process), $report);
        return $report;
    }
}
