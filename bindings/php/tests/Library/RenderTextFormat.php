<?php

declare(strict_types=1);

namespace Prometheus;

/** A page without a comment and with nothing escaped. */
final class RenderTextFormat
{
    /** @param MetricFamilySamples[] $families */
    public function render(array $families): string
    {
        $page = '';
        foreach ($families as $family) {
            foreach ($family->samples as $sample) {
                $labels = array_combine([...$family->labelNames, ...$sample->labelNames], $sample->labelValues);
                $texts = array_map(fn ($name, $value) => "$name=\"$value\"", array_keys($labels), $labels);
                $page .= sprintf("%s{%s} %s\n", $sample->name, implode(',', $texts), $sample->value);
            }
        }
        return $page;
    }
}
