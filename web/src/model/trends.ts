// Small lines of one endpoint over the time that is seen, as paths of an SVG.

import type { Span } from '../address.ts';
import { type BucketTable, drawn } from './buckets.ts';
import { Sum } from './sum.ts';
import { type Bin, type Timeline, begin } from './timeline.ts';

export const [WIDTH, HEIGHT] = [96, 20];
const COLUMNS = 48;

/** The time that is seen in columns, each as wide as the others. */
export class Trends {
  private readonly columns: Bin[][];
  /** Where the columns are, from the left. */
  private readonly x: number[];
  private readonly place: (ms: number) => number;

  constructor(
    timeline: Timeline,
    { from, to }: Span,
    private readonly buckets: BucketTable,
  ) {
    const typical = Math.max(1, timeline.seconds / Math.max(1, timeline.bins.length));
    const count = Math.max(2, Math.min(COLUMNS, Math.floor((to - from) / 1000 / typical)));
    const width = (to - from) / count;
    // Columns stand at multiples of their width, so that they do not change as time goes on.
    const first = Math.floor(from / width);
    this.columns = Array.from({ length: count + 1 }, () => []);
    for (const bin of timeline.bins) {
      this.columns[Math.floor((begin(bin) + bin.end) / 2 / width) - first]?.push(bin);
    }
    this.place = (ms) => tenths(((ms - from) / (to - from)) * WIDTH);
    this.x = this.columns.map((_, column) => this.place((first + column + 0.5) * width));
  }

  /** p99 over time. */
  p99(id: number): string {
    return this.path((bins) => drawn(this.sumOf(bins, id).quantiles(this.buckets)[2] ?? null));
  }

  /** The share of errors over time. */
  errors(id: number): string {
    return this.path((bins) => this.sumOf(bins, id).errors());
  }

  /** Requests a second over time. */
  rate(id: number): string {
    return this.path((bins) => {
      let [count, seconds] = [0, 0];
      for (const bin of bins) {
        count += bin.endpoints.get(id)?.[1] ?? 0;
        seconds += bin.seconds;
      }
      return seconds > 0 ? count / seconds : null;
    });
  }

  /** Where a time is, or null if it is not seen. */
  at(ms: number): number | null {
    const x = this.place(ms);
    return x >= 0 && x <= WIDTH ? x : null;
  }

  private sumOf(bins: readonly Bin[], id: number): Sum {
    const sum = new Sum();
    for (const bin of bins) {
      const endpoint = bin.endpoints.get(id);
      if (endpoint) sum.add(endpoint);
    }
    return sum;
  }

  /** A line from 0 to the greatest value; it breaks off where nothing was recorded, and goes on over seconds without
   * a value. */
  private path(valueOf: (bins: readonly Bin[]) => number | null): string {
    const values = this.columns.map((bins) => (bins.length ? valueOf(bins) : null));
    const most = Math.max(0, ...values.map((value) => value ?? 0));
    if (most === 0) return '';
    let path = '';
    let isDown = false;
    values.forEach((value, column) => {
      if (value === null) {
        isDown &&= this.columns[column]!.length > 0;
        return;
      }
      const y = tenths(HEIGHT - 1.5 - (value / most) * (HEIGHT - 3));
      path += isDown ? `L${this.x[column]} ${y}` : `M${this.x[column]} ${y}h.1`;
      isDown = true;
    });
    return path;
  }
}

const tenths = (number: number): number => Math.round(number * 10) / 10;
