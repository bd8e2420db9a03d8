import { expect, test } from 'vitest';

import cases from '../../crates/talea-statistics/src/figures.json';
import {
  type Unit,
  bytes,
  count,
  duration,
  inUnit,
  measured,
  plain,
  rate,
  share,
  uncertainty,
  unitOf,
  whole,
} from './figures.ts';

test('numbers are those of the reports and of the terminal programs', () => {
  expect(cases.length).toBeGreaterThanOrEqual(30);
  const shown: Record<string, (number: number) => string> = { whole, measured, plain, bytes };
  for (const [kind, value, expected] of cases as [string, number | null, string][]) {
    const show = shown[kind] ?? ((number) => inUnit(number, kind as Unit));
    expect(show(value ?? NaN), `${kind} ${value}`).toBe(expected);
  }
  expect([-4213].map(whole)).toEqual(['-4,213']);
  expect([0, 0.5, 1204].map(rate)).toEqual(['0', '0.500', '1,204']);
  expect([0, 1e-9, 0.0001, 0.05, 1, null].map(share)).toEqual(['0', '<0.01%', '0.01%', '5.00%', '100.0%', '–']);
  expect([count(1, 'series', 'series'), count(2000, 'request')]).toEqual(['1 series', '2,000 requests']);
});

test('values have the unit that their name ends with', () => {
  const shown = (name: string, value: number): string => inUnit(value, unitOf(name));
  expect(shown('memory_bytes', 24_064)).toBe('23.5 KiB');
  expect(shown('delay_seconds_total', 0.0012)).toBe('1.20 ms');
  expect(shown('cpu_cores', 0.42)).toBe('0.420 cores');
  expect(shown('open_fds', 31)).toBe('31');
  expect(shown('bytesize', 1.5)).toBe('1.50');
});

test('lengths of time are short', () => {
  expect([0.4, 61, 119, 121, 150, 300, 3600, 3720, 86_400, 200_000].map(duration)).toEqual([
    '0 s',
    '61 s',
    '119 s',
    '2 min 1 s',
    '2 min 30 s',
    '5 min',
    '1 h',
    '1 h 2 min',
    '24 h',
    '2 d 7 h',
  ]);
});

test('an uncertainty that is small is not 0', () => {
  expect([0, 0.0001, 0.004, 0.2, NaN].map(uncertainty)).toEqual(['', '± <0.1%', '± 0.4%', '± 20.0%', '']);
});
