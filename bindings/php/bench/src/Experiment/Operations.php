<?php

declare(strict_types=1);

namespace Talea\Bench\Experiment;

use Talea\Bench\Engine;
use Talea\Bench\Experiment;
use Talea\Bench\Size;
use Talea\Bench\Subject;

/** The experiment of the library's APCng: many metrics, beside many keys of others in APCu. */
final class Operations implements Experiment
{
    /** Beyond it something is done once and not again. */
    private const LONG = 300_000_000;

    public function title(): string
    {
        return 'Metrics of each type, beside keys of others in APCu';
    }

    public function cases(Size $size): array
    {
        $cases = [];
        foreach ($size->of([0, 1_000, 10_000, 100_000, 1_000_000], [0, 1_000]) as $foreign) {
            foreach ($size->of([50, 500, 2_500], [50]) as $metrics) {
                $cases[] = ['foreign' => $foreign, 'metrics' => $metrics];
            }
        }
        return $cases;
    }

    public function takes(string $subject): bool
    {
        return true;
    }

    public function figures(): array
    {
        return ['create' => 'ms', 'increment' => 'ms', 'collect' => 'ms', 'page' => 'ms', 'wipe' => 'ms'];
    }

    public function measure(string $subject, array $case, callable $says): void
    {
        self::storeForeign($case['foreign']);
        $engine = Subject::engine($subject);
        $says(self::BEGUN, 0);
        $update = function () use ($engine, $case): void {
            for ($i = 0; $i < $case['metrics']; $i++) {
                foreach (Engine::KINDS as $kind) {
                    $engine->update($kind, "{$kind}_$i", ['blue']);
                }
            }
        };
        $says('create', self::milliseconds($update));
        $engine->again();
        $says('increment', self::milliseconds($update));
        $engine->again();
        foreach (['collect', 'page'] as $figure) {
            $time = self::repeated(fn () => $engine->$figure());
            if ($time !== null) {
                $says($figure, $time);
            }
        }
        $says('wipe', self::milliseconds(fn () => $engine->wipe()));
    }

    private static function storeForeign(int $count): void
    {
        $chunk = 10_000;
        for ($from = 0; $from < $count; $from += $chunk) {
            $keys = [];
            for ($i = $from; $i < min($from + $chunk, $count); $i++) {
                $keys["foreign:$i"] = $i;
            }
            if (apcu_store($keys) !== []) {
                throw new \RuntimeException('APCu does not keep what is stored; its memory is too small');
            }
        }
        if ($count > 0 && !apcu_exists('foreign:0')) {
            throw new \RuntimeException('APCu did not keep the first key; its memory is too small');
        }
    }

    private static function milliseconds(callable $do): float
    {
        $begun = hrtime(true);
        $do();
        return (hrtime(true) - $begun) / 1e6;
    }

    /**
     * The median of a few, after one that finds its memory for the first time: as a worker scrapes
     * that has scraped before. Null where nothing is made.
     *
     * @param callable(): mixed $make
     */
    private static function repeated(callable $make): ?float
    {
        $begun = hrtime(true);
        if ($make() === null) {
            return null;
        }
        $found = [(hrtime(true) - $begun) / 1e6];
        while (count($found) < 6 && hrtime(true) - $begun < self::LONG) {
            $found[] = self::milliseconds($make);
        }
        $counted = count($found) > 1 ? array_slice($found, 1) : $found;
        sort($counted);
        return $counted[intdiv(count($counted), 2)];
    }
}
