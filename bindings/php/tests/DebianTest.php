<?php

declare(strict_types=1);

namespace Talea\Tests;

use PHPUnit\Framework\TestCase;

/**
 * Follows the commands of docs/first-steps/php.md and contrib/php/README.md on a copy of this machine's Debian:
 * its own configuration of nginx, FPM and PHP, with nothing but what the documents lay in.
 *
 * @group processes
 */
final class DebianTest extends TestCase
{
    private const CHECKOUT = __DIR__ . '/../../..';

    protected function setUp(): void
    {
        if (posix_getuid() !== 0) {
            self::markTestSkipped('only root can make the copy of Debian');
        }
        foreach (['/etc/nginx/sites-enabled/default', '/usr/sbin/phpenmod'] as $file) {
            if (!file_exists($file)) {
                self::markTestSkipped("this is not Debian as scripts/setup --php leaves it: there is no $file");
            }
        }
        if (PHP_ZTS) {
            self::markTestSkipped("Debian's PHP has no threads");
        }
        if (!is_executable(getenv('TALEA_PROGRAM') ?: '')) {
            self::markTestSkipped('the agent is not built: cargo build --release -p talea-tools');
        }
    }

    public function testADebianThatFollowsTheDocumentsServesThePageAndItsMetrics(): void
    {
        [$before, $commands, $after] = $this->follow();
        // Without this the test would not see that Debian's own site stands in the way.
        self::assertStringContainsString('<h1>Welcome to nginx!</h1>', $before);
        self::assertStringContainsString("<h1>The shop: start</h1>\n", $commands);
        self::assertMatchesRegularExpression('/^shop_pages_total\{page="start"\} 1$/m', $commands);
        self::assertStringContainsString("<h1>The shop: basket</h1>\n", $after);
        self::assertMatchesRegularExpression('/^shop_pages_total\{page="basket"\} 1$/m', $after);
        self::assertStringEndsWith("/dev/shm/shop.talea www-data www-data 640\n", $after);
    }

    /**
     * The page before the commands, their output, and the page after them.
     *
     * @return string[]
     */
    private function follow(): array
    {
        $arguments = [self::CHECKOUT, dirname((string) getenv('TALEA_PROGRAM'))];
        $command = ['timeout', '300', __DIR__ . '/debian', ...$arguments];
        $process = proc_open($command, [1 => ['pipe', 'w'], 2 => ['redirect', 1]], $pipes);
        $output = stream_get_contents($pipes[1]);
        self::assertSame(0, proc_close($process), $output);
        $parts = preg_split('/^=== .*\n/m', $output);
        self::assertCount(4, $parts, $output);
        return array_slice($parts, 1);
    }
}
