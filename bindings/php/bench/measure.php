<?php

declare(strict_types=1);

/**
 * One measurement, in a process of its own: experiment, subject and case in, a line of JSON out for
 * each figure as soon as it is known.
 */

namespace Talea\Bench;

require __DIR__ . '/classes.php';

[, $experiment, $subject, $case] = $argv;
$says = function (string $figure, int|float|string $value): void {
    echo json_encode([$figure, $value], JSON_THROW_ON_ERROR), "\n";
};
Experiments::named($experiment)->measure($subject, json_decode($case, true, 8, JSON_THROW_ON_ERROR), $says);
