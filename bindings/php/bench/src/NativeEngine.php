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

    public function update(string $kind, string $name, array $values, float $value = 1.5): void
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
        return CallLoops::ofMetric(CallLoops::metric($this->registry, $kind), $values, $calls);
    }

    public function timeObservations(array $values, array $observed): int
    {
        return CallLoops::ofObservations(CallLoops::metric($this->registry, 'summary'), $observed, $values);
    }

    public function timeGets(string $kind, bool $is_first, int $calls): int
    {
        CallLoops::metric($this->registry, $kind);
        if (!$is_first) {
            return self::timeGetsOf(array_fill(0, $calls, $this->registry), $kind);
        }
        $registries = [];
        for ($i = 0; $i < $calls; $i++) {
            $registries[] = new Registry();
        }
        return self::timeGetsOf($registries, $kind);
    }

    /** @param Registry[] $registries */
    private static function timeGetsOf(array $registries, string $kind): int
    {
        $name = "call_$kind";
        $begun = hrtime(true);
        switch ($kind) {
            case 'counter':
                foreach ($registries as $registry) {
                    $registry->getOrRegisterCounter('test', $name, 'Help.', ['type']);
                }
                break;
            case 'gauge':
                foreach ($registries as $registry) {
                    $registry->getOrRegisterGauge('test', $name, 'Help.', ['type']);
                }
                break;
            case 'histogram':
                foreach ($registries as $registry) {
                    $registry->getOrRegisterHistogram('test', $name, 'Help.', ['type'], self::BUCKETS);
                }
                break;
            case 'summary':
                foreach ($registries as $registry) {
                    $registry->getOrRegisterSummary('test', $name, 'Help.', ['type'], self::WINDOW, self::QUANTILES);
                }
                break;
        }
        return hrtime(true) - $begun;
    }

    public function bytes(): int
    {
        return Region::bytes();
    }
}
