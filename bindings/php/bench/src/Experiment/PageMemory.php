<?php

declare(strict_types=1);

namespace Talea\Bench\Experiment;

use Talea\Bench\Experiment;
use Talea\Bench\Size;
use Talea\Bench\Subject;

/** Memory that it takes to make a page, beyond the page itself. */
final class PageMemory implements Experiment
{
    private const SERIES_OF_A_FAMILY = 1_000;

    public function title(): string
    {
        return 'Memory to make a page, beyond the page';
    }

    public function cases(Size $size): array
    {
        return [['families' => $size->of(7, 1)]];
    }

    public function takes(string $subject): bool
    {
        return true;
    }

    public function figures(): array
    {
        return ['page' => 'MB', 'beyond, of PHP' => 'MB', 'beyond, of the process' => 'MB'];
    }

    public function measure(string $subject, array $case, callable $says): void
    {
        $engine = Subject::engine($subject);
        for ($i = 0; $i < self::SERIES_OF_A_FAMILY; $i++) {
            for ($family = 0; $family < $case['families']; $family++) {
                $engine->update('histogram', self::name($family), [self::label($i)]);
            }
        }
        $says(self::BEGUN, 0);
        $engine->again();
        gc_collect_cycles();
        gc_mem_caches();
        $before = memory_get_usage();
        $resident_before = self::residentNow();
        if (function_exists('memory_reset_peak_usage')) {
            memory_reset_peak_usage();
        }
        $page = $engine->page();
        // Where nothing makes a page of it, that is what remains.
        $made = $page === null ? $engine->collect() : null;
        $of_page = strlen($page ?? '');
        $says('beyond, of PHP', (memory_get_peak_usage() - $before - $of_page) / 1e6);
        if ($resident_before !== null) {
            $says('beyond, of the process', (self::status('VmHWM') - $resident_before - $of_page) / 1e6);
        }
        if ($page !== null) {
            self::check($page, $case['families']);
            $says('page', $of_page / 1e6);
        }
        unset($made);
    }

    private static function name(int $family): string
    {
        return "response_time_of_the_whole_request_seconds_$family";
    }

    private static function label(int $series): string
    {
        return sprintf('/items/of/a/shop/in/some/street/of/the/town/%04d', $series);
    }

    /** Where there was no room for the last series, the page would be smaller than that of others. */
    private static function check(string $page, int $families): void
    {
        for ($family = 0; $family < $families; $family++) {
            $last = preg_quote(self::label(self::SERIES_OF_A_FAMILY - 1), '/');
            if (!preg_match('/^test_' . self::name($family) . "(_count)?\\{type=\"$last\"/m", $page)) {
                throw new \RuntimeException('the last series of ' . self::name($family) . ' is not on the page');
            }
        }
    }

    /** Has the kernel look for the most anew; null where it may not be asked to. */
    private static function residentNow(): ?int
    {
        return @file_put_contents('/proc/self/clear_refs', '5') === 1 ? self::status('VmRSS') : null;
    }

    private static function status(string $name): int
    {
        preg_match("/^$name:\\s+(\\d+) kB/m", (string) file_get_contents('/proc/self/status'), $found);
        return (int) $found[1] * 1024;
    }
}
