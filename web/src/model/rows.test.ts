import { expect, test } from 'vitest';

import type { Change, Endpoint } from '../protocol.ts';
import { BucketTable } from './buckets.ts';
import { changedFirst, latestOf, rows, sorted, titleOf } from './rows.ts';
import { Timeline } from './timeline.ts';

const names = new Map([
  [0, { name: 'GET /b', family: 'f', service: '' }],
  [1, { name: 'GET /a', family: 'f', service: '' }],
  [2, { name: 'GET /c', family: 'f', service: '' }],
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
  const all = rows(timeline(), names);
  expect(all.map(({ name, rate, inFlight }) => [name, rate, inFlight])).toEqual([
    ['GET /b', 4, 7],
    ['GET /a', 8, null],
    ['GET /c', 0, null],
  ]);
  expect(rows(new Timeline(0), names)[0]!.rate).toBeNull();
});

test('rows are sorted by any column, what is unknown last', () => {
  const all = rows(timeline(), names);
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

test('endpoints that changed come first, the latest of the most urgent kind above all', () => {
  const all = rows(timeline(), names);
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

test('the title of an endpoint lacks its service, whatever that is called', () => {
  for (const [name, service, title] of [
    ['GET /a', '', 'GET /a'],
    ['GET /a shop', 'shop', 'GET /a'],
    ['GET /shop shop', 'shop', 'GET /shop'],
    ['GET /a eu shop web', 'shop', 'GET /a eu web'],
    ['GET /a /a', '/a', 'GET /a'],
    ['GET /a GET', 'GET', 'GET /a'],
    ['GET /a a b', 'a b', 'GET /a'],
    ['GET /a $& (', '$& (', 'GET /a'],
    ['GET /a \u202e', '\u202e', 'GET /a'],
    // No part of a word is left out, nor all.
    ['GET /workshop', 'shop', 'GET /workshop'],
    ['shop', 'shop', 'shop'],
  ] as const) {
    expect(titleOf({ name, service })).toBe(title);
  }
});

test('the latest requests are of ten seconds, and of a rare endpoint as many as twenty', () => {
  const points = Array.from({ length: 100 }, (_, at) => ({
    t: (at + 1) * 1000,
    s: 1,
    u: 0,
    n: 1,
    e: [[0, 7, 1, null, {}, [0, 7], {}], ...(at % 4 === 0 ? [[1, 1, 1, null, {}, [1, 1], {}]] : [])] as Endpoint[],
  }));
  const latest = latestOf(Timeline.of(points, 0));
  expect([latest.get(0)!.count, latest.get(1)!.count, latest.get(2)]).toEqual([70, 20, undefined]);
  // A day in wide bins: the last one.
  const [first] = points;
  const wide = Timeline.of([first!, { ...first!, t: 200_000, s: 180 }], 180);
  expect(latestOf(wide).get(0)!.count).toBe(14);
});

test('errors are those of the latest requests: a mean of minutes would hide them', () => {
  const points = Array.from({ length: 300 }, (_, at) => ({
    t: (at + 1) * 1000,
    s: 1,
    u: 0,
    n: 1,
    e: [
      [0, 10, 1, null, { '2xx': 10 }, [0, 10], {}],
      [1, 10, 1, null, at < 290 ? { '2xx': 10 } : { '5xx': 10 }, [0, 10], {}],
    ] as Endpoint[],
  }));
  const all = rows(Timeline.of(points, 0), names);
  expect(all.slice(0, 2).map(({ latest, sum }) => [latest.errors(), sum.errors()! < 0.04])).toEqual([
    [0, true],
    [1, true],
  ]);
  expect(sorted(all, 'errors', true, buckets)[0]!.id).toBe(1);
});
