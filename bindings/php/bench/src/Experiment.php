<?php

declare(strict_types=1);

namespace Talea\Bench;

interface Experiment
{
    /** Above its tables. */
    public function title(): string;

    /**
     * The cases, from the quickest to the longest.
     *
     * @return array<string, int|string>[]
     */
    public function cases(Size $size): array;

    /** Whether a subject takes part in a case. */
    public function takes(string $subject): bool;

    /**
     * The figures and their units.
     *
     * @return array<string, string> units by figures
     */
    public function figures(): array;

    /**
     * Reports figures as soon as they are known, and BEGUN when it is prepared: the time limit counts
     * from there.
     *
     * @param array<string, int|string> $case
     * @param callable(string, int|float|string): void $says
     */
    public function measure(string $subject, array $case, callable $says): void;

    public const BEGUN = 'begun';
}
