<?php

declare(strict_types=1);

namespace Talea\Bench;

/** All experiments, in the order in which they are done: the longest is last. */
final class Experiments
{
    /** @return Experiment[] by their names */
    public static function all(): array
    {
        return [
            'calls' => new Experiment\Calls(),
            'summary' => new Experiment\SummaryMemory(),
            'page' => new Experiment\PageMemory(),
            'lost' => new Experiment\LostSeries(),
            'own' => new Experiment\OwnBenchmark(),
            'operations' => new Experiment\Operations(),
        ];
    }

    public static function named(string $name): Experiment
    {
        return self::all()[$name];
    }
}
