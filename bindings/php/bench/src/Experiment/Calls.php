<?php

declare(strict_types=1);

namespace Talea\Bench\Experiment;

use Talea\Bench\AdapterEngine;
use Talea\Bench\CallLoops;
use Talea\Bench\Engine;
use Talea\Bench\Experiment;
use Talea\Bench\Size;
use Talea\Bench\Subject;

/** What telling one series something takes, without the loop. */
final class Calls implements Experiment
{
    public function title(): string
    {
        return 'A call, one label, the same series';
    }

    public function cases(Size $size): array
    {
        $batches = $size->of(60, 5);
        return array_map(fn (string $kind) => ['kind' => $kind, 'batches' => $batches], Engine::KINDS);
    }

    public function takes(string $subject): bool
    {
        return true;
    }

    public function figures(): array
    {
        return ['call' => 'ns', 'through the library' => 'ns'];
    }

    public function measure(string $subject, array $case, callable $says): void
    {
        $engine = Subject::engine($subject);
        $says(self::BEGUN, 0);
        $kind = $case['kind'];
        $says('call', self::call($case['batches'], fn (int $calls) => $engine->timeCalls($kind, ['blue'], $calls)));
        if ($engine instanceof AdapterEngine && $engine->timeCallsOfLibrary($kind, ['blue'], 1) !== null) {
            $times = fn (int $calls) => $engine->timeCallsOfLibrary($kind, ['blue'], $calls);
            $says('through the library', self::call($case['batches'], $times));
        }
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
