// The rows of the table of endpoints.

import type { Column, Span } from '../address.ts';
import { printable } from '../printable.ts';
import { type BucketTable, drawn } from './buckets.ts';
import { Sum } from './sum.ts';
import type { Change } from '../protocol.ts';
import { type Timeline, begin } from './timeline.ts';

export interface Row {
  id: number;
  name: string;
  /** The name as it is shown and sorted. */
  title: string;
  family: string;
  sum: Sum;
  /** Requests a second, null where nothing was recorded. */
  rate: number | null;
  inFlight: number | null;
  /** A sparkline of the rates, as the path of an SVG 96 wide and 20 high. */
  trend: string;
}

export function rows(
  timeline: Timeline,
  names: ReadonlyMap<number, { name: string; family: string }>,
  window: Span,
): Row[] {
  const trends = sparklines(timeline, window);
  return [...names].map(([id, { name, family }]) => {
    const sum = timeline.sums.get(id) ?? new Sum();
    return {
      id,
      name,
      title: printable(name),
      family,
      sum,
      rate: timeline.seconds > 0 ? sum.count / timeline.seconds : null,
      inFlight: timeline.inFlight.get(id) ?? null,
      trend: trends(id),
    };
  });
}

const COLUMNS = 48;
const [WIDTH, HEIGHT] = [96, 20];

/** Draws the rates of endpoints over the time that is seen. */
export function sparklines(timeline: Timeline, { from, to }: Span): (id: number) => string {
  const typical = Math.max(1, timeline.seconds / Math.max(1, timeline.bins.length));
  const columns = Math.max(2, Math.min(COLUMNS, Math.floor((to - from) / 1000 / typical)));
  const width = (to - from) / columns;
  // Columns stand at multiples of their width, so that they do not change as time goes on.
  const first = Math.floor(from / width);
  const seconds = new Float64Array(columns + 1);
  const counts = new Map<number, Float64Array>();
  for (const bin of timeline.bins) {
    const [start, length] = [begin(bin), bin.end - begin(bin)];
    const last = Math.min(columns, Math.ceil(bin.end / width) - 1 - first);
    for (let column = Math.max(0, Math.floor(start / width) - first); column <= last; column += 1) {
      const edge = (first + column) * width;
      const share = (Math.min(bin.end, edge + width) - Math.max(start, edge)) / length;
      seconds[column]! += bin.seconds * share;
      for (const [id, [, count]] of bin.endpoints) {
        let of = counts.get(id);
        if (!of) counts.set(id, (of = new Float64Array(columns + 1)));
        of[column]! += count * share;
      }
    }
  }
  const x = Array.from(
    seconds,
    (_, column) => Math.round(((first + column + 0.5) * width - from) * (WIDTH / (to - from)) * 10) / 10,
  );
  return (id) => {
    const of = counts.get(id);
    if (!of) return '';
    const rates = Array.from(of, (count, column) => (seconds[column]! > 0 ? count / seconds[column]! : null));
    const most = Math.max(...rates.map((rate) => rate ?? 0));
    if (most === 0) return '';
    let path = '';
    let isDown = false;
    rates.forEach((rate, column) => {
      if (rate === null) return void (isDown = false);
      path += `${isDown ? 'L' : 'M'}${x[column]} ${Math.round((HEIGHT - 1.5 - (rate / most) * (HEIGHT - 3)) * 10) / 10}`;
      isDown = true;
    });
    return path;
  };
}

/** How much somebody on call wants to see an endpoint: the less, the more. */
const URGENCY = { slower: 0, errors: 0, fewer: 1, more: 2 } as const;

/** Puts the endpoints that are otherwise than usual first, the latest change of the most urgent kind above all. */
export function changedFirst(rows: readonly Row[], changes: readonly Change[]): Row[] {
  const urgency = new Map<string, [number, number]>();
  for (const { endpoint, quantity, since } of changes) {
    const [now, before] = [[URGENCY[quantity], -since] as [number, number], urgency.get(endpoint)];
    if (!before || now[0] < before[0] || (now[0] === before[0] && now[1] < before[1])) urgency.set(endpoint, now);
  }
  const key = ({ name }: Row): [number, number] => urgency.get(name) ?? [Infinity, 0];
  const compared = (a: number, b: number): number => (a < b ? -1 : Number(a > b));
  return [...rows].sort((a, b) => compared(key(a)[0], key(b)[0]) || compared(key(a)[1], key(b)[1]));
}

/** The rows by a column; those of which it is not known come last. */
export function sorted(rows: readonly Row[], column: Column, isDescending: boolean, buckets: BucketTable): Row[] {
  const quantile = (at: number) => (row: Row) => drawn(row.sum.quantiles(buckets)[at] ?? null);
  const values: Record<Exclude<Column, 'name'>, (row: Row) => number | null> = {
    rate: (row) => row.rate,
    errors: (row) => row.sum.errors(),
    p50: quantile(0),
    p90: quantile(1),
    p99: quantile(2),
    inflight: (row) => row.inFlight,
  };
  const byName = (a: Row, b: Row): number => (a.title < b.title ? -1 : a.title > b.title ? 1 : a.id - b.id);
  const sign = isDescending ? -1 : 1;
  if (column === 'name') return [...rows].sort((a, b) => sign * byName(a, b));
  const value = values[column];
  const keyed = rows.map((row) => ({ row, value: value(row) }));
  keyed.sort((a, b) => {
    if (a.value === null || b.value === null)
      return Number(a.value === null) - Number(b.value === null) || byName(a.row, b.row);
    return sign * (a.value - b.value) || byName(a.row, b.row);
  });
  return keyed.map(({ row }) => row);
}
