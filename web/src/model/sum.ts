// Requests added up over steps or endpoints.

import type { Endpoint } from '../protocol.ts';
import type { Between, BucketTable } from './buckets.ts';

export const QUANTILES = [0.5, 0.9, 0.99] as const;

/** p50, p90 and p99. */
export type Quantiles = readonly (Between | null)[];

export class Sum {
  count = 0;
  seconds = 0;
  readonly statuses = new Map<string, number>();
  readonly buckets = new Map<number, number>();
  readonly outcomes = new Map<string, number>();
  private known: Quantiles | null = null;

  static of(endpoint: Endpoint | null | undefined): Sum {
    const sum = new Sum();
    if (endpoint) sum.add(endpoint);
    return sum;
  }

  add(endpoint: Endpoint): void {
    this.take(endpoint, 1);
  }

  /** Takes back what was added. */
  subtract(endpoint: Endpoint): void {
    this.take(endpoint, -1);
  }

  private take([, count, seconds, , statuses, buckets, outcomes]: Endpoint, sign: 1 | -1): void {
    this.known = null;
    this.count += sign * count;
    this.seconds = this.count > 0 ? this.seconds + sign * seconds : 0;
    for (const key of Object.keys(statuses)) raise(this.statuses, key, sign * statuses[key]!);
    for (const key of Object.keys(outcomes)) raise(this.outcomes, key, sign * outcomes[key]!);
    for (let at = 0; at + 1 < buckets.length; at += 2) {
      raise(this.buckets, buckets[at]!, sign * buckets[at + 1]!);
    }
  }

  /** Adds another sum. */
  join(other: Sum): void {
    this.known = null;
    this.count += other.count;
    this.seconds += other.seconds;
    for (const [key, count] of other.statuses) raise(this.statuses, key, count);
    for (const [key, count] of other.outcomes) raise(this.outcomes, key, count);
    for (const [id, count] of other.buckets) raise(this.buckets, id, count);
  }

  copy(): Sum {
    const copy = new Sum();
    copy.join(this);
    return copy;
  }

  /** The share of statuses that are errors, null where there are none. */
  errors(): number | null {
    const all = total(this.statuses.values());
    return all > 0 ? this.errorCount() / all : null;
  }

  errorCount(): number {
    let errors = 0;
    for (const [status, count] of this.statuses) if (isError(status)) errors += count;
    return errors;
  }

  quantiles(table: BucketTable): Quantiles {
    this.known ??= table.quantiles(this.buckets, QUANTILES);
    return this.known;
  }
}

export const isError = (status: string): boolean => status.startsWith('5');

const FAILURES: readonly string[] = ['aborted', 'panicked', 'timed_out'];

export const isFailure = (outcome: string): boolean => FAILURES.includes(outcome);

function total(counts: Iterable<number>): number {
  let sum = 0;
  for (const count of counts) sum += count;
  return sum;
}

/** Adds to a count; counts that fall to 0 are removed, with what rounding leaves of them. */
function raise<Key>(counts: Map<Key, number>, key: Key, by: number): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count > 1e-9) counts.set(key, count);
  else counts.delete(key);
}

/** Two steps of one endpoint as one; the second is the later one. */
export function joined(one: Endpoint, other: Endpoint): Endpoint {
  return [
    one[0],
    one[1] + other[1],
    one[2] + other[2],
    other[3],
    together(one[4], other[4]),
    [...pairs(one[5], other[5])].flat(),
    together(one[6], other[6]),
  ];
}

function together(one: Record<string, number>, other: Record<string, number>): Record<string, number> {
  // No prototype: a label's value may be any text, `__proto__` too.
  const sums: Record<string, number> = Object.create(null);
  for (const counts of [one, other]) {
    for (const key of Object.keys(counts)) sums[key] = (sums[key] ?? 0) + counts[key]!;
  }
  return sums;
}

function pairs(one: number[], other: number[]): Map<number, number> {
  const sums = new Map<number, number>();
  for (const buckets of [one, other]) {
    for (let at = 0; at + 1 < buckets.length; at += 2) {
      sums.set(buckets[at]!, (sums.get(buckets[at]!) ?? 0) + buckets[at + 1]!);
    }
  }
  return sums;
}
