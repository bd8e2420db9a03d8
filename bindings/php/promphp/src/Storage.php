<?php

declare(strict_types=1);

namespace Talea\PromPhp;

use Prometheus\MetricFamilySamples;
use Prometheus\Storage\Adapter;
use Talea\Recorder;
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
    /** The counters that were given names without `_total`; names in the region end with it. */
    private const NAMES = 'talea_promphp_counters';

    private readonly Registry $registry;
    private readonly Recorder $recorder;

    /** @var \WeakMap<self, true>|null those of this process */
    private static ?\WeakMap $all = null;

    /**
     * @param Registry|null $registry null: that of the configured region
     * @param \Closure(): float|null $clock seconds since 1970, for tests of what time does; null: now
     */
    public function __construct(?Registry $registry = null, private readonly ?\Closure $clock = null)
    {
        $this->registry = $registry ?? new Registry();
        $this->recorder = new Recorder($this->registry);
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
        if ($data['command'] === Adapter::COMMAND_SET) {
            $this->setToNothing($data);
        } else {
            $this->recorder->counter($data);
        }
    }

    /** @param mixed[] $data */
    public function updateGauge(array $data): void
    {
        $this->recorder->gauge($data);
    }

    /** @param mixed[] $data */
    public function updateHistogram(array $data): void
    {
        $this->recorder->histogram($data);
    }

    /** @param mixed[] $data */
    public function updateSummary(array $data): void
    {
        $this->recorder->summary($data, $this->time());
    }

    public function wipeStorage(): void
    {
        $this->registry->unregister();
        foreach (self::$all ?? [] as $storage => $_) {
            $storage->recorder->forget();
        }
    }

    private function time(): ?float
    {
        return $this->clock === null ? null : ($this->clock)();
    }

    /**
     * A counter is set to nothing, whatever the value is: as the other storages do it.
     *
     * @param mixed[] $data
     */
    private function setToNothing(array $data): void
    {
        // It may be new.
        $this->recorder->counter(['value' => 0] + $data);
        $name = $data['name'];
        if ($data['labelNames'] === []) {
            // Its one series stays as long as the counter.
            $this->registry->unregister(\str_ends_with($name, '_total') ? $name : "{$name}_total");
        } else {
            $help = \trim($data['help']) === '' ? $name : $data['help'];
            $this->registry->getOrRegisterCounter('', $name, $help, $data['labelNames'])
                ->remove($data['labelValues']);
        }
        $this->recorder->counter(['value' => 0] + $data);
    }
}
