import { expect, test } from 'vitest';

import type { Change, Endpoint } from '../protocol.ts';
import { BucketTable } from './buckets.ts';
import { changedFirst, rows, sorted } from './rows.ts';
import { Timeline } from './timeline.ts';

const names = new Map([
  [0, { name: 'GET /b', family: 'f' }],
  [1, { name: 'GET /a', family: 'f' }],
  [2, { name: 'GET /c', family: 'f' }],
]);
const buckets = new BucketTable();
buckets.add([
  [0, 1, 1.05],
  [1, 2, 2.1],
]);

function timeline(): Timeline {
  const e: Endpoint[] = [
    [0, 4, 1, 7, { 200: 3, 500: 1 }, [0, 4], {}],
    [1, 8, 1, null, { 200: 8 }, [1, 8], {}],
  ];
  return Timeline.of(
    [2, 3, 4, 9, 10].map((at) => ({ t: at * 1000, s: 1, u: 0, n: 1, e })),
    0,
  );
}

test('every endpoint has a row, requested or not', () => {
  const all = rows(timeline(), names, { from: 0, to: 10_000 });
  expect(all.map(({ name, rate, inFlight }) => [name, rate, inFlight])).toEqual([
    ['GET /b', 4, 7],
    ['GET /a', 8, null],
    ['GET /c', 0, null],
  ]);
  expect(rows(new Timeline(0), names, { from: 0, to: 1 })[0]!.rate).toBeNull();
});

test('rows are sorted by any column, what is unknown last', () => {
  const all = rows(timeline(), names, { from: 0, to: 10_000 });
  const order = (...by: Parameters<typeof sorted> extends [unknown, ...infer Rest, unknown] ? Rest : never): string =>
    sorted(all, ...by, buckets)
      .map(({ name }) => name.slice(-1))
      .join('');
  expect(order('rate', true)).toBe('abc');
  expect(order('rate', false)).toBe('cba');
  expect(order('name', false)).toBe('abc');
  expect(order('name', true)).toBe('cba');
  expect(order('p99', true)).toBe('abc');
  expect(order('p99', false)).toBe('bac');
  expect(order('errors', true)).toBe('bac');
  expect(order('inflight', false)).toBe('bac');
});

test('a sparkline breaks off where nothing was recorded', () => {
  const [first, , last] = rows(timeline(), names, { from: 0, to: 10_000 });
  expect(first!.trend.match(/M/g)).toHaveLength(2);
  expect(first!.trend).not.toContain('NaN');
  expect(last!.trend).toBe('');
});

test('endpoints that changed come first, the latest of the most urgent kind above all', () => {
  const all = rows(timeline(), names, { from: 0, to: 10_000 });
  const change = (endpoint: string, quantity: Change['quantity'], since: number): Change => ({
    endpoint,
    quantity,
    since,
    text: '',
  });
  for (const [changes, expected] of [
    [[], 'bac'],
    [[change('GET /c', 'more', 1)], 'cba'],
    [[change('GET /c', 'more', 9), change('GET /a', 'slower', 1)], 'acb'],
    [[change('GET /c', 'errors', 2), change('GET /a', 'slower', 1)], 'cab'],
    [[change('GET /a', 'fewer', 5), change('GET /c', 'more', 9), change('GET /gone', 'slower', 9)], 'acb'],
  ] as const) {
    const order = changedFirst(all, changes).map(({ name }) => name.slice(-1));
    expect(order.join('')).toBe(expected);
  }
});
