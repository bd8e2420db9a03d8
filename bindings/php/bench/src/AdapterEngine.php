<?php

declare(strict_types=1);

namespace Talea\Bench;

use Prometheus\CollectorRegistry;
use Prometheus\RenderTextFormat;
use Prometheus\Storage\Adapter;

/**
 * An engine of the library, or Talea's adapter, with the calls of the library's registry. The cost of
 * the registry itself is the same for all of them, so it is left out.
 */
final class AdapterEngine implements Engine
{
    private Adapter $adapter;

    /** @param class-string<Adapter> $class */
    public function __construct(private readonly string $class)
    {
        $this->adapter = new $class();
    }

    public function again(): void
    {
        // Metrics in memory of the process would be lost.
        if (Subject::isShared(basename(strtr($this->class, '\\', '/')))) {
            $this->adapter = new ($this->class)();
        }
    }

    public function update(string $kind, string $name, array $values, float $value = 1.5): void
    {
        $data = self::data($kind, $name, $values, $value);
        match ($kind) {
            'counter' => $this->adapter->updateCounter($data),
            'gauge' => $this->adapter->updateGauge($data),
            'histogram' => $this->adapter->updateHistogram($data),
            'summary' => $this->adapter->updateSummary($data),
        };
    }

    public function collect(): array
    {
        return $this->adapter->collect();
    }

    public function page(): ?string
    {
        return Library::isThere() ? (new RenderTextFormat())->render($this->adapter->collect()) : null;
    }

    public function seriesOf(string $counter): int
    {
        $page = $this->page();
        if ($page !== null) {
            return preg_match_all("/^test_{$counter}\\{/m", $page);
        }
        $samples = array_column($this->adapter->collect(), 'samples', 'name');
        return count($samples["test_$counter"] ?? []);
    }

    public function wipe(): void
    {
        $this->adapter->wipeStorage();
    }

    public function timeCalls(string $kind, array $values, int $calls): int
    {
        return CallLoops::ofAdapter($this->adapter, $kind, self::data($kind, "call_$kind", $values, 1.5), $calls);
    }

    public function timeObservations(array $values, array $observed): int
    {
        $data = self::data('summary', 'call_summary', $values, 1.5);
        return CallLoops::ofAdapterObservations($this->adapter, $data, $observed);
    }

    public function timeGets(string $kind, bool $is_first, int $calls): ?int
    {
        return null;
    }

    /** The step of the library's own benchmark: with another registry, of the same storage. */
    public function updateByLibrary(int $metrics): void
    {
        $registry = new CollectorRegistry($this->adapter, false);
        for ($i = 0; $i < $metrics; $i++) {
            $registry->getOrRegisterCounter('namespace', "counter$i", 'counter help')->inc();
            $registry->getOrRegisterGauge('namespace', "gauge$i", 'gauge help')->inc();
            $registry->getOrRegisterHistogram('namespace', "histogram$i", 'histogram help', [], self::BUCKETS)->observe(1);
            $registry
                ->getOrRegisterSummary('namespace', "summary$i", 'summary help', [], self::WINDOW, self::QUANTILES)
                ->observe(1);
        }
    }

    /**
     * Updates through the registry of the library.
     *
     * @param string[] $values
     */
    public function timeCallsOfLibrary(string $kind, array $values, int $calls): ?int
    {
        if (!Library::isThere()) {
            return null;
        }
        $metric = CallLoops::metric(new CollectorRegistry($this->adapter, false), $kind);
        return CallLoops::ofMetric($metric, $values, $calls);
    }

    public function bytes(): int
    {
        if ($this->adapter instanceof \Talea\PromPhp\Storage) {
            return Region::bytes();
        }
        if (!Subject::isShared(basename(strtr($this->class, '\\', '/')))) {
            return memory_get_usage();
        }
        $memory = apcu_sma_info(true);
        return (int) ($memory['num_seg'] * $memory['seg_size'] - $memory['avail_mem']);
    }

    /**
     * @param string[] $values
     * @return mixed[]
     */
    private static function data(string $kind, string $name, array $values, float $value): array
    {
        $measures = $kind === 'histogram' || $kind === 'summary';
        return [
            'name' => "test_$name",
            'help' => 'it increases',
            'type' => $kind,
            'labelNames' => ['type'],
            'labelValues' => $values,
            'value' => $measures ? $value : 1,
        ] + match ($kind) {
            'histogram' => ['buckets' => self::BUCKETS],
            'summary' => ['maxAgeSeconds' => self::WINDOW, 'quantiles' => self::QUANTILES],
            default => ['command' => Adapter::COMMAND_INCREMENT_INTEGER],
        };
    }
}
