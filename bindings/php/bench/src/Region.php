<?php

declare(strict_types=1);

namespace Talea\Bench;

/** The region of a measurement: a file of its own, by talea.region. */
final class Region
{
    public static function path(): string
    {
        return sprintf('/dev/shm/talea-bench-php-%d', getmypid());
    }

    /** Also what begins as its name does. */
    public static function remove(string $path): void
    {
        array_map('unlink', glob("$path*") ?: []);
    }

    /** What the system keeps for it. */
    public static function bytes(): int
    {
        clearstatcache();
        return (int) array_sum(array_map(fn (string $file) => stat($file)['blocks'] * 512, self::files()));
    }

    /** @return string[] */
    private static function files(): array
    {
        return glob(ini_get('talea.region') . '*') ?: [];
    }
}
