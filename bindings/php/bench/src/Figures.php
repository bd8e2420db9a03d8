<?php

declare(strict_types=1);

namespace Talea\Bench;

/** The results over all rounds. */
final class Figures
{
    /** @var array<string, array{experiment: string, case: array<string, int|string>, figure: string, subject: string, unit: string, found: float[], beyond: ?float}> */
    private array $rows = [];

    /** @param array<string, int|string> $case */
    public function add(string $experiment, array $case, string $figure, string $subject, string $unit, float $value): void
    {
        $this->row($experiment, $case, $figure, $subject, $unit)['found'][] = $value;
    }

    /** @param array<string, int|string> $case */
    public function addLate(string $experiment, array $case, string $figure, string $subject, string $unit, float $limit): void
    {
        $this->row($experiment, $case, $figure, $subject, $unit)['beyond'] = $limit;
    }

    /**
     * @param array<string, int|string> $case those of its keys that matter
     */
    public function find(string $experiment, array $case, string $figure, string $subject): ?Figure
    {
        foreach ($this->rows as $row) {
            if (
                $row['experiment'] === $experiment && $row['figure'] === $figure && $row['subject'] === $subject
                && array_intersect_assoc($case, $row['case']) === $case
            ) {
                return self::figure($row);
            }
        }
        return null;
    }

    /** @return mixed[][] as the file of results has them */
    public function rows(): array
    {
        return array_values(array_map(function (array $row): array {
            $figure = self::figure($row);
            return ['experiment' => $row['experiment']] + $row['case'] + [
                'subject' => $row['subject'],
                'figure' => $row['figure'],
                'unit' => $row['unit'],
                'rounds' => count($row['found']),
                'median' => $figure->median,
                'lowest' => $figure->lowest,
                'highest' => $figure->highest,
                'longer_than_ms' => $row['beyond'],
            ];
        }, $this->rows));
    }

    /**
     * @param array<string, int|string> $case
     * @return mixed[]
     */
    private function &row(string $experiment, array $case, string $figure, string $subject, string $unit): array
    {
        $key = implode('|', [$experiment, json_encode($case), $figure, $subject]);
        $this->rows[$key] ??= compact('experiment', 'case', 'figure', 'subject', 'unit') + ['found' => [], 'beyond' => null];
        return $this->rows[$key];
    }

    /** @param mixed[] $row */
    private static function figure(array $row): Figure
    {
        $found = $row['found'];
        return new Figure(
            $row['unit'],
            self::median($found),
            $found === [] ? null : min($found),
            $found === [] ? null : max($found),
            $row['beyond'],
        );
    }

    /** @param float[] $values */
    private static function median(array $values): ?float
    {
        sort($values);
        $middle = intdiv(count($values), 2);
        return match (true) {
            $values === [] => null,
            count($values) % 2 === 1 => $values[$middle],
            default => ($values[$middle - 1] + $values[$middle]) / 2,
        };
    }
}
