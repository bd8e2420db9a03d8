<?php

declare(strict_types=1);

namespace Talea\PromPhp;

use Prometheus\MetricFamilySamples;

/**
 * Families of a region as promphp/prometheus_client_php shows them.
 *
 * @internal
 */
final class Collection
{
    private const OVERFLOW = 'otel_metric_overflow';

    /** The order of the other storages. */
    private const TYPES = ['histogram', 'gauge', 'counter', 'summary'];

    /** @var mixed[][] */
    private array $families;

    /** @var array<string, string> names of counters, by those that the region has */
    private array $names = [];

    /** @var array<string, string> thresholds as PHP writes them, by their texts */
    private array $thresholds = [];

    /**
     * @param mixed[][] $families as Talea\Registry::families() has them
     * @param string $names the family whose label tells names that the region has completed
     */
    public function __construct(array $families, string $names)
    {
        $this->families = array_filter($families, fn (array $family) => $family['name'] !== $names);
        foreach ($families as $family) {
            foreach ($family['name'] === $names ? $family['series'] : [] as $series) {
                $name = $series['labels']['name'] ?? '';
                $this->names["{$name}_total"] = $name;
            }
        }
    }

    /** @return MetricFamilySamples[] */
    public function samples(): array
    {
        $by_type = array_fill_keys(self::TYPES, []);
        foreach ($this->families as $family) {
            // Infos and states of other programs that share the region.
            $family['type'] = isset($by_type[$family['type']]) ? $family['type'] : 'gauge';
            $data = $this->family($family);
            if ($data['samples'] !== []) {
                $by_type[$family['type']][] = new MetricFamilySamples($data);
            }
        }
        return array_merge(...array_values($by_type));
    }

    /**
     * @param mixed[] $family
     * @return mixed[]
     */
    private function family(array $family): array
    {
        $name = $this->names[$family['name']] ?? $family['name'];
        $labels = self::labelNames($family);
        $measures = $family['type'] === 'histogram' || $family['type'] === 'summary';
        $samples = [];
        foreach ($family['series'] as $series) {
            $values = array_values($series['labels']);
            $more = [];
            if (isset($series['labels'][self::OVERFLOW])) {
                // It has none of its family's labels: an empty one is as good as none.
                $values = array_fill(0, count($labels), '');
                $more = [self::OVERFLOW => 'true'];
            }
            // As the other storages sort them.
            $key = $measures ? base64_encode((string) json_encode($values)) : implode('', $values);
            $samples[] = [$key, $this->series($series['samples'], $name, $family, $values, $more)];
        }
        usort($samples, fn (array $a, array $b) => strcmp($a[0], $b[0]));
        return [
            'name' => $name,
            'help' => $family['help'],
            'type' => $family['type'],
            'labelNames' => $labels,
            'samples' => array_merge(...array_column($samples, 1)),
        ];
    }

    /**
     * Those of any series but the one that counts what overflows.
     *
     * @param mixed[] $family
     * @return string[]
     */
    private static function labelNames(array $family): array
    {
        foreach ($family['series'] as $series) {
            if (!isset($series['labels'][self::OVERFLOW])) {
                return array_map('strval', array_keys($series['labels']));
            }
        }
        return [];
    }

    /**
     * @param mixed[][] $found
     * @param mixed[] $family
     * @param string[] $values
     * @param array<string, string> $more labels beside the family's
     * @return mixed[][]
     */
    private function series(array $found, string $name, array $family, array $values, array $more): array
    {
        $samples = [];
        $shows = $family['type'] !== 'summary';
        $names = array_keys($more);
        $values = array_merge($values, array_values($more));
        $length = strlen($family['name']);
        foreach ($found as $sample) {
            $label_names = $names;
            $label_values = $values;
            if (isset($sample['label'])) {
                $label_names[] = $sample['label'];
                $label_values[] = $this->threshold($sample['labelValue']);
                // Where nothing was observed lately there are no quantiles.
                $shows = $shows || !is_nan((float) $sample['value']);
            }
            $samples[] = [
                'name' => $name . substr($sample['name'], $length),
                'labelNames' => $label_names,
                'labelValues' => $label_values,
                'value' => $sample['value'],
            ];
        }
        if (!$shows) {
            return [];
        }
        if ($family['type'] === 'histogram' || $family['type'] === 'summary') {
            // The count goes before the sum.
            [$sum, $count] = array_splice($samples, -2);
            array_push($samples, $count, $sum);
        }
        return $samples;
    }

    private function threshold(string $text): string
    {
        return $this->thresholds[$text] ??= is_numeric($text) ? (string) (float) $text : $text;
    }
}
