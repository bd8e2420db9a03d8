<?php

declare(strict_types=1);

// cost.php METRICS WHAT…: creates so many metrics of each type, or wipes them, one after the other.

namespace Talea\Tests;

use Prometheus\Storage\Adapter;
use Talea\PromPhp\Storage;

require __DIR__ . '/Prometheus/Sample.php';
require __DIR__ . '/Prometheus/MetricFamilySamples.php';
require __DIR__ . '/Prometheus/Storage/Adapter.php';
require dirname(__DIR__) . '/promphp/src/Storage.php';

$storage = new Storage();
foreach (array_slice($argv, 2) as $what) {
    if ($what === 'wipe') {
        $storage->wipeStorage();
        continue;
    }
    for ($i = 0; $i < (int) $argv[1]; $i++) {
        $data = ['help' => 'Help.', 'labelNames' => [], 'labelValues' => [], 'value' => 1];
        $command = ['command' => Adapter::COMMAND_INCREMENT_INTEGER];
        $storage->updateCounter(['name' => "counter$i"] + $data + $command);
        $storage->updateGauge(['name' => "gauge$i"] + $data + $command);
        $storage->updateHistogram(['name' => "histogram$i", 'buckets' => [0.1, 1, 10]] + $data);
        $storage->updateSummary(['name' => "summary$i", 'maxAgeSeconds' => 600, 'quantiles' => [0.5]] + $data);
    }
}
