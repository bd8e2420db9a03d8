<?php

declare(strict_types=1);

namespace Prometheus;

/** What promphp/prometheus_client_php makes of a sample, for tests without it. */
final class Sample
{
    public string $name;
    /** @var string[] */
    public array $labelNames;
    /** @var mixed[] */
    public array $labelValues;
    public int|float $value;

    /** @param mixed[] $data */
    public function __construct(array $data)
    {
        $this->name = $data['name'];
        $this->labelNames = $data['labelNames'];
        $this->labelValues = $data['labelValues'];
        $this->value = $data['value'];
    }
}
