<?php

declare(strict_types=1);

namespace Talea\PromPhp;

use Prometheus\MetricFamilySamples;
use Prometheus\Storage\Adapter;
use Talea\Counter;
use Talea\Gauge;
use Talea\Histogram;
use Talea\Registry;
use Talea\Summary;

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

    // What was found, by its name: to ask the registry takes as long as to count.
    /** @var array<string, Counter> */
    private array $counters = [];
    /** @var array<string, Gauge> */
    private array $gauges = [];
    /** @var array<string, Histogram> */
    private array $histograms = [];
    /** @var array<string, Summary> */
    private array $summaries = [];

    /** @var \WeakMap<self, true>|null those of this process */
    private static ?\WeakMap $all = null;

    /**
     * @param Registry|null $registry null: that of the configured region
     * @param \Closure(): float|null $clock seconds since 1970, for tests of what time does; null: now
     */
    public function __construct(?Registry $registry = null, private readonly ?\Closure $clock = null)
    {
        $this->registry = $registry ?? new Registry();
        self::$all ??= new \WeakMap();
        self::$all[$this] = true;
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
        $counter = $this->counters[$data['name']] ?? $this->counter($data);
        if ($data['command'] === Adapter::COMMAND_SET) {
            $counter = $this->emptied($counter, $data);
            $counter->incBy(0, $data['labelValues']);
        } else {
            $counter->incBy($data['value'], $data['labelValues']);
        }
    }

    /** @param mixed[] $data */
    public function updateGauge(array $data): void
    {
        $name = $data['name'];
        $gauge = $this->gauges[$name]
            ??= $this->registry->getOrRegisterGauge('', $name, self::help($data), $data['labelNames']);
        if ($data['command'] === Adapter::COMMAND_SET) {
            $gauge->set($data['value'], $data['labelValues']);
        } else {
            $gauge->incBy($data['value'], $data['labelValues']);
        }
    }

    /** @param mixed[] $data */
    public function updateHistogram(array $data): void
    {
        $name = $data['name'];
        $histogram = $this->histograms[$name]
            ??= $this->registry
                ->getOrRegisterHistogram('', $name, self::help($data), $data['labelNames'], $data['buckets']);
        $histogram->observe($data['value'], $data['labelValues']);
    }

    /** @param mixed[] $data */
    public function updateSummary(array $data): void
    {
        $name = $data['name'];
        $summary = $this->summaries[$name]
            ??= $this->registry->getOrRegisterSummary(
                '',
                $name,
                self::help($data),
                $data['labelNames'],
                $data['maxAgeSeconds'],
                $data['quantiles']
            );
        $summary->observe($data['value'], $data['labelValues'], $this->time());
    }

    public function wipeStorage(): void
    {
        $this->registry->unregister();
        foreach (self::$all ?? [] as $storage => $_) {
            $storage->counters = $storage->gauges = $storage->histograms = $storage->summaries = [];
        }
    }

    private function time(): ?float
    {
        return $this->clock === null ? null : ($this->clock)();
    }

    /**
     * Also notes its name, if that is not the region's.
     *
     * @param mixed[] $data
     */
    private function counter(array $data): Counter
    {
        $name = $data['name'];
        $counter = $this->registry->getOrRegisterCounter('', $name, self::help($data), $data['labelNames']);
        if (!\str_ends_with($name, '_total')) {
            $help = 'Counters whose names were given without _total.';
            $counter->noteName($this->registry->getOrRegisterGauge('', self::NAMES, $help, ['name']));
        }
        return $this->counters[$name] = $counter;
    }

    /**
     * A counter is set to nothing, whatever the value is: as the other storages do it.
     *
     * @param mixed[] $data
     */
    private function emptied(Counter $counter, array $data): Counter
    {
        if ($data['labelNames'] !== []) {
            $counter->remove($data['labelValues']);
            return $counter;
        }
        // Its one series stays as long as the counter.
        $name = $data['name'];
        $this->registry->unregister(\str_ends_with($name, '_total') ? $name : "{$name}_total");
        return $this->counter($data);
    }

    /**
     * Talea asks for one.
     *
     * @param mixed[] $data
     */
    private static function help(array $data): string
    {
        return \trim($data['help']) === '' ? $data['name'] : $data['help'];
    }
}
