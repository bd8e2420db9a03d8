<?php

declare(strict_types=1);

namespace Talea\Tests;

use Prometheus\Expected;
use Prometheus\Sample;
use Prometheus\Storage\Adapter;
use Talea\PromPhp\Storage;
use Talea\Registry;

require_once __DIR__ . '/Library/Expected.php';

final class RandomStorageTest extends RegionTestCase
{
    private const LABELS = [[], ['x'], ['x', 'y']];
    private const TEXTS = ['a', 'b', '', '1', '01', '1.0', ' ', "ü\n", '"\\', 'null', ':', "\0", '{}', 'é'];
    private const NUMBERS = [0, 1, 2, 5, 0.1, 0.5, 2.5, -0.5, -1, 1e3, 123456789, 1e12, 1e-9];

    private Expected $expected;
    private Storage $storage;

    /** @dataProvider seeds */
    public function testAnyUpdatesAreCollectedAsTheLibraryCollectsThem(int $seed): void
    {
        mt_srand($seed);
        $this->expected = $expected = new Expected();
        $clock = static fn (): float => $expected->now;
        $path = $this->path();
        $this->storage = new Storage(new Registry($path), $clock);
        for ($i = 0; $i < 300; $i++) {
            $step = mt_rand(0, 99);
            if ($step < 88) {
                $this->update();
            } elseif ($step < 92) {
                $this->expected->now += self::pick([0.25, 1.5, 4, 30]);
            } elseif ($step < 93) {
                $this->expected->wipe();
                $this->storage->wipeStorage();
            } elseif ($step < 96) {
                $this->storage = new Storage(new Registry($path), $clock);
            } else {
                self::assertEqualsWithDelta($this->expected->collected(), $this->collected(), 1e-6, "seed $seed, $i");
            }
        }
    }

    /** @return int[][] */
    public function seeds(): array
    {
        return array_map(fn (int $seed) => [$seed], range(1, 10));
    }

    /** An update of one of a few series. */
    private function update(): void
    {
        $type = self::pick(['Counter', 'Gauge', 'Histogram', 'Summary']);
        $labels = self::pick(self::LABELS);
        $variant = mt_rand(0, 1);
        $name = $type . count($labels) . ($type === 'Counter' && $variant ? '_total' : $variant);
        $value = self::pick(self::NUMBERS);
        $data = [
            'name' => strtolower($name),
            'help' => 'Help.',
            'type' => strtolower($type),
            'labelNames' => $labels,
            'labelValues' => array_map(fn () => self::pick(self::TEXTS), $labels),
            'value' => $type === 'Counter' ? abs($value) : $value,
        ] + match ($type) {
            'Histogram' => ['buckets' => $variant ? [0.1, 1, 5, 1e6] : [-1, 0, 2.5]],
            'Summary' => ['maxAgeSeconds' => $variant ? 10 : 60, 'quantiles' => [0.25, 0.5, 0.75]],
            default => ['command' => self::pick([
                Adapter::COMMAND_INCREMENT_INTEGER, Adapter::COMMAND_INCREMENT_FLOAT, Adapter::COMMAND_SET,
            ])],
        };
        $this->expected->update($data);
        $this->storage->{"update$type"}($data);
    }

    /** @return array<string, array{string, string[], mixed[][]}> as `Expected` has it */
    private function collected(): array
    {
        $row = fn (Sample $one) => [$one->name, $one->labelNames, $one->labelValues, $one->value];
        $collected = [];
        foreach ($this->storage->collect() as $family) {
            $samples = array_map($row, $family->samples);
            $collected["$family->type $family->name"] = [$family->help, $family->labelNames, $samples];
        }
        ksort($collected);
        return $collected;
    }

    private static function pick(array $of): mixed
    {
        return $of[mt_rand(0, count($of) - 1)];
    }
}
