<?php

/**
 * The declarations of the extension talea, for editors and analysers. metrics_arginfo.h,
 * recorder_arginfo.h and registry_arginfo.h declare them to PHP; a test compares them.
 */

namespace Talea;

/** An error of Talea, with its reason. Running out of space never throws one. */
class Exception extends \RuntimeException
{
}

/**
 * The metrics of a region. Processes that open the same path share them, and they stay when a
 * request ends.
 */
final class Registry
{
    /**
     * @param string|null $path a file on tmpfs, such as /dev/shm/shop.talea, which is created if it is
     *     missing; null: that of talea.region in php.ini, else of the environment variable
     *     TALEA_REGION, else memory of this process, which children made by fork share
     */
    public function __construct(?string $path = null) {}

    /** @param string[] $labels */
    public function registerCounter(string $namespace, string $name, string $help, array $labels = []): Counter {}

    /** @param string[] $labels */
    public function getOrRegisterCounter(string $namespace, string $name, string $help, array $labels = []): Counter {}

    public function getCounter(string $namespace, string $name): Counter {}

    /** @param string[] $labels */
    public function registerGauge(string $namespace, string $name, string $help, array $labels = []): Gauge {}

    /** @param string[] $labels */
    public function getOrRegisterGauge(string $namespace, string $name, string $help, array $labels = []): Gauge {}

    public function getGauge(string $namespace, string $name): Gauge {}

    /**
     * @param string[] $labels
     * @param array<int|float>|null $buckets ascending; null: 14 from 0.005 to 10
     */
    public function registerHistogram(string $namespace, string $name, string $help, array $labels = [], ?array $buckets = null): Histogram {}

    /**
     * @param string[] $labels
     * @param array<int|float>|null $buckets ascending; null: 14 from 0.005 to 10
     */
    public function getOrRegisterHistogram(string $namespace, string $name, string $help, array $labels = [], ?array $buckets = null): Histogram {}

    public function getHistogram(string $namespace, string $name): Histogram {}

    /**
     * @param string[] $labels
     * @param int $maxAgeSeconds of how many seconds the quantiles are
     * @param array<int|float>|null $quantiles ascending; null: 0.01, 0.05, 0.5, 0.95, 0.99
     */
    public function registerSummary(string $namespace, string $name, string $help, array $labels = [], int $maxAgeSeconds = 600, ?array $quantiles = null): Summary {}

    /**
     * @param string[] $labels
     * @param int $maxAgeSeconds of how many seconds the quantiles are
     * @param array<int|float>|null $quantiles ascending; null: 0.01, 0.05, 0.5, 0.95, 0.99
     */
    public function getOrRegisterSummary(string $namespace, string $name, string $help, array $labels = [], int $maxAgeSeconds = 600, ?array $quantiles = null): Summary {}

    public function getSummary(string $namespace, string $name): Summary {}

    /**
     * The page that a scrape with such an Accept header gets; null: text.
     */
    public function render(?string $accept = null): string {}

    /** The Content-Type of that page. */
    public static function contentType(?string $accept = null): string {}

    /**
     * All values, as a list of the families that `eachFamily` hands over, each with its series.
     *
     * @param float|null $now when windows end, in seconds since 1970; null: now
     * @return array<array{name: string, type: string, help: string, labelNames: string[], samples?: mixed[], series: array<array{string[], array<array{name: string, labelNames: string[], labelValues: string[], value: int|float}>}>}>
     */
    public function families(?float $now = null): array {}

    /**
     * Passes all families to a function, or the one of a name, as
     * promphp/prometheus_client_php's MetricFamilySamples takes them, and their series: the label
     * values of each, and its samples. A family with one series has its samples as `samples` too.
     * The count and the sum of a summary are of its window; a series with an empty window is left
     * out.
     *
     * @param callable(array{name: string, type: string, help: string, labelNames: string[], samples?: mixed[]}, array<array{string[], array<array{name: string, labelNames: string[], labelValues: string[], value: int|float}>}>): void $take
     * @param float|null $now when windows end, in seconds since 1970; null: now
     */
    public function eachFamily(callable $take, ?float $now = null, ?string $name = null): void {}

    /** Resets all metrics to 0, in all processes; series with labels are removed. */
    public function wipe(): void {}

    /**
     * Ends a family, by its name as samples have it, or all: in all processes, until they register
     * it again. Returns their number.
     */
    public function unregister(?string $name = null): int {}
}

/**
 * Records what promphp/prometheus_client_php passes to its storages: Talea\PromPhp\Storage uses it.
 * An array has the keys name, help, labelNames, labelValues and value; of a gauge also command, of a
 * histogram buckets, of a summary maxAgeSeconds and quantiles. The first data of a name define it,
 * until `forget`.
 */
final class Recorder
{
    public function __construct(Registry $registry) {}

    /** @param mixed[] $data whose value is added, whatever its command */
    public function counter(array $data): void {}

    /** @param mixed[] $data whose command 3 sets the value, and others add it */
    public function gauge(array $data): void {}

    /** @param mixed[] $data */
    public function histogram(array $data): void {}

    /**
     * @param mixed[] $data
     * @param float|null $time when it was observed, in seconds since 1970, if that is not now
     */
    public function summary(array $data, ?float $time = null): void {}

    /** Forgets all definitions: the next data of a name define it anew. */
    public function forget(): void {}
}

/** A total that only goes up. */
final class Counter
{
    private function __construct() {}

    /**
     * Removes the series of these label values, in all processes. Returns whether there was one.
     *
     * @param array<string|int|float|bool|null|\Stringable> $labels
     */
    public function remove(array $labels = []): bool {}

    /** @param array<string|int|float|bool|null|\Stringable> $labels the values, in the order of the names */
    public function inc(array $labels = []): void {}

    /** @param array<string|int|float|bool|null|\Stringable> $labels the values, in the order of the names */
    public function incBy(int|float $count, array $labels = []): void {}

    /**
     * Sets a gauge with one label to 1 for the name that this counter was registered by, now and
     * whenever it is registered again after any process ended it.
     */
    public function noteName(Gauge $gauge): void {}
}

/** A number that is set, or goes up and down. */
final class Gauge
{
    private function __construct() {}

    /**
     * Removes the series of these label values, in all processes. Returns whether there was one.
     *
     * @param array<string|int|float|bool|null|\Stringable> $labels
     */
    public function remove(array $labels = []): bool {}

    /** @param array<string|int|float|bool|null|\Stringable> $labels the values, in the order of the names */
    public function set(int|float $value, array $labels = []): void {}

    /** @param array<string|int|float|bool|null|\Stringable> $labels the values, in the order of the names */
    public function inc(array $labels = []): void {}

    /** @param array<string|int|float|bool|null|\Stringable> $labels the values, in the order of the names */
    public function incBy(int|float $value, array $labels = []): void {}

    /** @param array<string|int|float|bool|null|\Stringable> $labels the values, in the order of the names */
    public function dec(array $labels = []): void {}

    /** @param array<string|int|float|bool|null|\Stringable> $labels the values, in the order of the names */
    public function decBy(int|float $value, array $labels = []): void {}
}

/** Observations by size, with their count and sum. */
final class Histogram
{
    private function __construct() {}

    /**
     * Removes the series of these label values, in all processes. Returns whether there was one.
     *
     * @param array<string|int|float|bool|null|\Stringable> $labels
     */
    public function remove(array $labels = []): bool {}

    /** @param array<string|int|float|bool|null|\Stringable> $labels the values, in the order of the names */
    public function observe(float $value, array $labels = []): void {}
}

/** Quantiles of recent observations, with the count and sum of all. */
final class Summary
{
    private function __construct() {}

    /**
     * Removes the series of these label values, in all processes. Returns whether there was one.
     *
     * @param array<string|int|float|bool|null|\Stringable> $labels
     */
    public function remove(array $labels = []): bool {}

    /**
     * @param array<string|int|float|bool|null|\Stringable> $labels the values, in the order of the names
     * @param float|null $time when it was observed, in seconds since 1970, if that is not now
     */
    public function observe(float $value, array $labels = [], ?float $time = null): void {}
}
