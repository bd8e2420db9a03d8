<?php

declare(strict_types=1);

namespace Prometheus;

use Prometheus\Storage\Adapter;

/** The samples that the storages of promphp/prometheus_client_php are expected to collect. */
final class Expected
{
    public float $now = 1e9;

    /** @var array<string, mixed[]> the first data of each family, by type and name */
    private array $families = [];

    /** @var array<string, array<string, mixed>> the value or the observations of each series */
    private array $series = [];

    /** @param mixed[] $data */
    public function update(array $data): void
    {
        $family = "$data[type] $data[name]";
        $this->families[$family] ??= $data;
        $series = &$this->series[$family][json_encode($data['labelValues'])];
        if (!isset($data['command'])) {
            $series[] = ['time' => $this->now, 'value' => $data['value']];
        } elseif ($data['command'] === Adapter::COMMAND_SET) {
            $series = $data['type'] === 'counter' ? 0 : $data['value'];
        } else {
            $series += $data['value'];
        }
    }

    public function wipe(): void
    {
        $this->families = $this->series = [];
    }

    /** @return array<string, array{string, string[], mixed[][]}> help, label names and samples by type and name */
    public function collected(): array
    {
        $collected = [];
        foreach ($this->families as $family => $data) {
            $measures = !isset($data['command']);
            $keys = [];
            foreach (array_keys($this->series[$family]) as $key) {
                $keys[$key] = $measures ? base64_encode($key) : implode('', json_decode($key));
            }
            asort($keys, SORT_STRING);
            $samples = [];
            foreach (array_keys($keys) as $key) {
                array_push($samples, ...$this->samples($data, json_decode($key), $this->series[$family][$key]));
            }
            if ($samples !== []) {
                $collected[$family] = [$data['help'], $data['labelNames'], $samples];
            }
        }
        ksort($collected);
        return $collected;
    }

    /**
     * @param mixed[] $data
     * @param string[] $labels
     * @return mixed[][] name, own label names, label values and value of each
     */
    private function samples(array $data, array $labels, mixed $series): array
    {
        $name = $data['name'];
        if (isset($data['command'])) {
            return [[$name, [], $labels, $series]];
        }
        $oldest = $this->now - ($data['maxAgeSeconds'] ?? INF);
        $values = array_column(array_filter($series, fn ($one) => $one['time'] >= $oldest), 'value');
        sort($values);
        $count = count($values);
        $samples = [];
        foreach ($data['buckets'] ?? [] as $bound) {
            $below = count(array_filter($values, fn ($value) => $value <= $bound));
            $samples[] = ["{$name}_bucket", ['le'], [...$labels, (string) $bound], $below];
        }
        if (isset($data['buckets'])) {
            $samples[] = ["{$name}_bucket", ['le'], [...$labels, '+Inf'], $count];
        }
        foreach ($count > 0 ? $data['quantiles'] ?? [] : [] as $quantile) {
            $value = $values[(int) ceil($count * $quantile) - 1];
            $samples[] = [$name, ['quantile'], [...$labels, (string) $quantile], $value];
        }
        if ($count > 0) {
            array_push($samples, ["{$name}_count", [], $labels, $count], ["{$name}_sum", [], $labels, array_sum($values)]);
        }
        return $samples;
    }
}
