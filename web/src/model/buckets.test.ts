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

test('buckets of several resolutions are put in order by their upper bounds', () => {
  // A classic bucket, a fine one within it, one without an end; their numbers say nothing of the order.
  const buckets = table([0.1, null], [0, 0.1], [0.05, 0.0511], [0.02, 0.1]);
  const found = buckets.quantiles(counts([0, 1], [1, 3], [2, 5], [3, 1]), [0.5, 0.6, 0.9, 0.91]);
  expect(found).toEqual([
    { low: 0.05, high: 0.0511 },
    { low: 0, high: 0.1 },
    { low: 0.02, high: 0.1 },
    { low: 0.1, high: Infinity },
  ]);
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
