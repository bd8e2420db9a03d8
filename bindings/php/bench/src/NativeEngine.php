<?php

declare(strict_types=1);

namespace Talea\Bench;

use Talea\Registry;

/** The extension's own classes. */
final class NativeEngine implements Engine
{
    private Registry $registry;

    public function __construct()
    {
        $this->registry = new Registry();
    }

    public function again(): void
    {
        $this->registry = new Registry();
    }

    public function tell(string $kind, string $name, array $values, float $value = 1.5): void
    {
        match ($kind) {
            'counter' => $this->registry->getOrRegisterCounter('test', $name, 'it increases', ['type'])->inc($values),
            'gauge' => $this->registry->getOrRegisterGauge('test', $name, 'it increases', ['type'])->inc($values),
            'histogram' => $this->registry->getOrRegisterHistogram('test', $name, 'it increases', ['type'], self::BUCKETS)
                ->observe($value, $values),
            'summary' => $this->registry
                ->getOrRegisterSummary('test', $name, 'it increases', ['type'], self::WINDOW, self::QUANTILES)
                ->observe($value, $values),
        };
    }

    public function collect(): ?array
    {
        return null;
    }

    public function page(): string
    {
        return $this->registry->render();
    }

    public function seriesOf(string $counter): int
    {
        $families = array_column($this->registry->families(), 'series', 'name');
        return count($families["test_{$counter}_total"] ?? []);
    }

    public function wipe(): void
    {
        $this->registry->wipe();
    }

    public function timeCalls(string $kind, array $values, int $calls): int
    {
        $metric = match ($kind) {
            'counter' => $this->registry->getOrRegisterCounter('test', "call_$kind", 'Help.', ['type']),
            'gauge' => $this->registry->getOrRegisterGauge('test', "call_$kind", 'Help.', ['type']),
            'histogram' => $this->registry->getOrRegisterHistogram('test', "call_$kind", 'Help.', ['type'], self::BUCKETS),
            'summary' => $this->registry
                ->getOrRegisterSummary('test', "call_$kind", 'Help.', ['type'], self::WINDOW, self::QUANTILES),
        };
        return CallLoops::ofMetric($metric, $values, $calls);
    }

    public function bytes(): int
    {
        return Region::bytes();
    }
}
