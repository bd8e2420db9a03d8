<?php

declare(strict_types=1);

namespace Prometheus\Storage;

use Prometheus\MetricFamilySamples;

/**
 * A storage of a few lines, which is none of the library's: a key of APCu for each series, with how
 * often it was updated.
 */
final class PlainApcu implements Adapter
{
    /** @return MetricFamilySamples[] */
    public function collect(): array
    {
        $families = [];
        foreach (new \APCUIterator('/^plain\|/') as $entry) {
            [, $type, $name, $values] = explode('|', $entry['key'], 4);
            $families[$name] ??= ['name' => $name, 'type' => $type, 'help' => '', 'labelNames' => ['type'], 'samples' => []];
            $families[$name]['samples'][] = [
                'name' => $name,
                'labelNames' => [],
                'labelValues' => json_decode($values),
                'value' => $entry['value'],
            ];
        }
        return array_map(fn (array $family) => new MetricFamilySamples($family), array_values($families));
    }

    public function updateSummary(array $data): void
    {
        $this->count($data);
    }

    public function updateHistogram(array $data): void
    {
        $this->count($data);
    }

    public function updateGauge(array $data): void
    {
        $this->count($data);
    }

    public function updateCounter(array $data): void
    {
        $this->count($data);
    }

    public function wipeStorage(): void
    {
        apcu_delete(new \APCUIterator('/^plain\|/'));
    }

    /** @param mixed[] $data */
    private function count(array $data): void
    {
        apcu_inc(implode('|', ['plain', $data['type'], $data['name'], json_encode($data['labelValues'])]));
    }
}
