<?php

declare(strict_types=1);

namespace Talea\PromPhp;

use Prometheus\MetricFamilySamples;
use Prometheus\Storage\Adapter;
use Talea\Registry;

/**
 * Keeps the metrics of promphp/prometheus_client_php in a region of Talea:
 *
 *     $registry = new CollectorRegistry(new Storage());
 *
 * Nothing is kept here between two requests: the region has it all.
 */
final class Storage implements Adapter
{
    /** Which counters were given names without `_total`, at which the region's names end. */
    private const NAMES = 'talea_promphp_counters';

    private Registry $registry;

    /** @var array<string, int> the second when a counter's name was noted last */
    private array $noted = [];

    /**
     * @param Registry|null $registry null: that of the configured region
     * @param \Closure(): float|null $clock seconds since 1970, for tests of what time does; null: now
     */
    public function __construct(?Registry $registry = null, private readonly ?\Closure $clock = null)
    {
        $this->registry = $registry ?? new Registry();
    }

    /**
     * @param bool $sortMetrics samples are sorted anyway
     * @return MetricFamilySamples[]
     */
    public function collect(bool $sortMetrics = true): array
    {
        return (new Collection($this->registry, self::NAMES))->samples($this->time());
    }

    /** @param mixed[] $data */
    public function updateCounter(array $data): void
    {
        $name = $data['name'];
        $counter = $this->registry->getOrRegisterCounter('', $name, self::help($data), $data['labelNames']);
        if ($data['command'] === Adapter::COMMAND_SET) {
            // A counter is set to nothing, whatever the value is: as the other storages do it.
            $counter->remove($data['labelValues']);
            $counter->incBy(0, $data['labelValues']);
        } else {
            $counter->incBy($data['value'], $data['labelValues']);
        }
        if (!str_ends_with($name, '_total') && ($this->noted[$name] ?? 0) !== time()) {
            $this->note($name);
        }
    }

    /** @param mixed[] $data */
    public function updateGauge(array $data): void
    {
        $gauge = $this->registry->getOrRegisterGauge('', $data['name'], self::help($data), $data['labelNames']);
        if ($data['command'] === Adapter::COMMAND_SET) {
            $gauge->set($data['value'], $data['labelValues']);
        } else {
            $gauge->incBy($data['value'], $data['labelValues']);
        }
    }

    /** @param mixed[] $data */
    public function updateHistogram(array $data): void
    {
        $this->registry
            ->getOrRegisterHistogram('', $data['name'], self::help($data), $data['labelNames'], $data['buckets'])
            ->observe($data['value'], $data['labelValues']);
    }

    /** @param mixed[] $data */
    public function updateSummary(array $data): void
    {
        $this->registry
            ->getOrRegisterSummary(
                '',
                $data['name'],
                self::help($data),
                $data['labelNames'],
                $data['maxAgeSeconds'],
                $data['quantiles']
            )
            ->observe($data['value'], $data['labelValues'], $this->time());
    }

    public function wipeStorage(): void
    {
        $this->registry->unregister();
        $this->noted = [];
    }

    private function time(): ?float
    {
        return $this->clock === null ? null : ($this->clock)();
    }

    /** Again in each second: another process may have wiped it. */
    private function note(string $name): void
    {
        $this->registry
            ->getOrRegisterGauge('', self::NAMES, 'Counters whose names were given without _total.', ['name'])
            ->set(1, [$name]);
        $this->noted[$name] = time();
    }

    /**
     * Talea asks for one.
     *
     * @param mixed[] $data
     */
    private static function help(array $data): string
    {
        return trim($data['help']) === '' ? $data['name'] : $data['help'];
    }
}
