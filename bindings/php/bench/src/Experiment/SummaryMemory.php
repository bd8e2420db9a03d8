<?php

declare(strict_types=1);

namespace Talea\Bench\Experiment;

use Talea\Bench\Experiment;
use Talea\Bench\Size;
use Talea\Bench\Subject;

/** Shared memory that a summary takes, and its growth with further observations. */
final class SummaryMemory implements Experiment
{
    public function title(): string
    {
        return 'Shared memory of summaries';
    }

    public function cases(Size $size): array
    {
        return [['observations' => $size->of(100_000, 5_000), 'series' => $size->of(200, 50)]];
    }

    public function takes(string $subject): bool
    {
        return true;
    }

    public function figures(): array
    {
        return ['grown by observations' => 'kB', 'a series' => 'kB'];
    }

    public function measure(string $subject, array $case, callable $says): void
    {
        $engine = Subject::engine($subject);
        $says(self::BEGUN, 0);
        $observations = $case['observations'];
        $engine->update('summary', 'took', ['blue'], 1.0);
        $before = $engine->bytes();
        for ($i = 0; $i < $observations; $i++) {
            // All that there is from 10 µs to 10 s, not in order.
            $engine->update('summary', 'took', ['blue'], 10 ** ($i * 7919 % 6_000 / 1_000 - 5));
        }
        $says('grown by observations', ($engine->bytes() - $before) / 1e3);
        // Many at once: a region grows in steps.
        $before = $engine->bytes();
        for ($i = 0; $i < $case['series']; $i++) {
            for ($j = 0; $j < 300; $j++) {
                $engine->update('summary', 'took', ["series $i"], 10 ** ($j * 0.02 - 5));
            }
        }
        $says('a series', ($engine->bytes() - $before) / $case['series'] / 1e3);
    }
}
