// The rows of the table of endpoints.

import type { Column } from '../address.ts';
import { printable } from '../printable.ts';
import { type BucketTable, drawn } from './buckets.ts';
import { Sum } from './sum.ts';
import type { Change } from '../protocol.ts';
import type { Timeline } from './timeline.ts';

/** An endpoint as it is listed. */
export interface Name {
  name: string;
  family: string;
  /** The region that counts it; empty where series do not name it. */
  service: string;
}

export interface Row extends Name {
  id: number;
  /** The name as it is shown and sorted, without its service. */
  title: string;
  /** All requests in the time that is seen. */
  sum: Sum;
  /** The latest requests. */
  latest: Sum;
  /** Requests a second, null where nothing was recorded. */
  rate: number | null;
  inFlight: number | null;
}

/** The name of an endpoint without its service, which stands beside it. */
export function titleOf({ name, service }: Pick<Name, 'name' | 'service'>): string {
  const at = service ? ` ${name} `.lastIndexOf(` ${service} `) : -1;
  return printable(at > 0 ? name.slice(0, at - 1) + name.slice(at + service.length) : name);
}

export function rows(timeline: Timeline, names: ReadonlyMap<number, Name>): Row[] {
  const latest = latestOf(timeline);
  return [...names].map(([id, name]) => {
    const sum = timeline.sums.get(id) ?? new Sum();
    return {
      id,
      ...name,
      title: titleOf(name),
      sum,
      latest: latest.get(id) ?? new Sum(),
      rate: timeline.seconds > 0 ? sum.count / timeline.seconds : null,
      inFlight: timeline.inFlight.get(id) ?? null,
    };
  });
}

/** The latest requests are those of so many seconds, and of an endpoint with few of them as many as these. */
const LATEST_SECONDS = 10;
const LATEST_REQUESTS = 20;

/** The latest requests of each endpoint: an average over minutes hides what began seconds ago. */
export function latestOf({ bins }: Timeline): Map<number, Sum> {
  const found = new Map<number, Sum>();
  let seconds = 0;
  for (let at = bins.length - 1; at >= 0; at -= 1) {
    const bin = bins[at]!;
    for (const [id, endpoint] of bin.endpoints) {
      let sum = found.get(id);
      if (!sum) found.set(id, (sum = new Sum()));
      if (seconds < LATEST_SECONDS || sum.count < LATEST_REQUESTS) sum.add(endpoint);
    }
    seconds += bin.seconds;
  }
  return found;
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
  const quantile = (at: number) => (row: Row) => drawn(row.latest.quantiles(buckets)[at] ?? null);
  const values: Record<Exclude<Column, 'name'>, (row: Row) => number | null> = {
    rate: (row) => row.rate,
    errors: (row) => row.latest.errors(),
    p50: quantile(0),
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
