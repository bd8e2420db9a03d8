<?php

declare(strict_types=1);

namespace Talea\Bench;

/** Tables for people, and the file of results. */
final class Report
{
    /** @param Subject[] $subjects */
    public function __construct(
        private readonly Size $size,
        private readonly array $subjects,
        private readonly Figures $figures,
    ) {
    }

    public function tables(): void
    {
        foreach (Experiments::all() as $name => $experiment) {
            if (($this->size->only ?? $name) !== $name) {
                continue;
            }
            echo "\n# {$experiment->title()}\n";
            foreach ($experiment->figures() as $figure => $unit) {
                $this->table($name, $experiment, $figure, $unit);
            }
        }
    }

    private function table(string $name, Experiment $experiment, string $figure, string $unit): void
    {
        $cases = $experiment->cases($this->size);
        $finds = fn (array $case, Subject $subject) => $this->figures->find($name, $case, $figure, $subject->name);
        $has_any = fn (Subject $subject) => array_filter($cases, fn (array $case) => $finds($case, $subject) !== null) !== [];
        $subjects = array_values(array_filter($this->subjects, $has_any));
        if ($subjects === []) {
            return;
        }
        $keys = array_keys($cases[0]);
        $rows = [[...$keys, ...array_map(fn (Subject $subject) => $subject->name, $subjects)]];
        foreach ($cases as $case) {
            $shown = array_map(fn (int|string $what) => is_int($what) ? number_format($what) : $what, array_values($case));
            $rows[] = [...$shown, ...array_map(fn (Subject $subject) => $finds($case, $subject)?->text() ?? '', $subjects)];
        }
        echo "\n$figure, $unit\n\n", self::aligned($rows);
    }

    /** @param mixed[][] $budgets */
    public function budgets(array $budgets): void
    {
        $rows = [['budget', 'found', 'limit', '', '']];
        foreach ($budgets as $budget) {
            $rows[] = [
                $budget['budget'],
                $budget['found'] === null ? '' : Figure::number($budget['found']),
                Figure::number($budget['limit']),
                match ($budget['met']) {
                    true => 'met',
                    false => 'missed',
                    null => 'not known',
                },
                $budget['of'],
            ];
        }
        echo "\n# Budgets\n\n", self::aligned($rows);
    }

    /** @param mixed[][] $budgets */
    public function write(string $path, array $budgets, int $rounds, float $others): void
    {
        $lines = fn (array $rows) => implode(",\n", array_map(fn (array $row) => json_encode($row, JSON_UNESCAPED_SLASHES), $rows));
        $about = json_encode([
            'php' => PHP_VERSION,
            'apcu' => phpversion('apcu'),
            'rounds' => $rounds,
            'others' => $others,
        ]);
        $text = "{\n\"about\": $about,\n\"rows\": [\n{$lines($this->figures->rows())}\n],\n\"budgets\": [\n{$lines($budgets)}\n]\n}\n";
        if (file_put_contents($path, $text) === false) {
            throw new \RuntimeException("could not write $path");
        }
    }

    /** In characters. */
    private static function length(string $text): int
    {
        return preg_match_all('/./u', $text);
    }

    /** @param string[][] $rows */
    private static function aligned(array $rows): string
    {
        $widths = [];
        foreach ($rows as $row) {
            foreach ($row as $column => $cell) {
                $widths[$column] = max($widths[$column] ?? 0, self::length($cell));
            }
        }
        $text = '';
        foreach ($rows as $row) {
            $cells = [];
            foreach ($row as $column => $cell) {
                $padding = str_repeat(' ', $widths[$column] - self::length($cell));
                $cells[] = is_numeric(strtok($cell, ' (–') ?: 'x') || str_starts_with($cell, '> ') ? $padding . $cell : $cell . $padding;
            }
            $text .= rtrim('  ' . implode('  ', $cells)) . "\n";
        }
        return $text;
    }
}
