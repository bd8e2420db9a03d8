<?php

declare(strict_types=1);

namespace Prometheus;

/** A sample as promphp/prometheus_client_php shows it, for tests without that library. */
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
