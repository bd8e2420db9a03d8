import { expect, test } from 'vitest';

import type { Endpoint, Point } from '../protocol.ts';
import { BucketTable } from './buckets.ts';
import { Timeline, begin } from './timeline.ts';

const SECOND = 1000;

function endpoint(
  id: number,
  count: number,
  more: Partial<Record<'inFlight' | 'status' | 'bucket', number>> = {},
): Endpoint {
  const statuses = more.status ? { 200: count - more.status, 500: more.status } : { 200: count };
  return [id, count, count * 0.01, more.inFlight ?? null, statuses, [more.bucket ?? 0, count], { complete: count }];
}

function point(second: number, e: Endpoint[] = [endpoint(0, 10)], more: Partial<Point> = {}): Point {
  return { t: second * SECOND, s: 1, u: 0.004, n: 1, e, ...more };
}

const seconds = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, n) => from + n);

test('short ranges keep each point, however its time wavers', () => {
  const timeline = new Timeline(0);
  for (const [t, s] of [
    [10_001, 1.001],
    [11_013, 1.012],
    [11_999, 0.986],
    [13_000, 1.001],
  ] as const) {
    timeline.add({ ...point(0), t, s });
  }
  expect(timeline.bins.map(({ end }) => end)).toEqual([10_001, 11_013, 11_999, 13_000]);
  expect(timeline.gaps(9_000, 13_000)).toEqual([]);
  expect(timeline.all.count / timeline.seconds).toBeCloseTo(10);
});

test('points of one bin are added up', () => {
  const timeline = Timeline.of(
    seconds(101, 111).map((at) => point(at)),
    5,
  );
  expect(timeline.bins.map(({ end, seconds, all }) => [end / SECOND, seconds, all.count])).toEqual([
    [105, 5, 50],
    [110, 5, 50],
  ]);
  expect(timeline.bins[1]!.endpoints.get(0)).toEqual([0, 50, 0.5, null, { 200: 50 }, [0, 50], { complete: 50 }]);
});

test('a point that is known, or late, is not counted twice', () => {
  const timeline = Timeline.of([point(1), point(2), point(3)], 0);
  expect([timeline.add(point(3)), timeline.add(point(2)), timeline.add(point(4))]).toEqual([false, false, true]);
  expect(timeline.all.count).toBe(40);
  expect(timeline.bins).toHaveLength(4);
});

test('a point without a length or a time is refused', () => {
  const timeline = new Timeline(0);
  expect([
    timeline.add(point(1, [], { s: 0 })),
    timeline.add(point(NaN)),
    timeline.add(point(1, [], { s: NaN })),
  ]).toEqual([false, false, false]);
  expect(timeline.bins).toEqual([]);
});

test('what leaves the range leaves no trace in the sums', () => {
  const timeline = new Timeline(0);
  for (const at of seconds(1, 21)) {
    timeline.add(point(at, [endpoint(0, 3, { bucket: at % 7, status: 1 }), endpoint(at % 4, 1, { bucket: 9 })]));
  }
  timeline.trim(15 * SECOND);
  const anew = Timeline.of(
    timeline.bins.map(({ end }) =>
      point(end / SECOND, [
        endpoint(0, 3, { bucket: (end / SECOND) % 7, status: 1 }),
        endpoint((end / SECOND) % 4, 1, { bucket: 9 }),
      ]),
    ),
    0,
  );
  expect(timeline.seconds).toBe(5);
  expect(timeline.all.count).toBe(20);
  for (const id of [0, 1, 2, 3]) {
    const [found, expected] = [timeline.sums.get(id)!, anew.sums.get(id)!];
    expect([found.count, new Map([...found.buckets].sort()), found.statuses]).toEqual([
      expected.count,
      new Map([...expected.buckets].sort()),
      expected.statuses,
    ]);
  }
  timeline.trim(100 * SECOND);
  expect([timeline.seconds, timeline.all.count, timeline.all.buckets.size, timeline.all.seconds]).toEqual([0, 0, 0, 0]);
});

test('time that was not recorded is a gap, and only that', () => {
  const timeline = Timeline.of(
    [...seconds(1, 11), ...seconds(31, 41)].map((at) => point(at)),
    0,
  );
  expect(timeline.gaps(0, 40 * SECOND)).toEqual([{ from: 10 * SECOND, to: 30 * SECOND }]);
  expect(timeline.isAfterGap(10)).toBe(true);
  expect(timeline.isAfterGap(9)).toBe(false);
  // A reading that took long has a long step, and nothing is missing.
  timeline.add(point(50, [], { s: 10 }));
  expect(timeline.gaps(31 * SECOND, 50 * SECOND)).toEqual([]);
  // The begin of the range, before the service was seen first, is a gap too.
  expect(timeline.gaps(-60 * SECOND, 50 * SECOND)[0]).toEqual({ from: -60 * SECOND, to: 0 });
  // The latest second is still to come, a minute is not.
  expect(timeline.gaps(31 * SECOND, 51 * SECOND)).toEqual([]);
  expect(timeline.gaps(31 * SECOND, 110 * SECOND)).toEqual([{ from: 50 * SECOND, to: 110 * SECOND }]);
});

test('a bin that is filled in part does not hide the gap in it', () => {
  const timeline = Timeline.of(
    [...seconds(1, 61), ...seconds(61, 71), ...seconds(181, 241)].map((at) => point(at)),
    60,
  );
  expect(timeline.bins.map(({ seconds }) => seconds)).toEqual([60, 10, 60]);
  expect(begin(timeline.bins[1]!)).toBe(60 * SECOND);
  expect(timeline.gaps(0, 240 * SECOND)).toEqual([{ from: 70 * SECOND, to: 180 * SECOND }]);
});

test('what is in flight stays until it changes', () => {
  const timeline = Timeline.of(
    [
      point(1, [endpoint(0, 1, { inFlight: 5 }), endpoint(1, 1, { inFlight: 2 })]),
      point(2, []),
      point(3, [endpoint(1, 0, { inFlight: 0 })]),
    ],
    0,
  );
  expect(timeline.bins.map(({ inFlight }) => inFlight)).toEqual([7, 7, 5]);
  // From then on it is not known.
  timeline.add(point(4, [endpoint(0, 1)]));
  expect([timeline.bins.at(-1)!.inFlight, timeline.inFlight.get(0)]).toEqual([0, undefined]);
});

test('a copy is not changed by what comes later', () => {
  const timeline = Timeline.of([point(1), point(2), point(3)], 5);
  const copy = timeline.between(0, 3 * SECOND);
  timeline.add(point(4, [endpoint(0, 100, { bucket: 1 })]));
  timeline.trim(4 * SECOND);
  expect(copy.bins.map(({ all, seconds }) => [all.count, seconds])).toEqual([[30, 3]]);
  expect([copy.all.count, copy.sums.get(0)!.count, copy.seconds]).toEqual([30, 30, 3]);
});

test('label values may be any text', () => {
  const hostile = (): Endpoint => [
    0,
    1,
    0.1,
    null,
    JSON.parse('{"__proto__": 1, "constructor": 2}'),
    [],
    JSON.parse('{"toString": 1}'),
  ];
  const timeline = Timeline.of([point(1, [hostile()]), point(2, [hostile()])], 10);
  expect([...timeline.all.statuses]).toEqual([
    ['__proto__', 2],
    ['constructor', 4],
  ]);
  expect(Object.keys(timeline.bins[0]!.endpoints.get(0)![4])).toEqual(['__proto__', 'constructor']);
  expect(timeline.bins[0]!.endpoints.get(0)![6]['toString']).toBe(2);
});

test('quantiles of all endpoints are those of their buckets together', () => {
  const buckets = new BucketTable();
  buckets.add([
    [0, 0.001, 0.00105],
    [1, 0.5, 0.52],
  ]);
  const timeline = Timeline.of([point(1, [endpoint(0, 98, { bucket: 0 }), endpoint(1, 2, { bucket: 1 })])], 0);
  expect(timeline.all.quantiles(buckets).map((it) => it?.low)).toEqual([0.001, 0.001, 0.5]);
  timeline.add(point(2, [endpoint(1, 100, { bucket: 1 })]));
  expect(timeline.all.quantiles(buckets).map((it) => it?.low)).toEqual([0.5, 0.5, 0.5]);
});

test('health numbers are the latest of a bin', () => {
  const h = (cpu_cores: number, open_fds: number) => ({ h: { cpu_cores, open_fds } });
  const timeline = Timeline.of([point(1, [], h(1, 10)), point(2, [], h(2, 20)), point(3, [], h(3, 30))], 10);
  expect(timeline.bins[0]!.health['cpu_cores']).toBe(3);
  expect(timeline.bins[0]!.health['open_fds']).toBe(30);
});

test('the uncertainty of a long time is that of its ends', () => {
  const timeline = Timeline.of(
    seconds(1, 101).map((at) => point(at, [], { u: at === 50 ? 0.9 : 0.01 })),
    0,
  );
  expect(timeline.uncertainty).toBeCloseTo(0.0001);
});
