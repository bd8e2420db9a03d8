<?php

declare(strict_types=1);

namespace Talea\Tests;

use Prometheus\MetricFamilySamples;
use Prometheus\Sample;
use Prometheus\Storage\Adapter;
use Talea\Exception;
use Talea\PromPhp\Storage;
use Talea\Registry;

final class StorageTest extends RegionTestCase
{
    private Registry $registry;
    private Storage $storage;

    protected function setUp(): void
    {
        $this->registry = $this->registry();
        $this->storage = new Storage($this->registry);
    }

    public function testACounterIsCollectedByTheNameThatItWasGiven(): void
    {
        $this->add('test_some_metric', ['a' => 'x'], 3);
        $this->add('test_some_metric', ['a' => 'x'], 0.25, Adapter::COMMAND_INCREMENT_FLOAT);
        $this->add('test_things_total', [], 1);
        [$some, $things] = $this->storage->collect();
        self::assertSame(['test_some_metric', 'counter', 'Help.', ['a']], self::head($some));
        self::assertEquals([['test_some_metric', [], ['x'], 3.25]], self::rows($some));
        self::assertSame(['test_things_total', 'counter', 'Help.', []], self::head($things));
        self::assertEquals([['test_things_total', [], [], 1]], self::rows($things));
        self::assertHasLine('test_some_metric_total{a="x"} 3.25', $this->registry->render());
    }

    public function testValuesAreNotCutToThousandths(): void
    {
        for ($i = 0; $i < 10; $i++) {
            $this->add('small', [], 0.0001, Adapter::COMMAND_INCREMENT_FLOAT);
            $this->gauge('fine', [], 0.00001, Adapter::COMMAND_INCREMENT_FLOAT);
        }
        [$fine, $small] = $this->storage->collect();
        self::assertEqualsWithDelta(0.001, $small->samples[0]->value, 1e-15);
        self::assertEqualsWithDelta(0.0001, $fine->samples[0]->value, 1e-15);
    }

    public function testAHistogramHasItsBucketsThenItsCountThenItsSum(): void
    {
        foreach ([0.05, 3, 5, 1e9] as $value) {
            $this->observe('size', ['part' => 'a'], $value, [0.1, 5, 1e6]);
        }
        $this->observe('alone', [], 2, [1]);
        [$alone, $size] = $this->storage->collect();
        self::assertSame(['size', 'histogram', 'Help.', ['part']], self::head($size));
        self::assertEquals([
            ['size_bucket', ['le'], ['a', '0.1'], 1],
            ['size_bucket', ['le'], ['a', '5'], 3],
            ['size_bucket', ['le'], ['a', '1000000'], 3],
            ['size_bucket', ['le'], ['a', '+Inf'], 4],
            ['size_count', [], ['a'], 4],
            ['size_sum', [], ['a'], 1000000008.05],
        ], self::rows($size));
        self::assertSame('1000000', self::rows($size)[2][2][1]);
        self::assertEquals(['alone_sum', [], [], 2], self::rows($alone)[3]);
    }

    /** A `CollectorRegistry` begins with php_info. */
    public function testNamesThatTheLibraryTakesAreTaken(): void
    {
        $this->gauge('php_info', ['version' => PHP_VERSION], 1, Adapter::COMMAND_SET);
        $this->gauge('users_total', ['le' => 'a', 'quantile' => 'b'], 2, Adapter::COMMAND_SET);
        $this->add('requests_count', [], 3);
        $this->observe('size_sum', [], 4, [1, 2]);
        $this->summarize('wait_bucket', [], 5);
        $found = [];
        foreach ($this->storage->collect() as $family) {
            $found[$family->name] = $family->samples[0]->value;
        }
        self::assertEquals(1, $found['php_info']);
        self::assertEquals(2, $found['users_total']);
        self::assertEquals(3, $found['requests_count']);
        self::assertEquals(5, $found['wait_bucket']);
        self::assertArrayHasKey('size_sum', $found);
    }

    public function testSamplesAreSortedByTheirLabelValues(): void
    {
        foreach (['b', 'a', 'c', 'B', '10', '9'] as $value) {
            $this->add('calls', ['x' => $value], 1);
            $this->observe('size', ['x' => $value], 1, [1]);
        }
        [$size, $calls] = $this->storage->collect();
        self::assertSame(['10', '9', 'B', 'a', 'b', 'c'], array_column(array_column(self::rows($calls), 2), 0));
        $sorted = array_map(fn ($x) => base64_encode(json_encode([$x])), ['b', 'a', 'c', 'B', '10', '9']);
        sort($sorted);
        $found = array_values(array_unique(array_column(array_column(self::rows($size), 2), 0)));
        self::assertSame($sorted, array_map(fn ($x) => base64_encode(json_encode([$x])), $found));
    }

    public function testFamiliesComeByTheirTypes(): void
    {
        $this->add('a', [], 1);
        $this->summarize('b', [], 1);
        $this->gauge('c', [], 1, Adapter::COMMAND_SET);
        $this->observe('d', [], 1, [1]);
        self::assertSame(['d', 'c', 'a', 'b'], array_column($this->storage->collect(), 'name'));
    }

    public function testCollectTakesAnArgumentThatTheInterfaceDoesNotDeclare(): void
    {
        $this->add('calls', [], 1);
        self::assertEquals($this->storage->collect(), $this->storage->collect(false));
    }

    public function testAWipeRemovesAllMetricsAndTheyCountAnew(): void
    {
        $update = function (): void {
            $this->add('a', ['x' => 'y'], 1);
            $this->add('b', [], 1);
            $this->gauge('c', [], 1, Adapter::COMMAND_INCREMENT_INTEGER);
            $this->observe('d', [], 1, [1]);
            $this->summarize('e', [], 1);
        };
        $update();
        $first = $this->storage->collect();
        self::assertCount(5, $first);
        $this->storage->wipeStorage();
        self::assertSame([], $this->storage->collect());
        self::assertSame('', $this->registry->render());
        $update();
        self::assertEquals($first, $this->storage->collect());
    }

    public function testValuesBeforeAWipeTakeNoDigitsFromThoseAfterIt(): void
    {
        $sums = [];
        foreach ([1e15, 0.11] as $value) {
            $this->storage->wipeStorage();
            foreach ([$value, 0.03] as $observed) {
                $this->observe('size', [], $observed, [1]);
                $this->add('calls', [], $observed, Adapter::COMMAND_INCREMENT_FLOAT);
            }
            [$size, $calls] = $this->storage->collect();
            $sums = [self::rows($size)[3][3], self::rows($calls)[0][3]];
        }
        self::assertSame([0.14, 0.14], $sums);
    }

    public function testAfterAWipeAnotherHelpIsShown(): void
    {
        foreach (['First.', 'Second.', 'First.'] as $help) {
            // Another object, as another request has it, and the same one.
            foreach ([new Storage($this->registry), $this->storage] as $storage) {
                $storage->wipeStorage();
                $storage->updateGauge(['help' => $help, 'command' => Adapter::COMMAND_SET]
                    + self::data('length', 'gauge', ['queue' => 'mail'], 1));
                self::assertSame($help, $storage->collect()[0]->help);
            }
        }
    }

    public function testAStorageCountsAnewAtOnceAfterAWipeByAnother(): void
    {
        $path = $this->path();
        $others = new Storage(new Registry($path));
        $this->storage = new Storage(new Registry($path));
        $update = function (): void {
            $this->add('calls', ['x' => 'y'], 1);
            $this->gauge('length', ['x' => 'y'], 1, Adapter::COMMAND_INCREMENT_INTEGER);
            $this->observe('size', ['x' => 'y'], 1, [1]);
            $this->summarize('wait', ['x' => 'y'], 1);
        };
        $update();
        $first = $this->storage->collect();
        $others->wipeStorage();
        $update();
        self::assertEquals($first, $this->storage->collect());
    }

    /** @group processes */
    public function testSoItDoesAfterAWipeByAnotherProcess(): void
    {
        $registry = $this->registry();
        $this->storage = new Storage($registry);
        $this->add('calls', ['x' => 'y'], 5);
        self::inProcesses(1, fn () => $registry->unregister());
        $this->add('calls', ['x' => 'y'], 1);
        self::assertEquals([['calls', [], ['y'], 1]], self::rows($this->storage->collect()[0]));
    }

    public function testAnyPrintableLabelValueComesBack(): void
    {
        $values = ["ñandú 東京 🚀", "line\nend", ':', '', 'null', "'", '"', '\\', '{}', ' '];
        for ($byte = 32; $byte < 127; $byte++) {
            $values[] = 'x' . chr($byte);
        }
        foreach ($values as $value) {
            $this->add('calls', ['text' => $value], 1);
            $this->observe('size', ['text' => $value], 1, [1]);
        }
        sort($values, SORT_STRING);
        [$size, $calls] = $this->storage->collect();
        self::assertSame($values, array_column(array_column(self::rows($calls), 2), 0));
        $found = array_unique(array_column(array_column(self::rows($size), 2), 0));
        sort($found, SORT_STRING);
        self::assertSame($values, $found);
    }

    public function testNullFalseAndTheEmptyTextAreThreeSeries(): void
    {
        foreach ([null, false, ''] as $value) {
            $this->add('calls', ['x' => $value], 1);
        }
        self::assertEquals([['calls', [], [''], 1], ['calls', [], ['false'], 1], ['calls', [], ['null'], 1]],
            self::rows($this->storage->collect()[0]));
    }

    public function testAnObjectThatReplacesTheLabelValuesOfItsDataDoesNoHarm(): void
    {
        $labels = [str_repeat('first', 2), null, 'third'];
        $labels[1] = self::replacing($labels);
        $data = self::data('calls', 'counter', ['a' => '', 'b' => '', 'c' => ''], 1);
        $data['labelValues'] = &$labels;
        $this->storage->updateCounter($data + ['command' => Adapter::COMMAND_INCREMENT_INTEGER]);
        self::assertEquals([['calls', [], ['firstfirst', 'second', 'third'], 1]],
            self::rows($this->storage->collect()[0]));
    }

    public function testALabelValueThatIsNoUtf8IsRefused(): void
    {
        $this->expectException(Exception::class);
        $this->expectExceptionMessage('the label x of calls is not UTF-8');
        $this->add('calls', ['x' => "\xff"], 1);
    }

    /** Databases and environments answer with such strings, and the other storages count them. */
    public function testNumbersInStringsAreNumbers(): void
    {
        $this->add('calls', [], 1);
        $this->storage->updateCounter(['value' => '2'] + self::data('calls', 'counter', [], 0)
            + ['command' => Adapter::COMMAND_INCREMENT_INTEGER]);
        $this->storage->updateGauge(['value' => ' 1.5e1'] + self::data('length', 'gauge', [], 0)
            + ['command' => Adapter::COMMAND_SET]);
        $this->storage->updateHistogram(self::data('size', 'histogram', [], 1) + ['buckets' => ['0.5', '2']]);
        $this->storage->updateSummary(self::data('wait', 'summary', [], 3)
            + ['maxAgeSeconds' => 10, 'quantiles' => ['0.5']]);
        [$size, $length, $calls, $wait] = array_map(self::rows(...), $this->storage->collect());
        self::assertEquals([['calls', [], [], 3]], $calls);
        self::assertEquals([['length', [], [], 15]], $length);
        self::assertEquals([['0.5', 0], ['2', 1], ['+Inf', 1]], array_map(fn ($row) => [$row[2][0], $row[3]], array_slice($size, 0, 3)));
        self::assertEquals(['wait', ['quantile'], ['0.5'], 3], $wait[0]);
        $this->expectException(\TypeError::class);
        $this->expectExceptionMessage('the value of the data is string; expected a number');
        $this->storage->updateCounter(['value' => 'two'] + self::data('calls', 'counter', [], 0)
            + ['command' => Adapter::COMMAND_INCREMENT_INTEGER]);
    }

    public function testAnEmptyHelpIsNoHindrance(): void
    {
        $this->storage->updateGauge(['help' => ''] + self::data('length', 'gauge', [], 1)
            + ['command' => Adapter::COMMAND_SET]);
        self::assertSame(['length', 'gauge', 'length', []], self::head($this->storage->collect()[0]));
    }

    public function testTheOverflowSeriesHasEmptyLabelsOfItsFamily(): void
    {
        for ($i = 0; $i < 10_003; $i++) {
            $this->add('calls', ['a' => $i, 'b' => 'x'], 1);
        }
        $calls = array_values(array_filter($this->storage->collect(), fn ($one) => $one->name === 'calls'));
        self::assertSame(['a', 'b'], $calls[0]->labelNames);
        self::assertEquals(['calls', ['otel_metric_overflow'], ['', '', 'true'], 3], self::rows($calls[0])[0]);
    }

    /** @return mixed[] */
    private static function head(MetricFamilySamples $family): array
    {
        return [$family->name, $family->type, $family->help, $family->labelNames];
    }

    /** @return mixed[][] */
    private static function rows(MetricFamilySamples $family): array
    {
        $row = fn (Sample $one) => [$one->name, $one->labelNames, $one->labelValues, $one->value];
        return array_map($row, $family->samples);
    }

    /**
     * Data as the library passes it on.
     *
     * @param mixed[] $labels
     * @return mixed[]
     */
    private static function data(string $name, string $type, array $labels, int|float $value): array
    {
        return [
            'name' => $name,
            'help' => 'Help.',
            'type' => $type,
            'labelNames' => array_keys($labels),
            'labelValues' => array_values($labels),
            'value' => $value,
        ];
    }

    /** @param mixed[] $labels */
    private function add(string $name, array $labels, int|float $by, int $command = Adapter::COMMAND_INCREMENT_INTEGER): void
    {
        $this->storage->updateCounter(self::data($name, 'counter', $labels, $by) + ['command' => $command]);
    }

    /** @param mixed[] $labels */
    private function gauge(string $name, array $labels, int|float $value, int $command): void
    {
        $this->storage->updateGauge(self::data($name, 'gauge', $labels, $value) + ['command' => $command]);
    }

    /**
     * @param mixed[] $labels
     * @param array<int|float> $buckets
     */
    private function observe(string $name, array $labels, int|float $value, array $buckets): void
    {
        $this->storage->updateHistogram(self::data($name, 'histogram', $labels, $value) + ['buckets' => $buckets]);
    }

    /** @param mixed[] $labels */
    private function summarize(string $name, array $labels, int|float $value): void
    {
        $more = ['maxAgeSeconds' => 10, 'quantiles' => [0.5, 0.99]];
        $this->storage->updateSummary(self::data($name, 'summary', $labels, $value) + $more);
    }
}
