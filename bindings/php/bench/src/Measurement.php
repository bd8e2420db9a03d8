<?php

declare(strict_types=1);

namespace Talea\Bench;

/** A measurement in a process of its own, with a region of its own. */
final class Measurement
{
    /** Seconds that the process may take to prepare. */
    private const PREPARING = 60.0;

    private static int $count = 0;

    /**
     * Its figures, as far as it came; the first of them is Experiment::BEGUN. Beyond its time it is
     * ended.
     *
     * @param array<string, int|string> $case
     * @return array{figures: array<string, float>, is_late: bool}
     * @throws \RuntimeException where it failed
     */
    public static function take(string $experiment, Subject $subject, array $case, float $limit): array
    {
        $region = sprintf('/dev/shm/talea-bench-php-%d-%d', getmypid(), self::$count++);
        $settings = ["talea.region=$region", 'memory_limit=-1', 'display_errors=stderr', ...$subject->settings];
        // The extension as this process has it, where php.ini does not name it.
        $extension = getenv('TALEA_PHP_EXTENSION');
        if ($extension !== false && $extension !== '') {
            $settings[] = "extension=$extension";
        }
        $command = [PHP_BINARY];
        foreach ($settings as $setting) {
            array_push($command, '-d', $setting);
        }
        array_push($command, dirname(__DIR__) . '/measure.php', $experiment, $subject->name, json_encode($case));
        $process = proc_open($command, [1 => ['pipe', 'w'], 2 => ['pipe', 'w']], $pipes);
        if ($process === false) {
            throw new \RuntimeException('could not start ' . PHP_BINARY);
        }
        try {
            [$figures, $is_late] = self::listen($pipes[1], $limit);
            if ($is_late) {
                proc_terminate($process, SIGKILL);
            }
            $said = stream_get_contents($pipes[2]);
        } finally {
            $code = proc_close($process);
            Region::remove($region);
        }
        if (!$is_late && $code !== 0) {
            throw new \RuntimeException(trim($said) ?: "it ended with $code");
        }
        return ['figures' => $figures, 'is_late' => $is_late];
    }

    /**
     * @param resource $output
     * @return array{array<string, float>, bool}
     */
    private static function listen($output, float $limit): array
    {
        $figures = [];
        $until = microtime(true) + self::PREPARING;
        while (!feof($output)) {
            $ready = [$output];
            $none = [];
            $remaining = $until - microtime(true);
            if ($remaining <= 0 || stream_select($ready, $none, $none, 0, (int) (1e6 * min($remaining, 0.9))) === false) {
                return [$figures, true];
            }
            $line = $ready === [] ? false : fgets($output);
            if ($line === false) {
                continue;
            }
            [$figure, $value] = json_decode($line, true, 4, JSON_THROW_ON_ERROR);
            $figures[$figure] = (float) $value;
            if ($figure === Experiment::BEGUN) {
                $until = microtime(true) + $limit;
            }
        }
        return [$figures, false];
    }
}
