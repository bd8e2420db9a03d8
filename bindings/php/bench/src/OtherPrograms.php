<?php

declare(strict_types=1);

namespace Talea\Bench;

/** How much of the cores' time other programs have had since it was made. */
final class OtherPrograms
{
    private const TICK = 0.01;

    private float $busy;
    private float $own;
    private int $begun;

    public function __construct()
    {
        [$this->busy, $this->own, $this->begun] = [self::busy(), self::own(), hrtime(true)];
    }

    public function share(): float
    {
        $time = (hrtime(true) - $this->begun) / 1e9 * self::cores();
        $others = self::busy() - $this->busy - (self::own() - $this->own);
        // The kernel counts in ticks: of a short time it knows nothing.
        return $time < 20 * self::TICK ? 0.0 : max(0.0, $others / $time);
    }

    /** Seconds in which any core was busy. */
    private static function busy(): float
    {
        [$all] = explode("\n", (string) file_get_contents('/proc/stat'));
        $ticks = array_map('intval', array_slice(preg_split('/\s+/', $all), 1));
        // Those of user, nice, system, irq, softirq and steal; not those of idle and iowait.
        return ($ticks[0] + $ticks[1] + $ticks[2] + $ticks[5] + $ticks[6] + $ticks[7]) * self::TICK;
    }

    /** Seconds that this process took, and the children that it has waited for. */
    private static function own(): float
    {
        $seconds = 0.0;
        foreach ([0, 1] as $who) {
            $usage = getrusage($who);
            $seconds += $usage['ru_utime.tv_sec'] + $usage['ru_utime.tv_usec'] / 1e6
                + $usage['ru_stime.tv_sec'] + $usage['ru_stime.tv_usec'] / 1e6;
        }
        return $seconds;
    }

    private static function cores(): int
    {
        return max(1, preg_match_all('/^cpu\d/m', (string) file_get_contents('/proc/stat')));
    }
}
