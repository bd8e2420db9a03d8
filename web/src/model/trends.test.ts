import { expect, test } from 'vitest';

import type { Endpoint } from '../protocol.ts';
import { BucketTable } from './buckets.ts';
import { Timeline } from './timeline.ts';
import { Trends } from './trends.ts';

const buckets = new BucketTable();
buckets.add([
  [0, 0.02, 0.0201],
  [1, 0.25, 0.2501],
]);

const point = (second: number, e: Endpoint[]) => ({ t: second * 1000, s: 1, u: 0, n: 1, e });
const count = (path: string, letter: string): number => path.split(letter).length - 1;

test('a line breaks off where nothing was recorded', () => {
  const timeline = Timeline.of(
    [2, 3, 4, 9, 10].map((second) => point(second, [[0, 4, 1, 7, { 200: 3, 500: 1 }, [0, 4], {}]])),
    0,
  );
  const trends = new Trends(timeline, { from: 0, to: 10_000 }, buckets);
  for (const path of [trends.rate(0), trends.p99(0), trends.errors(0)]) {
    expect(count(path, 'M')).toBe(2);
    expect(path).not.toContain('NaN');
  }
  expect([trends.rate(5), trends.p99(5), trends.errors(5)]).toEqual(['', '', '']);
});

test('p99 goes on over seconds without a request, and its rise is where the endpoint became slow', () => {
  const points = Array.from({ length: 48 }, (_, at) => {
    const isSlow = at >= 30;
    return point(at + 1, at % 2 === 0 ? [[0, 4, 1, null, {}, [isSlow ? 1 : 0, 4], {}]] : []);
  });
  const trends = new Trends(Timeline.of(points, 0), { from: 0, to: 48_000 }, buckets);
  const path = trends.p99(0);
  expect(count(path, 'M')).toBe(1);
  const places = [...path.matchAll(/[ML]([\d.]+) ([\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)] as const);
  const slow = places.filter(([, y]) => y < 10);
  expect(slow[0]![0]).toBeGreaterThan(trends.at(30_000)!);
  expect(places.every(([x, y]) => y < 10 === x > trends.at(30_000)!)).toBe(true);
  expect([trends.at(-1_000), trends.at(49_000)]).toEqual([null, null]);
});
