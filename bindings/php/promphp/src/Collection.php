<?php

declare(strict_types=1);

namespace Talea\PromPhp;

use Prometheus\MetricFamilySamples;
use Talea\Registry;

/**
 * Families of a region as promphp/prometheus_client_php shows them.
 *
 * @internal
 */
final class Collection
{
    /** The order of the other storages. */
    private const TYPES = ['histogram', 'gauge', 'counter', 'summary'];

    /** @param string $names the family whose label lists the names that got a suffix in the region */
    public function __construct(private readonly Registry $registry, private readonly string $names)
    {
    }

    /**
     * @param float|null $now when windows end, in seconds since 1970; null: now
     * @return MetricFamilySamples[]
     */
    public function samples(?float $now): array
    {
        // The samples have no cycles; PHP's searches for some would take longer than to make the
        // samples.
        $looks_for_cycles = gc_enabled();
        gc_disable();
        try {
            return $this->allSamples($now);
        } finally {
            if ($looks_for_cycles) {
                gc_enable();
            }
        }
    }

    /** @return MetricFamilySamples[] */
    private function allSamples(?float $now): array
    {
        $names = $this->givenNames();
        $by_type = array_fill_keys(self::TYPES, []);
        $this->registry->eachFamily(function (array $family, array $series) use (&$by_type, $names): void {
            if ($series === [] || $family['name'] === $this->names) {
                return;
            }
            $type = $family['type'];
            if (!isset($by_type[$type])) {
                // Infos and states of other programs that share the region.
                $family['type'] = $type = 'gauge';
            }
            if (!isset($family['samples'])) {
                $family['samples'] = self::sorted($series, $type, count($family['labelNames']));
            }
            if (isset($names[$family['name']])) {
                $family['name'] = $name = $names[$family['name']];
                foreach (array_keys($family['samples']) as $place) {
                    $family['samples'][$place]['name'] = $name;
                }
            }
            $by_type[$type][] = new MetricFamilySamples($family);
        }, $now);
        return array_merge(...array_values($by_type));
    }

    /** @return array<string, string> names of counters, by those that the region has */
    private function givenNames(): array
    {
        $names = [];
        $this->registry->eachFamily(function (array $_, array $series) use (&$names): void {
            foreach ($series as [[$name]]) {
                $names["{$name}_total"] = $name;
            }
        }, null, $this->names);
        return $names;
    }

    /**
     * The samples of all series, sorted as the other storages sort them.
     *
     * @param array<array{string[], mixed[][]}> $series
     * @param int $labels how many of a series' label values are those of its family
     * @return mixed[][]
     */
    private static function sorted(array $series, string $type, int $labels): array
    {
        $measures = $type === 'histogram' || $type === 'summary';
        $keys = [];
        foreach ($series as [$values]) {
            $values = array_slice($values, 0, $labels);
            $keys[] = $measures ? base64_encode((string) json_encode($values)) : implode('', $values);
        }
        asort($keys, SORT_STRING);
        $sorted = [];
        foreach (array_keys($keys) as $place) {
            array_push($sorted, ...$series[$place][1]);
        }
        return $sorted;
    }
}
