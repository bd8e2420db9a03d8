<?php

declare(strict_types=1);

namespace Talea\Tests;

use Talea\Registry;

/** @group processes */
final class ProcessesTest extends RegionTestCase
{
    public function testNothingIsLostThatSixteenProcessesCountInNewSeries(): void
    {
        $path = $this->path();
        self::inProcesses(16, function (int $number) use ($path): void {
            $registry = new Registry($path);
            $counter = $registry->registerCounter('', 'calls', 'Calls.', ['worker', 'call']);
            $shared = $registry->registerCounter('', 'shared', 'Shared.', ['call']);
            for ($i = 0; $i < 500; $i++) {
                $counter->inc([$number, $i]);
                $shared->inc([$i]);
            }
        });
        $families = (new Registry($path))->families();
        self::assertSame(['calls_total', 'shared_total'], array_column($families, 'name'));
        $values = fn (array $family) => array_map(fn ($one) => $one[1][0]['value'], $family['series']);
        self::assertEquals(array_fill(0, 8000, 1), $values($families[0]));
        self::assertEquals(array_fill(0, 500, 16), $values($families[1]));
    }

    public function testChildrenCountInTheMetricsOfTheirParent(): void
    {
        foreach ([$this->registry(), new Registry()] as $registry) {
            $counter = $registry->getOrRegisterCounter('', 'forked', 'Forked.', ['by']);
            $histogram = $registry->getOrRegisterHistogram('', 'took', 'Took.');
            $summary = $registry->getOrRegisterSummary('', 'lately', 'Lately.');
            $counter->inc(['parent']);
            self::inProcesses(4, function () use ($counter, $histogram, $summary, $registry): void {
                $counter->incBy(2, ['child']);
                $histogram->observe(1);
                $summary->observe(1);
                $registry->registerGauge('', 'late', 'Late.', ['a'])->inc(['b']);
                self::assertStringContainsString('forked_total{by="child"}', $registry->render());
            });
            $page = $registry->render();
            self::assertHasLine('forked_total{by="parent"} 1', $page);
            self::assertHasLine('forked_total{by="child"} 8', $page);
            self::assertHasLine('took_count 4', $page);
            self::assertHasLine('lately_count 4', $page);
            self::assertHasLine('late{a="b"} 4', $page);
        }
    }

    public function testAFamilyThatAnotherProcessEndedIsThereAgainAtOnce(): void
    {
        $registry = $this->registry();
        $kinds = ['labels' => ['a'], 'none' => []];
        $count = function () use ($registry, $kinds): void {
            foreach ($kinds as $name => $labels) {
                $registry->getOrRegisterCounter('', $name, 'Calls.', $labels)->inc($labels);
            }
        };
        $count();
        self::inProcesses(1, fn () => self::assertSame(2, $registry->unregister()));
        self::assertSame('', $registry->render());
        $count();
        self::assertHasLine('labels_total{a="a"} 1', $registry->render());
        self::assertHasLine('none_total 1', $registry->render());
    }

    public function testAPageHasTheSeriesOfTwoVersionsWithOtherLabelsAlsoAfterOneOfThemHasEnded(): void
    {
        $path = $this->path();
        $registry = new Registry($path);
        $calls = $registry->registerCounter('', 'calls', 'Calls.', ['a']);
        $calls->inc(['x']);
        $code = '$r = new Talea\Registry(); $r->registerCounter("", "calls", "Calls.", ["a", "b"])->inc(["x", "y"]);'
            . 'echo $r->render();';
        $page = self::runPhp($code, ['talea.region' => $path]);
        $notice = 'talea: the metric "calls_total" is in use with another definition too';
        self::assertStringContainsString($notice, $page);
        self::assertHasLine('calls_total{a="x",b="y"} 1', $page);
        self::assertHasLine('calls_total{a="x"} 1', $page);
        $calls->incBy(2, ['x']);
        foreach ([1, 2] as $count) {
            $page = $registry->render();
            self::assertHasLine('calls_total{a="x"} 3', $page);
            self::assertHasLine("calls_total{a=\"x\",b=\"y\"} $count", $page);
            self::runPhp($code, ['talea.region' => $path]);
        }
    }

    public function testNewSeriesBeyondTheLimitAreCountedTogetherAndThrowNothing(): void
    {
        $code = '$r = new Talea\Registry(); $c = $r->registerCounter("", "calls", "Calls.", ["id"]);'
            . 'for ($i = 0; $i < 100; $i++) { $c->inc([$i]); } echo $r->render();';
        $page = self::runPhp($code, ['talea.max_series' => '10']);
        self::assertHasLine('calls_total{otel_metric_overflow="true"} 90', $page);
        self::assertHasLine('talea_series_dropped_total{family="calls_total"} 90', $page);
    }

    public function testMoreCountersThanAFamilyMayHaveSeriesAreCollectedByTheirNames(): void
    {
        $code = self::loading() . '$s = new Talea\PromPhp\Storage(); foreach (["a", "b", "c", "d", "e"] as $name) {'
            . ' $s->updateCounter(["name" => $name, "help" => "Help.", "labelNames" => [], "labelValues" => [],'
            . ' "value" => 1, "command" => 1]); } echo implode(",", array_column($s->collect(), "name"));';
        self::assertSame('a,b,c,d,e', self::runPhp($code, ['talea.max_series' => '3']));
    }

    public function testAFullRegionThrowsNothing(): void
    {
        $registry = $this->registry();
        $long = str_repeat('x', 500_000);
        for ($i = 0; $i < 300; $i++) {
            $registry->registerGauge('', "full_$i", 'Full.', ['id'])->inc([$long . $i]);
            $registry->registerHistogram('', "more_$i", $long, ['id'])->observe(1, ['a']);
        }
        self::assertStringContainsString('otel_metric_overflow="true"', $registry->render());
    }

    public function testTheRegionIsThatOfIniElseThatOfTheEnvironment(): void
    {
        $path = $this->path();
        $other = $this->path();
        $code = '(new Talea\Registry())->registerCounter("", "calls", "Calls.")->inc();';
        self::runPhp($code, ['talea.region' => $path]);
        self::runPhp($code, ['talea.region' => $path], ['TALEA_REGION' => $other]);
        self::runPhp($code, [], ['TALEA_REGION' => $path]);
        self::assertFileDoesNotExist($other);
        self::assertHasLine('calls_total 3', (new Registry($path))->render());
    }

    public function testAPathBeyondOpenBasedirIsRefusedAndTheConfiguredOneIsNot(): void
    {
        $path = $this->path();
        $code = 'try { new Talea\Registry("/dev/shm/not-allowed"); } catch (Talea\Exception $e) {'
            . ' echo $e->getMessage(); } new Talea\Registry();';
        $output = self::runPhp($code, ['open_basedir' => '/nowhere', 'talea.region' => $path]);
        self::assertStringContainsString('open_basedir does not allow the region', $output);
        self::assertFileExists($path);
        self::assertFileDoesNotExist('/dev/shm/not-allowed');
    }

    public function testOptimizedCodeCountsTheSame(): void
    {
        $code = '$r = new Talea\Registry(); $c = $r->registerCounter("", "calls", "Calls.", ["id"]);'
            . 'for ($i = 0; $i < 200000; $i++) { $c->inc(["a"]); $c->incBy(1, [$i & 1]); } echo $r->render();';
        $ini = ['opcache.enable_cli' => '1', 'opcache.jit' => 'tracing', 'opcache.jit_buffer_size' => '16M'];
        $page = self::runPhp($code, $ini);
        self::assertHasLine('calls_total{id="a"} 200000', $page);
        self::assertHasLine('calls_total{id="0"} 100000', $page);
        self::assertHasLine('calls_total{id="1"} 100000', $page);
    }

    public function testPreloadedCodeCountsAndIsUsed(): void
    {
        $path = $this->path();
        $script = "$path.php";
        file_put_contents($script, '<?php ' . self::loading()
            . '(new Talea\Registry())->registerCounter("", "calls", "Calls.", ["by"])->inc(["preloading"]);');
        $code = '$s = new Talea\PromPhp\Storage(); $r = new Talea\Registry(); '
            . '$r->registerCounter("", "calls", "Calls.", ["by"])->inc(["a request"]); '
            . 'echo count($s->collect()), "\n", $r->render();';
        $output = self::runPhp($code, [
            'opcache.enable_cli' => '1',
            'opcache.preload' => $script,
            'opcache.preload_user' => posix_getpwuid(posix_getuid())['name'],
            'talea.region' => $path,
        ]);
        self::assertHasLine('1', $output);
        self::assertHasLine('calls_total{by="preloading"} 1', $output);
        self::assertHasLine('calls_total{by="a request"} 1', $output);
    }

    public function testAPageBeyondTheMemoryLimitEndsARequestAsUsual(): void
    {
        $code = 'register_shutdown_function(function () { echo "the end"; });'
            . '$r = new Talea\Registry(); $c = $r->registerCounter("", "calls", "Calls.", ["id"]);'
            . 'for ($i = 0; $i < %d; $i++) { $c->inc([str_repeat("x", 1000) . $i]); }'
            . 'ini_set("memory_limit", "4M"); $r->%s;';
        // More than the double, at which newer PHPs end the process.
        foreach (['render()', 'families()', 'eachFamily(fn () => null)'] as $way) {
            $output = self::runPhp(sprintf($code, 9500, $way), [], [], 255);
            self::assertStringContainsString('Allowed memory size', $output);
            self::assertStringContainsString('the end', $output);
        }
    }

    /** Code that loads the adapter and the library's classes. */
    private static function loading(): string
    {
        $files = preg_grep('~/(Prometheus|promphp)/~', get_included_files());
        return implode("\n", array_map(fn (string $file) => 'require ' . var_export($file, true) . ';', $files)) . "\n";
    }
}
