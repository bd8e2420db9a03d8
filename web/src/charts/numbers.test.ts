import { expect, test } from 'vitest';

import { even } from './numbers.ts';

test('an axis of whole numbers ends above all of them, and its half is whole', () => {
  for (const [most, end] of [
    [0, 2],
    [1, 2],
    [2, 2],
    [3, 4],
    [99, 100],
    [101, 120],
    [250, 260],
    [12_345, 14_000],
  ] as const) {
    expect(even(most)).toBe(end);
    expect(Number.isInteger(even(most) / 2) && even(most) >= most).toBe(true);
  }
});
