<?php

declare(strict_types=1);

namespace Talea\Bench;

/** The region of a measurement: a file of its own, by talea.region. */
final class Region
{
    /** Also what begins as its name does. */
    public static function remove(string $path): void
    {
        array_map('unlink', glob("$path*") ?: []);
    }

    /** The memory that the system has allocated for it. */
    public static function bytes(): int
    {
        clearstatcache();
        $files = glob(ini_get('talea.region') . '*') ?: [];
        return (int) array_sum(array_map(fn (string $file) => stat($file)['blocks'] * 512, $files));
    }
}
