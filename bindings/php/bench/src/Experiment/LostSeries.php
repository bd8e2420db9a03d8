<?php

declare(strict_types=1);

namespace Talea\Bench\Experiment;

use Talea\Bench\Experiment;
use Talea\Bench\Size;
use Talea\Bench\Subject;

/** How many series are not there after processes have met new labels at once. */
final class LostSeries implements Experiment
{
    public function title(): string
    {
        return 'Series lost of those that processes make at once';
    }

    public function cases(Size $size): array
    {
        return [['workers' => 4, 'labels' => $size->of(200, 50)]];
    }

    public function takes(string $subject): bool
    {
        return Subject::isShared($subject);
    }

    public function figures(): array
    {
        return ['lost' => 'series'];
    }

    public function measure(string $subject, array $case, callable $says): void
    {
        $engine = Subject::engine($subject);
        $says(self::BEGUN, 0);
        $begin = microtime(true) + 0.05;
        $children = [];
        for ($worker = 0; $worker < $case['workers']; $worker++) {
            $child = pcntl_fork();
            if ($child === 0) {
                $engine->again();
                time_sleep_until($begin);
                for ($i = 0; $i < $case['labels']; $i++) {
                    $engine->update('counter', 'met', ["$worker-$i"]);
                }
                exit(0);
            }
            $children[] = $child;
        }
        foreach ($children as $child) {
            pcntl_waitpid($child, $status);
            if ($status !== 0) {
                throw new \RuntimeException("a worker ended with $status");
            }
        }
        $engine->again();
        $says('lost', $case['workers'] * $case['labels'] - $engine->seriesOf('met'));
    }
}
