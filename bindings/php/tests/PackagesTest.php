<?php

declare(strict_types=1);

namespace Talea\Tests;

use PHPUnit\Framework\TestCase;

/**
 * The extension's package for PIE, and the adapter's for Composer.
 *
 * @group processes
 */
final class PackagesTest extends TestCase
{
    private const EXTENSION = __DIR__ . '/../composer.json';
    private const ADAPTER = __DIR__ . '/../promphp/composer.json';

    public function testPieKnowsTheExtensionAndItsConfiguration(): void
    {
        $package = self::package(self::EXTENSION);
        self::assertSame('php-ext', $package['type']);
        self::assertTrue(extension_loaded($package['php-ext']['extension-name']));
        $configuration = (string) file_get_contents(__DIR__ . '/../config.m4');
        preg_match_all('/^PHP_ARG_(WITH|ENABLE)\(\[([a-z-]+)\]/m', $configuration, $arguments, PREG_SET_ORDER);
        self::assertSame(
            array_map(fn ($argument) => strtolower($argument[1]) . "-$argument[2]", $arguments),
            array_column($package['php-ext']['configure-options'], 'name')
        );
    }

    public function testTheAdapterWantsTheExtensionAndIsFoundByItsName(): void
    {
        $package = self::package(self::ADAPTER);
        $extension = self::package(self::EXTENSION);
        self::assertArrayHasKey('ext-' . $extension['php-ext']['extension-name'], $package['require']);
        self::assertArrayHasKey($package['name'], $extension['suggest']);
        [$namespace, $folder] = [key($package['autoload']['psr-4']), current($package['autoload']['psr-4'])];
        $class = new \ReflectionClass("{$namespace}Storage");
        self::assertSame(realpath(dirname(self::ADAPTER) . "/{$folder}Storage.php"), $class->getFileName());
    }

    public function testComposerTakesBoth(): void
    {
        exec('command -v composer', $found, $code);
        if ($code !== 0) {
            self::markTestSkipped('composer is not installed');
        }
        self::assertSame('', self::complaints(self::ADAPTER));
        $wrong = sys_get_temp_dir() . '/talea-package-' . getmypid() . '.json';
        file_put_contents($wrong, str_replace('"require"', '"requires"', (string) file_get_contents(self::ADAPTER)));
        self::assertStringContainsString('requires', self::complaints($wrong));
        unlink($wrong);
        // Composers before PIE's time call its section, and nothing else, unknown.
        $unknown = '- The property php-ext is not defined and the definition does not allow additional properties';
        self::assertContains(self::complaints(self::EXTENSION), ['', $unknown]);
    }

    /** The errors and warnings that Composer has of a package, without its explanations. */
    private static function complaints(string $package): string
    {
        // It writes to its home, and would ask whether it may be root.
        $home = sys_get_temp_dir() . '/talea-composer-' . getmypid();
        exec(
            "COMPOSER_HOME=$home COMPOSER_ALLOW_SUPERUSER=1 COMPOSER_DISABLE_NETWORK=1 COMPOSER_NO_INTERACTION=1 "
            . 'composer validate --strict ' . escapeshellarg($package) . ' 2>&1',
            $output,
            $code
        );
        exec('rm -rf ' . escapeshellarg($home));
        $complaints = implode("\n", preg_grep('/^- /', $output) ?: []);
        self::assertSame($code === 0, $complaints === '', implode("\n", $output));
        return $complaints;
    }

    /** @return array<string, mixed> */
    private static function package(string $file): array
    {
        return json_decode((string) file_get_contents($file), true, 512, JSON_THROW_ON_ERROR);
    }
}
