<?php

declare(strict_types=1);

namespace Prometheus\Storage;

/** The interface of promphp/prometheus_client_php's storages, for tests without that library. */
interface Adapter
{
    public const COMMAND_INCREMENT_INTEGER = 1;
    public const COMMAND_INCREMENT_FLOAT = 2;
    public const COMMAND_SET = 3;

    /** @return \Prometheus\MetricFamilySamples[] */
    public function collect(): array;

    /** @param mixed[] $data */
    public function updateSummary(array $data): void;

    /** @param mixed[] $data */
    public function updateHistogram(array $data): void;

    /** @param mixed[] $data */
    public function updateGauge(array $data): void;

    /** @param mixed[] $data */
    public function updateCounter(array $data): void;

    public function wipeStorage(): void;
}
