<?php

declare(strict_types=1);

namespace Talea\Tests;

use PHPUnit\Framework\TestCase;
use Talea\Registry;

/** A test with a region of its own. */
abstract class RegionTestCase extends TestCase
{
    private static int $regions = 0;

    /** @var string[] */
    private array $paths = [];

    protected function path(): string
    {
        return $this->paths[] = sprintf('/dev/shm/talea-php-%d-%d', getmypid(), self::$regions++);
    }

    protected function registry(): Registry
    {
        return new Registry($this->path());
    }

    protected function tearDown(): void
    {
        foreach ($this->paths as $path) {
            // Where a region cannot be used, its siblings begin as it does.
            array_map('unlink', glob("$path*") ?: []);
        }
    }

    protected static function assertHasLine(string $line, string $page): void
    {
        self::assertContains($line, explode("\n", $page), $page);
    }

    /**
     * A label value whose text replaces the labels, and puts others where they were.
     *
     * @param mixed[] $labels
     */
    protected static function replacing(array &$labels): \Stringable
    {
        return new class ($labels) implements \Stringable {
            /** @var int[][] */
            public array $others;

            /** @param mixed[] $labels */
            public function __construct(private array &$labels)
            {
            }

            public function __toString(): string
            {
                $this->labels = [];
                $this->others = array_map(fn () => range(7, 9), range(1, 9));
                return 'second';
            }
        };
    }

    /** Does something in so many processes at once, each with its number; all must end well. */
    protected static function inProcesses(int $count, callable $do): void
    {
        $children = [];
        for ($number = 0; $number < $count; $number++) {
            $child = pcntl_fork();
            if ($child === 0) {
                $code = 1;
                try {
                    $do($number);
                    $code = 0;
                } catch (\Throwable $e) {
                    fwrite(STDERR, "$e\n");
                }
                // Not the way by which PHPUnit ends: it would report here too.
                posix_kill(getmypid(), $code === 0 ? SIGKILL : SIGABRT);
            }
            $children[] = $child;
        }
        foreach ($children as $child) {
            pcntl_waitpid($child, $status);
            self::assertSame(SIGKILL, pcntl_wtermsig($status));
        }
    }

    /**
     * The output of another PHP that runs some code.
     *
     * @param array<string, string> $ini
     * @param array<string, string> $environment
     * @param string[] $as the command that runs it
     */
    protected static function runPhp(
        string $code,
        array $ini,
        array $environment = [],
        int $ends = 0,
        array $as = []
    ): string {
        $command = [...$as, PHP_BINARY];
        foreach ($ini + ['extension' => (string) getenv('TALEA_PHP_EXTENSION')] as $name => $value) {
            array_push($command, '-d', "$name=$value");
        }
        $pipes = [1 => ['pipe', 'w'], 2 => ['redirect', 1]];
        $process = proc_open([...$command, '-r', $code], $pipes, $pipes, null, $environment);
        $output = (string) stream_get_contents($pipes[1]);
        self::assertSame($ends, proc_close($process), $output);
        return $output;
    }
}
