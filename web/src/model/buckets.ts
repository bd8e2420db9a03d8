// Buckets of durations, and quantiles over them.

import type { BucketBounds } from '../protocol.ts';

/** Where a quantile lies: seconds, (low, high]; `high` is infinite if the bucket has no upper bound. */
export interface Between {
  low: number;
  high: number;
}

/** Wider buckets, relative to their bounds, are shown by a bound instead of an estimate. */
const NARROW = 0.1;

/** The estimate with the least relative error, or null where the bucket is wide. */
export function estimate({ low, high }: Between): number | null {
  if (!Number.isFinite(high) || (high - low) / (high + low) > NARROW) return null;
  return (2 * low * high) / (low + high);
}

/** Where a line is drawn: at the estimate, or at the bound that is known. */
export function drawn(between: Between | null): number | null {
  if (!between) return null;
  return estimate(between) ?? (Number.isFinite(between.high) ? between.high : between.low);
}

/** The bounds of the buckets of a run, by their numbers. */
export class BucketTable {
  private readonly bounds = new Map<number, Between>();

  add(buckets: readonly BucketBounds[]): void {
    for (const [id, low, high] of buckets) {
      if (!this.bounds.has(id)) this.bounds.set(id, { low, high: high ?? Infinity });
    }
  }

  get(id: number): Between | undefined {
    return this.bounds.get(id);
  }

  /**
   * The buckets in which the quantiles lie, of counts by the number of a bucket. Null where nothing was
   * counted. The quantiles ascend.
   */
  quantiles(counts: ReadonlyMap<number, number>, quantiles: readonly number[]): (Between | null)[] {
    const ordered: [Between, number][] = [];
    let total = 0;
    for (const [id, count] of counts) {
      const between = this.bounds.get(id);
      if (!between || !(count > 0)) continue;
      ordered.push([between, count]);
      total += count;
    }
    ordered.sort(([a], [b]) => (a.high === b.high ? a.low - b.low : a.high - b.high));
    let cumulative = 0;
    let at = 0;
    return quantiles.map((quantile) => {
      while (at < ordered.length) {
        const [between, count] = ordered[at]!;
        if (cumulative + count >= quantile * total) return between;
        cumulative += count;
        at += 1;
      }
      return ordered.at(-1)?.[0] ?? null;
    });
  }
}
