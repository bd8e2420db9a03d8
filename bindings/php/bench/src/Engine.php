<?php

declare(strict_types=1);

namespace Talea\Bench;

/** A way to count, for the experiments. */
interface Engine
{
    public const KINDS = ['counter', 'gauge', 'histogram', 'summary'];
    public const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
    public const QUANTILES = [0.01, 0.05, 0.5, 0.95, 0.99];
    public const WINDOW = 600;

    /** Begins the next request, with objects of its own. */
    public function again(): void;

    /**
     * Finds or creates a metric of a kind by its name, and updates it.
     *
     * @param string[] $values of its one label
     */
    public function update(string $kind, string $name, array $values, float $value = 1.5): void;

    /**
     * All values as objects; null if it makes none.
     *
     * @return mixed[]|null
     */
    public function collect(): ?array;

    /** The page; null if the engine makes none. */
    public function page(): ?string;

    /** How many series a counter has. */
    public function seriesOf(string $counter): int;

    public function wipe(): void;

    /**
     * The nanoseconds of so many updates of a kind, in a loop.
     *
     * @param string[] $values
     */
    public function timeCalls(string $kind, array $values, int $calls): int;

    /**
     * The nanoseconds in which a summary observes these values, one after the other.
     *
     * @param string[] $values of its one label
     * @param float[] $observed
     */
    public function timeObservations(array $values, array $observed): int;

    /**
     * The nanoseconds of getting a registered metric of a kind so many times: from one object, or from
     * a new one each time, as in a request that has just begun. Null if this engine has no such call.
     */
    public function timeGets(string $kind, bool $is_first, int $calls): ?int;

    /** Shared memory in use. */
    public function bytes(): int;
}
