<?php

declare(strict_types=1);

// The benchmark's classes, the adapter's, and those of the library, or the tests' in their place.

spl_autoload_register(function (string $class): void {
    $folders = ['Talea\\Bench\\' => __DIR__ . '/src/', 'Talea\\PromPhp\\' => dirname(__DIR__) . '/promphp/src/'];
    foreach ($folders as $prefix => $folder) {
        if (str_starts_with($class, $prefix)) {
            require $folder . strtr(substr($class, strlen($prefix)), '\\', '/') . '.php';
        }
    }
});
Talea\Bench\Library::load();
