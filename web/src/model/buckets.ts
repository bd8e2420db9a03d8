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
   * Where the quantiles lie, of counts by the number of a bucket. Services count in buckets of their own, which
   * overlap: then the bounds are those that are certain. Null where nothing was counted. The quantiles ascend.
   */
  quantiles(counts: ReadonlyMap<number, number>, quantiles: readonly number[]): (Between | null)[] {
    const byLow = this.filled(counts);
    if (byLow.length === 0) return quantiles.map(() => null);
    const byHigh = [...byLow].sort(([a], [b]) => a.high - b.high);
    const total = byLow.reduce((sum, [, count]) => sum + count, 0);
    let [ended, high, begun, next, low] = [0, 0, 0, 0, byLow[0]![0].low];
    return quantiles.map((quantile) => {
      const rank = Math.max(quantile * total, Number.MIN_VALUE);
      // As many are at most at a bound as are in the buckets that end there or below it.
      while (high < byHigh.length - 1 && ended + byHigh[high]![1] < rank) {
        ended += byHigh[high]![1];
        high += 1;
      }
      // And no more are than are in the buckets that begin below it.
      while (next < byLow.length) {
        const [bucket, count] = byLow[next]!;
        if (bucket.low > low) {
          if (begun >= rank) break;
          low = bucket.low;
        }
        begun += count;
        next += 1;
      }
      return { low, high: byHigh[high]![0].high };
    });
  }

  /** Whether buckets overlap and neither has all of the other, so that their bounds are not comparable. */
  overlap(counts: ReadonlyMap<number, number>): boolean {
    const around: Between[] = [];
    for (const [bucket] of this.filled(counts)) {
      while (around.length && around.at(-1)!.high <= bucket.low) around.pop();
      const outer = around.at(-1);
      if (outer && outer.low < bucket.low && bucket.high > outer.high) return true;
      around.push(bucket);
    }
    return false;
  }

  /** The buckets that hold something, by their lower bounds, the widest first. */
  private filled(counts: ReadonlyMap<number, number>): [Between, number][] {
    const filled: [Between, number][] = [];
    for (const [id, count] of counts) {
      const between = this.bounds.get(id);
      if (between && count > 0) filled.push([between, count]);
    }
    return filled.sort(([a], [b]) => a.low - b.low || b.high - a.high);
  }
}
