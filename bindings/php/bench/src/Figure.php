<?php

declare(strict_types=1);

namespace Talea\Bench;

/** A figure over the rounds; without a median where it was never found in time. */
final class Figure
{
    public function __construct(
        public readonly string $unit,
        public readonly ?float $median,
        public readonly ?float $lowest,
        public readonly ?float $highest,
        public readonly ?float $longer_than,
    ) {
    }

    public function text(): string
    {
        if ($this->median === null) {
            return $this->longer_than === null ? '' : sprintf('> %s', self::number($this->longer_than));
        }
        $text = self::number($this->median);
        return $this->lowest === $this->highest
            ? $text
            : sprintf('%s (%s–%s)', $text, self::number($this->lowest), self::number($this->highest));
    }

    public static function number(float $number): string
    {
        $digits = match (true) {
            $number == round($number) => 0,
            abs($number) < 0.1 => 3,
            abs($number) < 10 => 2,
            abs($number) < 1_000 => 1,
            default => 0,
        };
        return number_format($number, $digits);
    }
}
