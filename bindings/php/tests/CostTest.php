<?php

declare(strict_types=1);

namespace Talea\Tests;

use PHPUnit\Framework\TestCase;

/**
 * The cost of the adapter in instructions, which do not depend on the machine's load.
 *
 * @group processes
 */
final class CostTest extends TestCase
{
    private const METRICS = 100;

    private string $folder;

    protected function setUp(): void
    {
        exec('command -v valgrind', $found, $code);
        if ($code !== 0) {
            self::markTestSkipped('valgrind is not installed');
        }
        $this->folder = sprintf('%s/talea-cost-%d', sys_get_temp_dir(), getmypid());
        mkdir($this->folder);
    }

    protected function tearDown(): void
    {
        array_map('unlink', glob("$this->folder/*") ?: []);
        rmdir($this->folder);
    }

    public function testToCreateMetricsAgainAfterAWipeCostsLittleMoreThanTheFirstTime(): void
    {
        $first = $this->instructions('create') - $this->instructions('');
        $again = $this->instructions('create wipe create') - $this->instructions('create wipe');
        // 1.3 in a release build. To look at all series for each family, it is 2, and more with more metrics.
        self::assertLessThan(1.7 * $first, $again);
    }

    /** How many instructions a process takes that does these things with a storage. */
    private function instructions(string $what): int
    {
        $report = "$this->folder/callgrind";
        exec(implode(' ', array_map('escapeshellarg', [
            'valgrind', '--tool=callgrind', "--callgrind-out-file=$report", '--log-file=/dev/null', PHP_BINARY, '-n',
            '-d', 'extension=' . getenv('TALEA_PHP_EXTENSION'), '-d', 'opcache.enable_cli=0',
            __DIR__ . '/cost.php', (string) self::METRICS, ...preg_split('/ /', $what, -1, PREG_SPLIT_NO_EMPTY),
        ])) . ' 2>&1', $output, $code);
        self::assertSame(0, $code, implode("\n", $output));
        self::assertSame(1, preg_match('/^(?:summary|totals): (\d+)$/m', (string) file_get_contents($report), $found));
        return (int) $found[1];
    }
}
