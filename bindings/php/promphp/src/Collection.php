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

    /**
     * Once: the families are gone then.
     *
     * @return MetricFamilySamples[]
     */
    public function samples(): array
    {
        // There are no cycles in what is made here, and PHP would look for them again and again
        // among ever more samples, which takes longer than to make them.
        $looks_for_cycles = gc_enabled();
        gc_disable();
        try {
            return $this->allSamples();
        } finally {
            if ($looks_for_cycles) {
                gc_enable();
            }
        }
    }

    /** @return MetricFamilySamples[] */
    private function allSamples(): array
    {
        $by_type = array_fill_keys(self::TYPES, []);
        // Each goes as soon as it is done, so that what is made next takes its memory.
        $families = $this->families;
        $this->families = [];
        foreach (array_keys($families) as $place) {
            $family = $families[$place];
            unset($families[$place]);
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
        $is_alone = count($family['series']) === 1;
        $samples = [];
        $keys = [];
        foreach ($family['series'] as $series) {
            $values = array_values($series['labels']);
            $more = [];
            if (isset($series['labels'][self::OVERFLOW])) {
                // It has none of its family's labels: an empty one is as good as none.
                $values = array_fill(0, count($labels), '');
                $more = [self::OVERFLOW => 'true'];
            }
            $samples[] = $this->series($series, $name, $family, $values, $more);
            if (!$is_alone) {
                // As the other storages sort them.
                $keys[] = $measures ? base64_encode((string) json_encode($values)) : implode('', $values);
            }
        }
        return [
            'name' => $name,
            'help' => $family['help'],
            'type' => $family['type'],
            'labelNames' => $labels,
            'samples' => $is_alone ? $samples[0] : self::sorted($samples, $keys),
        ];
    }

    /**
     * @param mixed[][][] $samples of each series
     * @param string[] $keys by which the series are sorted
     * @return mixed[][]
     */
    private static function sorted(array $samples, array $keys): array
    {
        asort($keys, SORT_STRING);
        $sorted = [];
        foreach (array_keys($keys) as $place) {
            array_push($sorted, ...$samples[$place]);
        }
        return $sorted;
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
                return array_keys($series['labels']);
            }
        }
        return [];
    }

    /**
     * @param mixed[] $series
     * @param mixed[] $family
     * @param string[] $values
     * @param array<string, string> $more labels beside the family's
     * @return mixed[][]
     */
    private function series(array $series, string $name, array $family, array $values, array $more): array
    {
        $samples = [];
        // Where nothing was observed lately a summary is left out.
        $shows = $family['type'] !== 'summary' || ($series['windowCount'] ?? 0) > 0;
        if (!$shows && isset($series['windowCount'])) {
            return [];
        }
        $names = array_keys($more);
        array_push($values, ...array_values($more));
        $renamed_from = $name === $family['name'] ? null : strlen($family['name']);
        foreach ($series['samples'] as $sample) {
            $label_names = $names;
            $label_values = $values;
            $value = $sample['value'];
            if (isset($sample['label'])) {
                $text = $sample['labelValue'];
                $label_names[] = $sample['label'];
                $label_values[] = $this->thresholds[$text] ??= self::threshold($text);
                // One that keeps no samples has no quantiles then.
                $shows = $shows || $value === $value;
            }
            $samples[] = [
                'name' => $renamed_from === null ? $sample['name'] : $name . substr($sample['name'], $renamed_from),
                'labelNames' => $label_names,
                'labelValues' => $label_values,
                'value' => $value,
            ];
        }
        if (!$shows) {
            return [];
        }
        if ($family['type'] === 'histogram' || $family['type'] === 'summary') {
            // The count goes before the sum.
            $last = count($samples) - 1;
            [$samples[$last - 1], $samples[$last]] = [$samples[$last], $samples[$last - 1]];
            if (isset($series['windowCount'])) {
                // Not those of all time.
                $samples[$last - 1]['value'] = $series['windowCount'];
                $samples[$last]['value'] = $series['windowSum'];
            }
        }
        return $samples;
    }

    private static function threshold(string $text): string
    {
        return is_numeric($text) ? (string) (float) $text : $text;
    }
}
