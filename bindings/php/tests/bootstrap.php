<?php

declare(strict_types=1);

require __DIR__ . '/RegionTestCase.php';
require __DIR__ . '/Prometheus/Sample.php';
require __DIR__ . '/Prometheus/MetricFamilySamples.php';
require __DIR__ . '/Prometheus/Storage/Adapter.php';
require dirname(__DIR__) . '/promphp/src/Collection.php';
require dirname(__DIR__) . '/promphp/src/Storage.php';
