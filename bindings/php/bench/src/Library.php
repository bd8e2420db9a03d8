<?php

declare(strict_types=1);

namespace Talea\Bench;

/** promphp/prometheus_client_php, where PROMPHP names its folder. */
final class Library
{
    /** The one that budgets compare with goes first. */
    private const ENGINES = ['APCng', 'APC', 'InMemory'];

    public static function isThere(): bool
    {
        return self::folder() !== '';
    }

    /**
     * Those of its engines that are measured.
     *
     * @return string[]
     */
    public static function engines(): array
    {
        $wanted = preg_split('/[\s,]+/', (string) getenv('PROMPHP_ENGINES'), -1, PREG_SPLIT_NO_EMPTY);
        return self::isThere() ? ($wanted ?: self::ENGINES) : [];
    }

    /** Has its classes be found, or, where it is not there, the few that the adapter makes. */
    public static function load(): void
    {
        $folder = self::folder();
        if ($folder === '') {
            $stubs = dirname(__DIR__, 2) . '/tests/Prometheus';
            require "$stubs/Sample.php";
            require "$stubs/MetricFamilySamples.php";
            require "$stubs/Storage/Adapter.php";
        } elseif (is_file("$folder/vendor/autoload.php")) {
            require "$folder/vendor/autoload.php";
        } elseif (is_dir("$folder/src/Prometheus")) {
            spl_autoload_register(function (string $class) use ($folder): void {
                $path = "$folder/src/" . strtr($class, '\\', '/') . '.php';
                if (str_starts_with($class, 'Prometheus\\') && is_file($path)) {
                    require $path;
                }
            });
        } else {
            throw new \RuntimeException("PROMPHP is $folder, which has neither vendor/autoload.php nor src/Prometheus; "
                . 'expected the folder of promphp/prometheus_client_php');
        }
    }

    private static function folder(): string
    {
        return rtrim((string) getenv('PROMPHP'), '/');
    }
}
