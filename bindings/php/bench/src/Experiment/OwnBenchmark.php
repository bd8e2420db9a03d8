<?php

declare(strict_types=1);

namespace Talea\Bench\Experiment;

use Talea\Bench\AdapterEngine;
use Talea\Bench\Experiment;
use Talea\Bench\Library;
use Talea\Bench\Size;
use Talea\Bench\Subject;

/**
 * The benchmark of the library's README.APCng.md: through its registry, metrics without labels. It is
 * done a second time after a wipe.
 */
final class OwnBenchmark implements Experiment
{
    public function title(): string
    {
        return "The library's own benchmark, through its registry";
    }

    public function cases(Size $size): array
    {
        return array_map(fn (int $metrics) => compact('metrics'), $size->of([50, 500, 2_500], [50]));
    }

    public function takes(string $subject): bool
    {
        return Library::isThere() && $subject !== Subject::NATIVE;
    }

    public function figures(): array
    {
        return ['create' => 'ms', 'increment' => 'ms', 'wipe' => 'ms', 'create after a wipe' => 'ms'];
    }

    public function measure(string $subject, array $case, callable $says): void
    {
        $engine = Subject::engine($subject);
        $says(self::BEGUN, 0);
        assert($engine instanceof AdapterEngine);
        $update = fn () => $engine->updateByLibrary($case['metrics']);
        $does = ['create' => $update, 'increment' => $update, 'wipe' => $engine->wipe(...), 'create after a wipe' => $update];
        foreach ($does as $figure => $do) {
            $begun = hrtime(true);
            $do();
            $says($figure, (hrtime(true) - $begun) / 1e6);
        }
    }
}
