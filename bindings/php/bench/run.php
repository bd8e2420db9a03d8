<?php

declare(strict_types=1);

/**
 * Talea for PHP beside the engines of promphp/prometheus_client_php, in one run. bench/README.md
 * says how, and what the variables do.
 */

namespace Talea\Bench;

require __DIR__ . '/classes.php';

foreach (['talea', 'apcu', 'pcntl'] as $extension) {
    if (!extension_loaded($extension)) {
        fwrite(STDERR, "bench-php: the extension $extension is missing; scripts/setup --php installs what is needed\n");
        exit(1);
    }
}
$size = new Size();
$subjects = Subject::all();
$figures = new Figures();
$others = new OtherPrograms();
$all = new Rounds($size, $subjects, $figures);
$rounds = $all->run();

$share = $others->share();

$report = new Report($size, $subjects, $figures);
$report->tables();
$most = max(array_column(Experiments::named('operations')->cases($size), 'metrics'));
$budgets = (new Budgets($figures, ['metrics' => $most], Subject::peer()))->all();
$report->budgets($budgets);

echo "\n";
foreach ($all->failures() as $of => $why) {
    echo "Failed: $of: $why\n";
}
if (!Library::isThere()) {
    echo "The library was not measured: PROMPHP=FOLDER names where promphp/prometheus_client_php is.\n";
}
if ($rounds === 0) {
    echo "There was no time for a whole round; MINUTES=20 gives more.\n";
}
printf("%d whole rounds. Others had %.1f %% of the cores' time.%s\n", $rounds, 100 * $share,
    $share > 0.03 ? ' That is too much for figures to be published.' : '');
if (!$size->is_quick && $size->only === null) {
    $path = dirname(__DIR__, 3) . '/bench/results/php.json';
    $report->write($path, $budgets, $rounds, $share);
    echo "The rows are in bench/results/php.json.\n";
}
// A failure of an engine of the library is a finding; Talea must not fail.
exit(preg_grep('/"talea/', array_keys($all->failures())) === [] ? 0 : 1);
