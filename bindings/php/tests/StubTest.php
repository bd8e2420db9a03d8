<?php

declare(strict_types=1);

namespace Talea\Tests;

use PHPUnit\Framework\TestCase;

/** The stub for editors and the extension declare the same. */
final class StubTest extends TestCase
{
    private const CLASSES = ['Registry', 'Recorder', 'Counter', 'Gauge', 'Histogram', 'Summary', 'Exception'];

    public function testTheStubDeclaresTheExtension(): void
    {
        $stub = var_export(dirname(__DIR__) . '/talea.stub.php', true);
        $test = var_export(__FILE__, true);
        // In a PHP without the extension, and so without PHPUnit's classes.
        $code = "eval('namespace PHPUnit\\Framework; class TestCase {}'); require $stub; require $test;"
            . 'echo \Talea\Tests\StubTest::declared();';
        exec(escapeshellarg(PHP_BINARY) . ' -n -r ' . escapeshellarg($code), $output, $code);
        self::assertSame(0, $code, implode("\n", $output));
        self::assertSame(implode("\n", $output), self::declared());
    }

    public static function declared(): string
    {
        $lines = [];
        foreach (self::CLASSES as $name) {
            $class = new \ReflectionClass("Talea\\$name");
            $parent = $class->getParentClass();
            $lines[] = ($class->isFinal() ? 'final ' : '') . $name . ($parent ? " of {$parent->getName()}" : '');
            foreach ($class->getMethods() as $method) {
                if ($method->getDeclaringClass()->getName() === $class->getName()) {
                    $lines[] = self::declaration($method);
                }
            }
        }
        return implode("\n", $lines);
    }

    private static function declaration(\ReflectionMethod $method): string
    {
        $parameters = array_map(
            fn (\ReflectionParameter $one) => "{$one->getType()} {$one->getName()}"
                . ($one->isDefaultValueAvailable() ? ' = ' . json_encode($one->getDefaultValue()) : ''),
            $method->getParameters()
        );
        $modifiers = implode(' ', \Reflection::getModifierNames($method->getModifiers()));
        return "$modifiers {$method->getReturnType()} {$method->getName()}(" . implode(', ', $parameters) . ')';
    }
}
