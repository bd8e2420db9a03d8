<?php

declare(strict_types=1);

namespace Talea\Bench;

/** A way to count, as the experiments use all of them. */
interface Engine
{
    public const KINDS = ['counter', 'gauge', 'histogram', 'summary'];
    public const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
    public const QUANTILES = [0.01, 0.05, 0.5, 0.95, 0.99];
    public const WINDOW = 600;

    /** As the next request has it: with objects of its own. */
    public function again(): void;

    /**
     * Finds a metric of a kind by its name, or makes it, and updates it.
     *
     * @param string[] $values of its one label
     */
    public function tell(string $kind, string $name, array $values, float $value = 1.5): void;

    /**
     * All values as objects; null where it makes none.
     *
     * @return mixed[]|null
     */
    public function collect(): ?array;

    /** The page; null where there is nothing that makes one. */
    public function page(): ?string;

    /** How many series a counter has. */
    public function seriesOf(string $counter): int;

    public function wipe(): void;

    /**
     * How many nanoseconds it took to tell a kind so many times, in a loop.
     *
     * @param string[] $values
     */
    public function timeCalls(string $kind, array $values, int $calls): int;

    /**
     * How many nanoseconds it took a summary to observe these values, one after the other.
     *
     * @param string[] $values of its one label
     * @param float[] $observed
     */
    public function timeObservations(array $values, array $observed): int;

    /**
     * How many nanoseconds it took to get a metric of a kind so many times, which is registered:
     * by the same object, or by a new one each time, as in a request that has just begun. Null
     * where metrics are not got of this engine.
     */
    public function timeGets(string $kind, bool $is_first, int $calls): ?int;

    /** Shared memory in use. */
    public function bytes(): int;
}
