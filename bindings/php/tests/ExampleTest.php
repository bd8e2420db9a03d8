<?php

declare(strict_types=1);

namespace Talea\Tests;

use PHPUnit\Framework\TestCase;

/**
 * The files of contrib/php that FpmTest does not run: the programs that read them accept them.
 *
 * @group processes
 */
final class ExampleTest extends TestCase
{
    private const CONTRIB = __DIR__ . '/../../../contrib';

    private string $folder;

    protected function setUp(): void
    {
        $this->folder = sprintf('%s/talea-example-%d', sys_get_temp_dir(), getmypid());
        mkdir("$this->folder/talea-agent.service.d", 0700, true);
    }

    protected function tearDown(): void
    {
        exec('rm -r ' . escapeshellarg($this->folder));
    }

    public function testSystemdAcceptsTheAgentsUnitAndItsChanges(): void
    {
        self::assertSame('', $this->complaints('', ''));
        self::assertStringContainsString("Unknown key 'Groups'", $this->complaints('SupplementaryGroups', 'Groups'));
    }

    public function testPrometheusTakesItsConfiguration(): void
    {
        self::skipWithout('promtool');
        exec('promtool check config ' . self::CONTRIB . '/php/prometheus.yml 2>&1', $output, $code);
        self::assertSame(0, $code, implode("\n", $output));
    }

    /** The complaints of systemd about the unit, with a change to what is changed of it. */
    private function complaints(string $from, string $to): string
    {
        self::skipWithout('systemd-analyze');
        // Talea is not installed there, and what is not executable is a complaint.
        $place = fn (string $file, string $from, string $to) => str_replace(
            ['/usr/local/bin/talea ', $from],
            ['/bin/true ', $to],
            (string) file_get_contents(self::CONTRIB . "/$file")
        );
        $unit = "$this->folder/talea-agent.service";
        file_put_contents($unit, $place('agent/talea-agent.service', '', ''));
        file_put_contents("$unit.d/shop.conf", $place('php/talea-agent.conf', $from, $to));
        exec('systemd-analyze verify --man=no ' . escapeshellarg($unit) . ' 2>&1', $output, $code);
        self::assertSame(0, $code, implode("\n", $output));
        return implode("\n", $output);
    }

    private static function skipWithout(string $program): void
    {
        exec("command -v $program", $found, $code);
        if ($code !== 0) {
            self::markTestSkipped("$program is not installed");
        }
    }
}
