import { expect, test } from 'vitest';

import { quantile } from '../figures.ts';
import { BucketTable, drawn, estimate } from './buckets.ts';

function table(...bounds: [number, number | null][]): BucketTable {
  const buckets = new BucketTable();
  buckets.add(bounds.map(([low, high], id) => [id, low, high]));
  return buckets;
}

const counts = (...pairs: [number, number][]): Map<number, number> => new Map(pairs);

test('a quantile is in the first bucket that reaches its share', () => {
  const buckets = table([0.001, 0.00109], [0.002, 0.00218], [0.1, 0.109]);
  const found = buckets.quantiles(counts([0, 50], [1, 40], [2, 10]), [0.5, 0.9, 0.91, 1]);
  expect(found.map((it) => it?.low)).toEqual([0.001, 0.002, 0.1, 0.1]);
});

test('a quantile over buckets of services with other bounds lies where all of them allow', () => {
  // 100 up to 0.1, and 100 from 0.05 to 0.3; 10 from 1 to 5, and 5 above 2.
  const buckets = table([0, 0.1], [0.05, 0.3], [1, 5], [2, null]);
  const found = buckets.quantiles(counts([0, 100], [1, 100], [2, 10], [3, 5]), [0.2, 0.5, 0.95, 1]);
  expect(found).toEqual([
    { low: 0, high: 0.1 },
    { low: 0.05, high: 0.3 },
    { low: 1, high: 5 },
    { low: 2, high: Infinity },
  ]);
  expect(buckets.overlap(counts([0, 1], [1, 1]))).toBe(true);
  expect(buckets.overlap(counts([0, 1], [2, 1]))).toBe(false);
});

test('a bucket within another is no overlap, and a quantile is in it if enough are', () => {
  const buckets = table([0, 0.1], [0.05, 0.0511], [0.1, null]);
  const all = counts([0, 1], [1, 3], [2, 1]);
  expect(buckets.overlap(all)).toBe(false);
  expect(buckets.quantiles(all, [0.5, 1])).toEqual([
    { low: 0.05, high: 0.0511 },
    { low: 0.1, high: Infinity },
  ]);
  // With more in the wider one it is certain to be in that.
  expect(buckets.quantiles(counts([0, 9], [1, 1]), [0.5])).toEqual([{ low: 0, high: 0.1 }]);
});

test('nothing that was counted has no quantile', () => {
  const buckets = table([0, 1]);
  expect(buckets.quantiles(counts(), [0.5])).toEqual([null]);
  expect(buckets.quantiles(counts([0, 0]), [0.5])).toEqual([null]);
  // A bucket whose bounds were never announced is left out.
  expect(buckets.quantiles(counts([7, 3]), [0.5])).toEqual([null]);
});

test('a quantile is as exact as its bucket', () => {
  expect(quantile({ low: 0.1, high: 0.105 })).toBe('102 ms');
  expect(quantile({ low: 0.1, high: 0.25 })).toBe('<250 ms');
  expect(quantile({ low: 10, high: Infinity })).toBe('>10.0 s');
  expect(quantile(null)).toBe('–');
  expect(estimate({ low: 0.1, high: 0.25 })).toBeNull();
  expect(drawn({ low: 0.1, high: 0.25 })).toBe(0.25);
  expect(drawn({ low: 10, high: Infinity })).toBe(10);
});
