import { expect, test, vi } from 'vitest';

import { BucketTable } from '../model/buckets.ts';
import { Timeline } from '../model/timeline.ts';

vi.mock('../theme.ts', () => ({ colour: () => '' }));
const { heat, shade } = await import('./heat.ts');

test('buckets of several widths add up, and none is lost', () => {
  const buckets = new BucketTable();
  buckets.add([
    [0, 0.01, 0.0105],
    [1, 0, 0.01],
    [2, 0.01, 1],
    [3, 1, null],
  ]);
  const timeline = Timeline.of(
    [{ t: 1000, s: 2, u: 0, n: 1, e: [[0, 40, 1, null, {}, [0, 10, 1, 10, 2, 10, 3, 10], {}]] }],
    0,
  );
  const found = heat(timeline, (bin) => bin.all, buckets, [0.001, 10], 40);
  const rates = [...found.columns[0]!.rates];
  expect(rates.reduce((sum, rate) => sum + rate, 0)).toBeCloseTo(20);
  // A row is a tenth of a decade: the narrow bucket lies in one, above 10 ms, the wide ones on all of theirs.
  expect(rates[10]).toBeCloseTo(5 + 5 / 20);
  expect(rates[9]).toBeCloseTo(5 / 10);
  expect(rates[35]).toBeCloseTo(5 / 10);
  expect(found.most).toBe(rates[10]);
});

test('shades go from a thousandth of the most to the most', () => {
  expect([0, 1e-9, 0.002, 0.5, 1].map((rate) => shade(rate, 1))).toEqual([-1, 0, 0, 5, 5]);
  expect(shade(1, 0)).toBe(-1);
});
