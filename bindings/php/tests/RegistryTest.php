<?php

declare(strict_types=1);

namespace Talea\Tests;

use Talea\Exception;
use Talea\Registry;

final class RegistryTest extends RegionTestCase
{
    public function testASecondRegistrationIsRefusedAndGetOrRegisterFindsTheFirst(): void
    {
        $registry = $this->registry();
        $counter = $registry->registerCounter('shop', 'orders', 'Orders.', ['country']);
        self::assertSame($counter, $registry->getOrRegisterCounter('shop', 'orders', 'Orders.'));
        self::assertSame($counter, $registry->getCounter('shop', 'orders'));
        $this->expectException(Exception::class);
        $this->expectExceptionMessage('shop_orders is registered already');
        $registry->registerCounter('shop', 'orders', 'Orders.', ['country']);
    }

    public function testAMetricThatIsNotRegisteredIsNotFound(): void
    {
        $registry = $this->registry();
        $registry->registerCounter('shop', 'orders', 'Orders.');
        $this->expectException(Exception::class);
        $this->expectExceptionMessage('shop_orders is not registered here');
        $registry->getGauge('shop', 'orders');
    }

    public function testAHelpThatChangedIsNoHindranceToAProcessThatKnowsTheOldOne(): void
    {
        $path = $this->path();
        (new Registry($path))->registerCounter('', 'calls', 'Calls.')->inc();
        (new Registry($path))->registerCounter('', 'calls', 'How often it was called.')->inc();
        self::assertHasLine('calls_total 2', (new Registry($path))->render());
    }

    public function testAnotherDefinitionOfANameCountsByItselfAndOneLineOfTheLogNamesIt(): void
    {
        $code = 'for ($i = 0; $i < 3; $i++) {'
            . ' (new Talea\Registry())->getOrRegisterHistogram("", "size", "Sizes.", [], [1, 2])->observe(1);'
            . ' (new Talea\Registry())->getOrRegisterHistogram("", "size", "Sizes.", [], [1, 2, 3])->observe(1);'
            . ' (new Talea\Registry())->getOrRegisterGauge("", "size", "Sizes.")->set(7);'
            . ' (new Talea\Registry())->getOrRegisterCounter("", "calls", "Calls.", ["a"])->inc(["x"]);'
            . ' (new Talea\Registry())->getOrRegisterCounter("", "calls", "Calls.", ["a", "b"])->inc(["x", "y"]); }'
            . ' echo (new Talea\Registry())->render();';
        $output = self::runPhp($code, ['error_log' => '', 'log_errors' => '1']);
        // Kinds and buckets cannot be joined: the newest is shown. Labels can.
        self::assertHasLine('size 7', $output);
        self::assertHasLine('calls_total{a="x"} 3', $output);
        self::assertHasLine('calls_total{a="x",b="y"} 3', $output);
        self::assertSame(2, substr_count($output, 'talea: size is defined in two ways by this process'), $output);
        self::assertSame(1, substr_count($output, 'talea: calls is defined in two ways by this process'), $output);
    }

    /** @dataProvider spellingsOfOneCounter */
    public function testTwoCountersThatAreOneAreNamedByOneLineOfTheLog(string $first, string $second, string $line): void
    {
        $registry = '(new Talea\Registry())->getOrRegisterCounter("", "%s", "Jobs.")->inc();';
        $recorder = '(new Talea\Recorder(new Talea\Registry()))->counter(["name" => "%s", "help" => "Jobs.", "value" => 1,'
            . ' "labelNames" => [], "labelValues" => [], "command" => 1]);';
        foreach ([$registry, $recorder] as $count) {
            $once = sprintf($count . $count, $first, $second);
            $code = "for (\$i = 0; \$i < 3; \$i++) { $once } echo (new Talea\Registry())->render();";
            $output = self::runPhp($code, ['error_log' => '', 'log_errors' => '1']);
            self::assertHasLine('jobs_total 6', $output);
            self::assertSame(1, substr_count($output, $line), $output);
            self::assertSame(1, substr_count($output, 'the two are one metric'), $output);
        }
    }

    /** @return string[][] */
    public function spellingsOfOneCounter(): array
    {
        return [
            ['jobs', 'jobs_total', 'talea: the counter jobs_total is also registered without _total;'],
            ['jobs_total', 'jobs', 'talea: the counter jobs is also registered with _total;'],
        ];
    }

    /** @dataProvider definitionsThatAreRefused */
    public function testADefinitionThatCannotBeIsRefusedInWords(string $message, callable $register): void
    {
        $registry = $this->registry();
        $registry->registerCounter('', 'calls_total', 'Calls.', ['a']);
        $this->expectException(Exception::class);
        $this->expectExceptionMessage($message);
        $register($registry);
    }

    /** @return mixed[][] */
    public function definitionsThatAreRefused(): array
    {
        return [
            ['the help is empty', fn (Registry $r) => $r->registerGauge('', 'x', '')],
            ['the help of "x": a text is not UTF-8', fn (Registry $r) => $r->registerGauge('', 'x', "caf\xe9")],
            ['letters', fn (Registry $r) => $r->registerGauge('', 'a metric', 'X.')],
            ['letters', fn (Registry $r) => $r->registerGauge('', 'x', 'X.', ['a label'])],
            ['of the type int', fn (Registry $r) => $r->registerGauge('', 'x', 'X.', [1])],
            ['there is no bucket', fn (Registry $r) => $r->registerHistogram('', 'x', 'X.', [], [])],
            ['a bucket is of the type string',
                fn (Registry $r) => $r->registerHistogram('', 'x', 'X.', [], ['x'])],
            ['bucket', fn (Registry $r) => $r->registerHistogram('', 'x', 'X.', [], [2, 1])],
            ['there is no quantile', fn (Registry $r) => $r->registerSummary('', 'x', 'X.', [], 60, [])],
            ['quantile', fn (Registry $r) => $r->registerSummary('', 'x', 'X.', [], 60, [1.5])],
            ['maxAgeSeconds of x is 0', fn (Registry $r) => $r->registerSummary('', 'x', 'X.', [], 0)],
        ];
    }

    /**
     * @testWith ["5"]
     *           ["14"]
     *           ["17"]
     *           ["-1"]
     */
    public function testThresholdsAreTheirShortestTextWhateverThePrecision(string $precision): void
    {
        $code = '$r = new Talea\Registry(); $h = $r->registerHistogram("", "size", "Sizes.", ["of"], [0.1, 1/3, 1]);'
            . '$h->observe(1, ["a"]); $h->observe(1, ["b"]); foreach ($r->families()[0]["series"] as [$of, $samples])'
            . ' foreach ($samples as $s) echo implode(",", $s["labelValues"]), ";";';
        $bounds = fn (string $of): string => "$of,0.1;$of,0.3333333333333333;$of,1;$of,+Inf;$of;$of;";
        $output = self::runPhp($code, ['precision' => $precision]);
        self::assertSame($bounds('a') . $bounds('b'), $output);
    }

    public function testAPageIsInTheFormatThatIsAskedFor(): void
    {
        $registry = $this->registry();
        $registry->registerCounter('', 'calls', 'Calls.')->inc();
        self::assertSame("# HELP calls_total Calls.\n# TYPE calls_total counter\ncalls_total 1\n", $registry->render());
        $openmetrics = 'application/openmetrics-text; version=1.0.0';
        self::assertStringEndsWith("# EOF\n", $registry->render($openmetrics));
        self::assertStringStartsWith('text/plain; version=0.0.4', Registry::contentType());
        self::assertStringStartsWith($openmetrics, Registry::contentType($openmetrics));
    }

    public function testALargePageIsThereOnceWhileItIsMade(): void
    {
        $registry = $this->registry();
        $counter = $registry->registerCounter('', 'calls', 'Calls.', ['text']);
        for ($i = 0; $i < 9000; $i++) {
            $counter->inc([str_repeat('long ', 200) . $i]);
        }
        gc_collect_cycles();
        if (!function_exists('memory_reset_peak_usage')) {
            self::markTestSkipped('this PHP cannot measure the peak of a part');
        }
        memory_reset_peak_usage();
        $before = memory_get_usage();
        $page = $registry->render();
        self::assertGreaterThan(9_000_000, strlen($page));
        self::assertSame(9002 , substr_count($page, "\n"));
        self::assertLessThan(strlen($page) + (1 << 20), memory_get_peak_usage() - $before);
    }

    public function testWipedMetricsCountFromNothing(): void
    {
        $registry = $this->registry();
        $counter = $registry->registerCounter('', 'calls', 'Calls.', ['a']);
        $alone = $registry->registerCounter('', 'alone', 'Alone.');
        $counter->inc(['x']);
        $alone->incBy(5);
        $registry->wipe();
        self::assertStringNotContainsString('calls_total{', $registry->render());
        $counter->inc(['x']);
        $alone->inc();
        self::assertHasLine('calls_total{a="x"} 1', $registry->render());
        self::assertHasLine('alone_total 1', $registry->render());
    }

    public function testAFamilyThatEndedIsGoneUntilItIsRegisteredAgain(): void
    {
        $registry = $this->registry();
        $registry->registerCounter('', 'calls', 'Calls.')->inc();
        $registry->registerGauge('', 'stays', 'Stays.')->set(1);
        self::assertSame(1, $registry->unregister('calls_total'));
        self::assertSame(0, $registry->unregister('calls_total'));
        self::assertSame("# HELP stays Stays.\n# TYPE stays gauge\nstays 1\n", $registry->render());
        $registry->registerCounter('', 'calls', 'Calls.')->incBy(3);
        self::assertHasLine('calls_total 3', $registry->render());
        self::assertSame(2, $registry->unregister());
        self::assertSame('', $registry->render());
    }

    public function testARegionThatIsNotOnTmpfsIsRefused(): void
    {
        $this->expectException(Exception::class);
        $this->expectExceptionMessage('is not on tmpfs');
        new Registry(__DIR__ . '/region');
    }

    public function testAnEmptyPathIsRefused(): void
    {
        $this->expectException(Exception::class);
        new Registry('');
    }

    public function testFamiliesAreHandedOverOneByOneAndAnExceptionEndsThat(): void
    {
        $registry = $this->registry();
        $counter = $registry->registerCounter('', 'a', 'A.', ['x', 'y']);
        $counter->incBy(2, ['1', '']);
        $counter->inc(['0', '2']);
        $registry->registerHistogram('', 'b', 'B.', ['x'], [0.5, 1e6])->observe(0.75, ['z']);
        $all = [];
        $registry->eachFamily(function (array $family, array $series) use (&$all): void {
            $all[] = [$family, $series];
        });
        $sample = fn (string $name, array $names, array $values, int|float $value): array =>
            ['name' => $name, 'labelNames' => $names, 'labelValues' => $values, 'value' => $value];
        $of_b = [
            $sample('b_bucket', ['le'], ['z', '0.5'], 0),
            $sample('b_bucket', ['le'], ['z', '1000000'], 1),
            $sample('b_bucket', ['le'], ['z', '+Inf'], 1),
            $sample('b_count', [], ['z'], 1),
            $sample('b_sum', [], ['z'], 0.75),
        ];
        self::assertSame([
            [
                ['name' => 'a_total', 'type' => 'counter', 'help' => 'A.', 'labelNames' => ['x', 'y']],
                [
                    [['1', ''], [$sample('a_total', [], ['1', ''], 2.0)]],
                    [['0', '2'], [$sample('a_total', [], ['0', '2'], 1.0)]],
                ],
            ],
            [
                ['name' => 'b', 'type' => 'histogram', 'help' => 'B.', 'labelNames' => ['x'], 'samples' => $of_b],
                [[['z'], $of_b]],
            ],
        ], $all);

        $found = [];
        $take = function (array $family) use (&$found): void {
            $found[] = $family['name'];
        };
        $registry->eachFamily($take, null, 'b');
        self::assertSame(['b'], $found);
        $times = 0;
        try {
            $registry->eachFamily(function () use (&$times): void {
                $times++;
                throw new \RuntimeException('enough');
            });
            self::fail('it was swallowed');
        } catch (\RuntimeException $e) {
            self::assertSame(['enough', 1], [$e->getMessage(), $times]);
        }
        // The function may do anything with the registry.
        $registry->eachFamily(fn () => $registry->unregister());
        self::assertSame('', $registry->render());
    }
}
