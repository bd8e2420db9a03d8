<?php

declare(strict_types=1);

namespace Prometheus;

/** A family as promphp/prometheus_client_php shows it, for tests without that library. */
final class MetricFamilySamples
{
    public string $name;
    public string $type;
    public string $help;
    /** @var string[] */
    public array $labelNames;
    /** @var Sample[] */
    public array $samples;

    /** @param mixed[] $data */
    public function __construct(array $data)
    {
        $this->name = $data['name'];
        $this->type = $data['type'];
        $this->help = $data['help'];
        $this->labelNames = $data['labelNames'];
        $this->samples = array_map(fn (array $sample) => new Sample($sample), $data['samples']);
    }
}
