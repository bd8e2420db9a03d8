<?php

declare(strict_types=1);

namespace Talea\Bench;

use Prometheus\Storage\Adapter;

/** Loops of nothing but a call, and of nothing. Each says how many nanoseconds it took. */
final class CallLoops
{
    public static function ofNothing(int $calls): int
    {
        $begun = hrtime(true);
        for ($i = 0; $i < $calls; $i++) {
        }
        return hrtime(true) - $begun;
    }

    /** The metric of a kind for such loops, in a registry of Talea's or of the library's. */
    public static function metric(object $registry, string $kind): object
    {
        return match ($kind) {
            'counter' => $registry->getOrRegisterCounter('test', "call_$kind", 'Help.', ['type']),
            'gauge' => $registry->getOrRegisterGauge('test', "call_$kind", 'Help.', ['type']),
            'histogram' => $registry->getOrRegisterHistogram('test', "call_$kind", 'Help.', ['type'], Engine::BUCKETS),
            'summary' => $registry
                ->getOrRegisterSummary('test', "call_$kind", 'Help.', ['type'], Engine::WINDOW, Engine::QUANTILES),
        };
    }

    /**
     * Of a metric of Talea's or of the library's, which have methods of the same names.
     *
     * @param string[] $values
     */
    public static function ofMetric(object $metric, array $values, int $calls): int
    {
        if (method_exists($metric, 'observe')) {
            $begun = hrtime(true);
            for ($i = 0; $i < $calls; $i++) {
                $metric->observe(1.5, $values);
            }
            return hrtime(true) - $begun;
        }
        $begun = hrtime(true);
        for ($i = 0; $i < $calls; $i++) {
            $metric->inc($values);
        }
        return hrtime(true) - $begun;
    }

    /** @param mixed[] $data */
    public static function ofAdapter(Adapter $adapter, string $kind, array $data, int $calls): int
    {
        $begun = hrtime(true);
        switch ($kind) {
            case 'counter':
                for ($i = 0; $i < $calls; $i++) {
                    $adapter->updateCounter($data);
                }
                break;
            case 'gauge':
                for ($i = 0; $i < $calls; $i++) {
                    $adapter->updateGauge($data);
                }
                break;
            case 'histogram':
                for ($i = 0; $i < $calls; $i++) {
                    $adapter->updateHistogram($data);
                }
                break;
            default:
                for ($i = 0; $i < $calls; $i++) {
                    $adapter->updateSummary($data);
                }
        }
        return hrtime(true) - $begun;
    }

    /**
     * A loop of nothing over these values.
     *
     * @param float[] $observed
     */
    public static function ofValues(array $observed): int
    {
        $begun = hrtime(true);
        foreach ($observed as $value) {
        }
        return hrtime(true) - $begun;
    }

    /**
     * Of a summary or a histogram that observes each of the values.
     *
     * @param float[] $observed
     * @param string[] $values of its labels
     */
    public static function ofObservations(object $metric, array $observed, array $values): int
    {
        $begun = hrtime(true);
        foreach ($observed as $value) {
            $metric->observe($value, $values);
        }
        return hrtime(true) - $begun;
    }

    /**
     * @param mixed[] $data
     * @param float[] $observed
     */
    public static function ofAdapterObservations(Adapter $adapter, array $data, array $observed): int
    {
        $begun = hrtime(true);
        foreach ($observed as $value) {
            $data['value'] = $value;
            $adapter->updateSummary($data);
        }
        return hrtime(true) - $begun;
    }
}
