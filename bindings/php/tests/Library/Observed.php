<?php

declare(strict_types=1);

namespace Prometheus;

/** A histogram or a summary. */
final class Observed
{
    /** @param mixed[] $data */
    public function __construct(private readonly \Closure $update, private readonly array $data)
    {
    }

    /** @param string[] $values */
    public function observe(float $value, array $values = []): void
    {
        ($this->update)($this->data + ['labelValues' => $values, 'value' => $value]);
    }
}
