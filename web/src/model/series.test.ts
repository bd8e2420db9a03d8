import { expect, test } from 'vitest';

import type { Kind, SeriesRange } from '../protocol.ts';
import { SeriesTable } from './series.ts';

function range(kind: Kind, bin: number, values: (number | null)[][]): SeriesRange {
  const times = values[0]!.map((_, at) => (at + 1) * bin * 1000);
  return {
    family: 'x',
    kind,
    bin,
    times,
    lengths: times.map(() => bin),
    more: 0,
    series: values.map((values, id) => ({
      id,
      labels: [
        ['n', String(id)],
        ['all', 'yes'],
      ],
      values,
    })),
  };
}

test('counters are shown as rates, and what is not named did not grow', () => {
  const table = SeriesTable.of(
    range('counter', 1, [
      [10, null],
      [0, 4],
    ]),
  );
  table.add({ t: 4000, s: 2, v: [[0, 7]] });
  expect(table.series.map((it) => table.shown(it))).toEqual([
    [10, null, 3.5],
    [0, 4, 0],
  ]);
  expect(table.times).toEqual([1000, 2000, 4000]);
});

test('gauges keep their value until it changes or they have none', () => {
  const table = SeriesTable.of(range('gauge', 1, [[1], [5]]));
  table.add({ t: 2000, s: 1, v: [[1, 6]] });
  table.add({ t: 3000, s: 1, v: [[0, null]] });
  expect(table.series.map(({ values }) => values)).toEqual([
    [1, 1, null],
    [5, 6, 6],
  ]);
});

test('values of one bin are added up, and known ones are left out', () => {
  const table = SeriesTable.of(range('counter', 10, [[100]]));
  for (const t of [9000, 11_000, 12_000, 12_000, 21_000]) table.add({ t, s: 1, v: [[0, 5]] });
  expect([table.times, table.lengths, table.series[0]!.values]).toEqual([
    [10_000, 12_000, 21_000],
    [10, 2, 1],
    [100, 10, 5],
  ]);
});

test('after the clock was set back, the series begin anew', () => {
  const table = SeriesTable.of(range('counter', 1, [[10, 20]]));
  for (const t of [2000, 3000, 1500, 2500]) table.add({ t, s: 1, v: [[0, t / 500]] });
  expect([table.times, table.series[0]!.values]).toEqual([
    [1500, 2500],
    [3, 5],
  ]);
});

test('new series begin where they are seen, and the least important are counted only', () => {
  const table = SeriesTable.of(range('counter', 1, [[1, 2]]));
  table.meet([
    { id: 0, labels: [] },
    ...Array.from({ length: 150 }, (_, n) => ({ id: n + 1, labels: [['n', `${n}`]] as [string, string][] })),
  ]);
  expect([table.series.length, table.more, table.series[1]!.values]).toEqual([100, 51, [null, null]]);
});

test('a time has the bin that it lies in, and none where nothing was recorded', () => {
  const table = SeriesTable.of(range('gauge', 1, [[1, 2, 3]]));
  table.add({ t: 20_000, s: 1, v: [] });
  expect([1500, 2000, 3300, 10_000, 19_500, 20_000, 30_000, -5000].map((ms) => table.binAt(ms))).toEqual([
    1,
    1,
    2,
    null,
    3,
    3,
    null,
    null,
  ]);
  expect(new SeriesTable().binAt(0)).toBeNull();
});

test('series are found by the values of labels', () => {
  const table = SeriesTable.of(range('gauge', 1, [[1], [2], [3]]));
  expect(
    table
      .matching([
        ['n', '1'],
        ['all', 'yes'],
      ])
      .map(({ id }) => id),
  ).toEqual([1]);
  expect(table.matching([]).length).toBe(3);
  expect(table.matching([['no', 'such']])).toEqual([]);
  expect([...table.labels()]).toEqual([
    ['n', ['0', '1', '2']],
    ['all', ['yes']],
  ]);
});
