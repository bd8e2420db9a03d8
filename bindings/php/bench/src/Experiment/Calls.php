<?php

declare(strict_types=1);

namespace Talea\Bench\Experiment;

use Talea\Bench\AdapterEngine;
use Talea\Bench\CallLoops;
use Talea\Bench\Engine;
use Talea\Bench\Experiment;
use Talea\Bench\Size;
use Talea\Bench\Subject;

/** The cost of recording a value in one series, and of getting its metric, without the loop. */
final class Calls implements Experiment
{
    /** The kind of the case in which a summary observes values over four decades. */
    private const SPREAD = 'summary, spread';

    public function title(): string
    {
        return 'A call, one label, the same series';
    }

    public function cases(Size $size): array
    {
        $batches = $size->of(60, 5);
        return array_map(fn (string $kind) => ['kind' => $kind, 'batches' => $batches], [...Engine::KINDS, self::SPREAD]);
    }

    public function takes(string $subject): bool
    {
        return true;
    }

    public function figures(): array
    {
        return ['call' => 'ns', 'through the library' => 'ns', 'getOrRegister' => 'ns', 'getOrRegister, first' => 'ns'];
    }

    public function measure(string $subject, array $case, callable $says): void
    {
        $engine = Subject::engine($subject);
        $says(self::BEGUN, 0);
        ['kind' => $kind, 'batches' => $batches] = $case;
        if ($kind === self::SPREAD) {
            $says('call', self::spread($batches, fn (array $observed) => $engine->timeObservations(['blue'], $observed)));
            return;
        }
        $says('call', self::call($batches, fn (int $calls) => $engine->timeCalls($kind, ['blue'], $calls)));
        if ($engine instanceof AdapterEngine && $engine->timeCallsOfLibrary($kind, ['blue'], 1) !== null) {
            $times = fn (int $calls) => $engine->timeCallsOfLibrary($kind, ['blue'], $calls);
            $says('through the library', self::call($batches, $times));
        }
        if ($engine->timeGets($kind, false, 1) !== null) {
            $says('getOrRegister', self::call($batches, fn (int $calls) => $engine->timeGets($kind, false, $calls)));
            $says('getOrRegister, first', self::call($batches, fn (int $calls) => $engine->timeGets($kind, true, $calls)));
        }
    }

    /**
     * The median over batches of values that are log-normal around 20 ms, with σ = 2: latencies
     * from 0.2 ms to 2 s, and some beyond. Most of a window's samples are in its slices then.
     *
     * @param callable(float[]): int $times
     */
    private static function spread(int $batches, callable $times): float
    {
        mt_srand(1);
        $uniform = fn () => (mt_rand() + 1) / (mt_getrandmax() + 2);
        $found = [];
        for ($batch = 0; $batch <= $batches; $batch++) {
            $observed = [];
            for ($i = 0; $i < 2_000; $i++) {
                $observed[] = 0.02 * exp(2 * sqrt(-2 * log($uniform())) * cos(2 * M_PI * $uniform()));
            }
            $found[] = ($times($observed) - CallLoops::ofValues($observed)) / count($observed);
        }
        // The first fills the window.
        array_shift($found);
        sort($found);
        return $found[intdiv($batches, 2)];
    }

    /**
     * The median over batches, without the loop.
     *
     * @param callable(int): int $times
     */
    private static function call(int $batches, callable $times): float
    {
        $calls = 2_000;
        $times($calls);
        $found = [];
        for ($batch = 0; $batch < $batches; $batch++) {
            $found[] = ($times($calls) - CallLoops::ofNothing($calls)) / $calls;
        }
        sort($found);
        return $found[intdiv($batches, 2)];
    }
}
