<?php

declare(strict_types=1);

namespace Talea\Bench;

/** In each round each subject is measured once in each case, in an order that rotates. */
final class Rounds
{
    /** Seconds. A longer measurement, with its preparation, is made in the first round only. */
    private const LONG = 4.0;

    /** @var array<string, true> what took too long */
    private array $late = [];
    /** @var array<string, true> what is not measured again */
    private array $once = [];
    /** @var array<string, string> */
    private array $failures = [];
    private float $begun;
    /** Seconds that the next round will take. */
    private float $next = 0.0;

    /** @param Subject[] $subjects */
    public function __construct(
        private readonly Size $size,
        private readonly array $subjects,
        private readonly Figures $figures,
    ) {
        $this->begun = microtime(true);
    }

    /** Answers how many rounds were completed; 0: there was no time even for one. */
    public function run(): int
    {
        for ($round = 0; $round < $this->size->rounds; $round++) {
            // A round that would not come to its end would count in some cases alone.
            if ($this->elapsed() + $this->next > $this->size->time) {
                return $round;
            }
            [$begun, $this->next] = [$this->elapsed(), 0.0];
            if (!$this->round($round)) {
                return $round;
            }
            fprintf(STDERR, "round %d of at most %d: %.0f s\n", $round + 1, $this->size->rounds, $this->elapsed() - $begun);
        }
        return $round;
    }

    private function round(int $round): bool
    {
        foreach (Experiments::all() as $name => $experiment) {
            if (($this->size->only ?? $name) !== $name) {
                continue;
            }
            foreach ($experiment->cases($this->size) as $case) {
                $first = $round % count($this->subjects);
                $order = [...array_slice($this->subjects, $first), ...array_slice($this->subjects, 0, $first)];
                foreach ($order as $subject) {
                    if (
                        !$experiment->takes($subject->name) || $this->isLate($name, $subject, $case)
                        || isset($this->once[self::key($name, $subject, $case)])
                    ) {
                        continue;
                    }
                    if ($this->elapsed() > $this->size->time) {
                        return false;
                    }
                    $this->measure($name, $experiment, $subject, $case);
                }
            }
        }
        return true;
    }

    /** @param array<string, int|string> $case */
    private function measure(string $name, Experiment $experiment, Subject $subject, array $case): void
    {
        $begun = $this->elapsed();
        try {
            $taken = Measurement::take($name, $subject, $case, $this->size->limit);
            $this->put($name, $experiment, $subject, $case, $taken['figures'], $taken['is_late']);
        } catch (\RuntimeException $failure) {
            $this->failures[self::key($name, $subject, $case)] = $failure->getMessage();
        }
        $took = $this->elapsed() - $begun;
        if ($took > self::LONG) {
            $this->once[self::key($name, $subject, $case)] = true;
        } else {
            $this->next += $took;
        }
    }

    /**
     * @param array<string, int|string> $case
     * @param array<string, float> $found
     */
    private function put(string $name, Experiment $experiment, Subject $subject, array $case, array $found, bool $is_late): void
    {
        foreach ($experiment->figures() as $figure => $unit) {
            if (isset($found[$figure])) {
                $this->figures->add($name, $case, $figure, $subject->name, $unit, $found[$figure]);
            } elseif ($is_late && isset($found[Experiment::BEGUN])) {
                $this->figures->addLate($name, $case, $figure, $subject->name, $unit, $this->size->limit * 1e3);
                // Later figures were not begun.
                break;
            }
        }
        if ($is_late) {
            $this->late[self::key($name, $subject, $case)] = true;
        }
    }

    /**
     * Failures, once for each case.
     *
     * @return array<string, string> why, by experiment, subject and case
     */
    public function failures(): array
    {
        return $this->failures;
    }

    /**
     * Whether it took too long in this case, or in one that has no more of anything.
     *
     * @param array<string, int|string> $case
     */
    private function isLate(string $name, Subject $subject, array $case): bool
    {
        foreach (array_keys($this->late) as $key) {
            [$experiment, $of, $late] = json_decode($key, true);
            $is_less = fn (string $what) => is_int($late[$what]) ? $late[$what] <= $case[$what] : $late[$what] === $case[$what];
            if ($experiment === $name && $of === $subject->name && array_filter(array_keys($late), $is_less) === array_keys($late)) {
                return true;
            }
        }
        return false;
    }

    /** @param array<string, int|string> $case */
    private static function key(string $name, Subject $subject, array $case): string
    {
        return json_encode([$name, $subject->name, $case], JSON_THROW_ON_ERROR);
    }

    private function elapsed(): float
    {
        return microtime(true) - $this->begun;
    }
}
