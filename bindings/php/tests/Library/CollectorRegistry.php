<?php

declare(strict_types=1);

namespace Prometheus;

use Prometheus\Storage\Adapter;

/** As much of the class of promphp/prometheus_client_php as the benchmark uses, to test that. */
final class CollectorRegistry
{
    public function __construct(private readonly Adapter $adapter, bool $with_default_metrics = true)
    {
    }

    /** @param string[] $labels */
    public function getOrRegisterCounter(string $namespace, string $name, string $help, array $labels = []): Metric
    {
        $command = ['command' => Adapter::COMMAND_INCREMENT_INTEGER, 'value' => 1];
        return new Metric($this->adapter->updateCounter(...), $command + self::data($namespace, $name, $help, 'counter', $labels));
    }

    /** @param string[] $labels */
    public function getOrRegisterGauge(string $namespace, string $name, string $help, array $labels = []): Metric
    {
        $command = ['command' => Adapter::COMMAND_INCREMENT_INTEGER, 'value' => 1];
        return new Metric($this->adapter->updateGauge(...), $command + self::data($namespace, $name, $help, 'gauge', $labels));
    }

    /**
     * @param string[] $labels
     * @param float[] $buckets
     */
    public function getOrRegisterHistogram(string $namespace, string $name, string $help, array $labels, array $buckets): Observed
    {
        $data = ['buckets' => $buckets] + self::data($namespace, $name, $help, 'histogram', $labels);
        return new Observed($this->adapter->updateHistogram(...), $data);
    }

    /**
     * @param string[] $labels
     * @param float[] $quantiles
     */
    public function getOrRegisterSummary(
        string $namespace,
        string $name,
        string $help,
        array $labels,
        int $maxAgeSeconds,
        array $quantiles
    ): Observed {
        $data = compact('maxAgeSeconds', 'quantiles') + self::data($namespace, $name, $help, 'summary', $labels);
        return new Observed($this->adapter->updateSummary(...), $data);
    }

    /**
     * @param string[] $labels
     * @return mixed[]
     */
    private static function data(string $namespace, string $name, string $help, string $type, array $labels): array
    {
        return ['name' => "{$namespace}_$name", 'help' => $help, 'type' => $type, 'labelNames' => $labels];
    }
}
