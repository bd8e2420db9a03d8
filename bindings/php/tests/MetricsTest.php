<?php

declare(strict_types=1);

namespace Talea\Tests;

use Talea\Counter;
use Talea\Exception;

final class MetricsTest extends RegionTestCase
{
    public function testACounterGoesUpByWholeAndOtherNumbers(): void
    {
        $registry = $this->registry();
        $counter = $registry->registerCounter('shop', 'orders', 'Orders.', ['country']);
        $counter->inc(['pe']);
        $counter->incBy(2, ['pe']);
        $counter->incBy(0.25, ['pe']);
        $counter->incBy(0.0001, ['ch']);
        $page = $registry->render();
        self::assertHasLine('shop_orders_total{country="pe"} 3.25', $page);
        self::assertHasLine('shop_orders_total{country="ch"} 0.0001', $page);
    }

    /** @dataProvider numbersThatACounterCannotTake */
    public function testACounterTakesNothingThatWouldBringItDown(float $count): void
    {
        $counter = $this->registry()->registerCounter('', 'orders', 'Orders.');
        $this->expectException(Exception::class);
        $this->expectExceptionMessage('orders is a counter, which only goes up');
        $counter->incBy($count);
    }

    /** @return float[][] */
    public function numbersThatACounterCannotTake(): array
    {
        return [[-1.0], [NAN], [INF], [-INF]];
    }

    public function testAGaugeIsSetAndGoesUpAndDown(): void
    {
        $registry = $this->registry();
        $gauge = $registry->registerGauge('', 'queue_length', 'Waiting.', ['queue']);
        $gauge->set(10, ['mail']);
        $gauge->inc(['mail']);
        $gauge->incBy(0.5, ['mail']);
        $gauge->dec(['mail']);
        $gauge->decBy(2, ['mail']);
        self::assertHasLine('queue_length{queue="mail"} 8.5', $registry->render());
        $gauge->set(-INF, ['mail']);
        self::assertHasLine('queue_length{queue="mail"} -Inf', $registry->render());
    }

    public function testAHistogramHasTheBucketsItIsGiven(): void
    {
        $registry = $this->registry();
        $histogram = $registry->registerHistogram('', 'size', 'Sizes.', ['part'], [0.1, 5, 100]);
        foreach ([0.1, 3, 5, 7, 1000] as $size) {
            $histogram->observe($size, ['a']);
        }
        $expected = <<<'END'
            size_bucket{part="a",le="0.1"} 1
            size_bucket{part="a",le="5.0"} 3
            size_bucket{part="a",le="100.0"} 4
            size_bucket{part="a",le="+Inf"} 5
            size_sum{part="a"} 1015.1
            size_count{part="a"} 5
            END;
        self::assertStringContainsString($expected, $registry->render());
    }

    public function testAHistogramHasFourteenBucketsByDefault(): void
    {
        $registry = $this->registry();
        $registry->registerHistogram('', 'size', 'Sizes.')->observe(1);
        preg_match_all('/le="([^"]+)"/', $registry->render(), $found);
        $buckets = explode(' ', '0.005 0.01 0.025 0.05 0.075 0.1 0.25 0.5 0.75 1.0 2.5 5.0 7.5 10.0 +Inf');
        self::assertSame($buckets, $found[1]);
    }

    public function testASummaryOfFewShowsExactQuantiles(): void
    {
        $registry = $this->registry();
        $summary = $registry->registerSummary('', 'wait', 'Waiting.', ['x'], 60, [0.01, 0.5, 0.99]);
        foreach (array_reverse(range(1, 100)) as $i) {
            $summary->observe($i / 7, ['a']);
        }
        self::assertHasLine('wait{x="a",quantile="0.5"} ' . json_encode(50 / 7), $registry->render());
        $values = array_column($registry->families()[0]['samples'], 'value');
        self::assertSame([1 / 7, 50 / 7, 99 / 7], array_slice($values, 0, 3));
    }

    public function testASummarySlidesOverItsWindowAndCountsAllOfTime(): void
    {
        $registry = $this->registry();
        $summary = $registry->registerSummary('', 'wait', 'Waiting.', [], 10, [0.5]);
        foreach (range(1, 9) as $i) {
            $summary->observe($i, [], 1e9 + $i);
        }
        $shown = fn (float $now): array => array_column($registry->families(1e9 + $now)[0]['samples'], 'value');
        self::assertSame([5.0, 9, 45.0], $shown(9));
        self::assertSame([7.0, 4, 30.0], $shown(15.5));
        self::assertSame([], $registry->families(1e9 + 20)[0]['series']);
        self::assertHasLine('wait_count 9', $registry->render());
    }

    public function testASummaryShowsQuantilesWithinTheErrorThatTheDocsState(): void
    {
        $registry = $this->registry();
        $summary = $registry->registerSummary('', 'wait', 'Waiting.', [], 60, [0.5, 0.99]);
        for ($i = 1; $i <= 1000; $i++) {
            $summary->observe($i);
        }
        $values = array_column($registry->families()[0]['samples'], 'value');
        self::assertEqualsWithDelta(500, $values[0], 500 * 0.0109);
        self::assertEqualsWithDelta(990, $values[1], 990 * 0.0109);
        self::assertHasLine('wait_sum 500500', $registry->render());
        self::assertHasLine('wait_count 1000', $registry->render());
    }

    public function testNullFalseTheEmptyTextTrueAndOneAreDifferentLabelValues(): void
    {
        $registry = $this->registry();
        $counter = $registry->registerCounter('', 'calls', 'Calls.', ['with']);
        $amount = 1;
        foreach ([null, false, '', true, 1, 1.5, 0.1 + 0.2, -0.0] as $value) {
            $counter->incBy($amount++, [$value]);
        }
        $page = $registry->render();
        $texts = ['null', 'false', '', 'true', '1', '1.5', (string) (0.1 + 0.2), '-0'];
        foreach ($texts as $i => $text) {
            self::assertHasLine(sprintf('calls_total{with="%s"} %d', $text, $i + 1), $page);
        }
    }

    public function testAnObjectThatHasATextIsALabelValue(): void
    {
        $registry = $this->registry();
        $counter = $registry->registerCounter('', 'calls', 'Calls.', ['by']);
        $counter->inc([new class {
            public function __toString(): string
            {
                return 'the caller';
            }
        }]);
        self::assertHasLine('calls_total{by="the caller"} 1', $registry->render());
    }

    public function testAnExceptionOfALabelObjectIsPassedOn(): void
    {
        $counter = $this->registry()->registerCounter('', 'calls', 'Calls.', ['a', 'by']);
        $this->expectException(\LogicException::class);
        $counter->inc([str_repeat('x', 3), new class {
            public function __toString(): string
            {
                throw new \LogicException('nobody');
            }
        }]);
    }

    public function testAnObjectThatChangesTheLabelsMeanwhileDoesNoHarm(): void
    {
        $registry = $this->registry();
        $counter = $registry->registerCounter('', 'calls', 'Calls.', ['a', 'b', 'c']);
        $labels = [str_repeat('first', 2), null, 'third'];
        $labels[1] = self::replacing($labels);
        $counter->inc($labels);
        self::assertHasLine('calls_total{a="firstfirst",b="second",c="third"} 1', $registry->render());
    }

    public function testAnyPrintableByteAndUtf8IsALabelValue(): void
    {
        $registry = $this->registry();
        $counter = $registry->registerCounter('', 'calls', 'Calls.', ['text']);
        $texts = ["ñandú 東京 🚀", "\u{7f}\u{10ffff}", "line\nend", 'quote"', 'back\\slash', "zero\0"];
        for ($byte = 32; $byte < 127; $byte++) {
            $texts[] = 'with ' . chr($byte);
        }
        foreach ($texts as $text) {
            $counter->inc([$text]);
        }
        $found = array_map(fn (array $one) => $one[0][0], $registry->families()[0]['series']);
        self::assertSame($texts, $found);
    }

    public function testALabelValueThatIsNoUtf8IsRefusedByTheNameOfItsLabel(): void
    {
        $counter = $this->registry()->registerCounter('', 'calls', 'Calls.', ['fine', 'broken', 'other']);
        $this->expectException(Exception::class);
        $this->expectExceptionMessage('the label broken of calls is not UTF-8');
        $counter->inc(['é', "caf\xe9", 'x']);
    }

    /** @dataProvider labelValuesThatAreRefused */
    public function testOtherLabelValuesAreRefusedInWords(string $message, mixed ...$values): void
    {
        $registry = $this->registry();
        $counter = $registry->registerCounter('', 'calls', 'Calls.', ['a', 'b']);
        try {
            $counter->inc($values);
            self::fail('accepted');
        } catch (Exception $e) {
            self::assertSame($message, $e->getMessage());
        }
        self::assertSame([], $registry->families()[0]['series']);
    }

    /** @return mixed[][] */
    public function labelValuesThatAreRefused(): array
    {
        $type = 'the label b of calls is of the type %s; expected a string, a number, a boolean or null';
        return [
            ['calls has 2 labels, and 1 label value was given', 'x'],
            ['calls has 2 labels, and 0 label values were given'],
            ['calls has 2 labels, and 3 label values were given', 'x', 'y', 'z'],
            [sprintf($type, 'array'), 'x', ['y']],
            [sprintf($type, 'stdClass'), 1.5, new \stdClass()],
        ];
    }

    public function testLabelValuesWithNamesAreTakenByName(): void
    {
        $registry = $this->registry();
        $counter = $registry->registerCounter('', 'calls', 'Calls.', ['method', 'country']);
        $counter->inc(['country' => 'pe', 'method' => 'card']);
        $counter->inc(['method' => 'card', 'country' => 'pe']);
        $counter->inc([7 => 'card', 3 => 'pe']);
        self::assertHasLine('calls_total{method="card",country="pe"} 3', $registry->render());
        self::assertTrue($counter->remove(['country' => 'pe', 'method' => 'card']));
        self::assertSame([], $registry->families()[0]['series']);
    }

    /**
     * @dataProvider namesThatAreRefused
     * @param array<string> $values
     */
    public function testANameThatIsNoLabelIsRefusedInWords(string $message, array $values): void
    {
        $registry = $this->registry();
        $counter = $registry->registerCounter('', 'calls', 'Calls.', ['method', 'country']);
        try {
            $counter->inc($values);
            self::fail('accepted');
        } catch (Exception $e) {
            self::assertSame($message, $e->getMessage());
        }
        self::assertSame([], $registry->families()[0]['series']);
    }

    /** @return mixed[][] */
    public function namesThatAreRefused(): array
    {
        $mixed = 'a label value of calls has the key 0, and another one has a name; '
            . 'give all values by label names, or all in the labels\' order';
        return [
            ['calls has no label contry; the label country has no value', ['method' => 'card', 'contry' => 'pe']],
            ['calls has no label ; the label method has no value', ['' => 'card', 'country' => 'pe']],
            [$mixed, ['method' => 'card', 'pe']],
            [$mixed, ['pe', 'country' => 'pe']],
        ];
    }

    public function testAnOnlyLabelHasNoPlural(): void
    {
        $counter = $this->registry()->registerCounter('', 'calls', 'Calls.', ['kind']);
        $this->expectExceptionMessage('calls has 1 label, and 0 label values were given');
        $counter->inc();
    }

    public function testMoreLabelsThanFitInPlaceAreAsGood(): void
    {
        $registry = $this->registry();
        $names = array_map(fn (int $i) => "label$i", range(1, 20));
        $counter = $registry->registerCounter('', 'calls', 'Calls.', $names);
        $counter->inc(range(1, 20));
        [$family] = $registry->families();
        self::assertSame($names, $family['labelNames']);
        self::assertSame(array_map('strval', range(1, 20)), $family['series'][0][0]);
        $this->expectExceptionMessage('the label label20 of calls is of the type array');
        $counter->inc([...range(1, 19), []]);
    }

    public function testASeriesThatIsRemovedIsGoneAndCountsFromNothing(): void
    {
        $registry = $this->registry();
        $gauge = $registry->registerGauge('', 'queue_length', 'Waiting.', ['queue']);
        $gauge->set(5, ['a']);
        $gauge->set(7, ['b']);
        self::assertTrue($gauge->remove(['a']));
        self::assertFalse($gauge->remove(['a']));
        self::assertCount(1, $registry->families()[0]['series']);
        $gauge->inc(['a']);
        self::assertHasLine('queue_length{queue="a"} 1', $registry->render());
    }

    public function testMetricsAreMadeByRegistriesAlone(): void
    {
        $counter = $this->registry()->registerCounter('', 'calls', 'Calls.');
        $refused = 0;
        $ways = [
            fn () => new Counter(),
            fn () => clone $counter,
            fn () => serialize($counter),
            fn () => (new \ReflectionClass(Counter::class))->newInstanceWithoutConstructor(),
        ];
        foreach ($ways as $way) {
            try {
                $way();
            } catch (\Throwable) {
                $refused++;
            }
        }
        self::assertSame(count($ways), $refused);
    }
}
