<?php

declare(strict_types=1);

namespace Prometheus;

/** A counter or a gauge. */
final class Metric
{
    /** @param mixed[] $data */
    public function __construct(private readonly \Closure $update, private readonly array $data)
    {
    }

    /** @param string[] $values */
    public function inc(array $values = []): void
    {
        ($this->update)($this->data + ['labelValues' => $values]);
    }
}
