// The series of one family over time.

import type { Kind, Labels, SeriesRange, SeriesValues } from '../protocol.ts';

export interface Series {
  id: number;
  labels: Labels;
  /** By bin; null: not recorded. */
  values: (number | null)[];
}

/** As many bins as are kept. */
const MOST = 480;

export class SeriesTable {
  kind: Kind = 'untyped';
  /** The ends of bins, milliseconds, and their lengths, seconds. */
  times: number[] = [];
  lengths: number[] = [];
  series: Series[] = [];
  more = 0;
  private width = 0;
  /** The time of the latest values that came. */
  private latest: number | null = null;

  static of(range: SeriesRange): SeriesTable {
    const table = new SeriesTable();
    table.kind = range.kind;
    table.times = [...range.times];
    table.lengths = [...range.lengths];
    table.series = range.series.map(({ id, labels, values }) => ({ id, labels, values: [...values] }));
    table.more = range.more;
    table.width = range.bin > 1.5 ? range.bin : 0;
    return table;
  }

  get isRate(): boolean {
    return this.kind === 'counter' || this.kind === 'histogram';
  }

  meet(series: readonly { id: number; labels: Labels }[]): void {
    const known = new Set(this.series.map(({ id }) => id));
    for (const { id, labels } of series) {
      if (known.has(id)) continue;
      if (this.series.length >= 100) {
        this.more += 1;
        continue;
      }
      this.series.push({ id, labels, values: this.times.map(() => null) });
    }
  }

  /** Adds what changed since the time before. */
  add({ t, s, v }: SeriesValues): void {
    // Values come in the order in which they were read, so the agent's clock was set back.
    if (this.latest !== null && t < this.latest) this.forget();
    this.latest = t;
    const last = this.times.at(-1);
    if (last !== undefined && t <= last) return;
    const place = (time: number): number => (this.width ? Math.ceil(time / this.width / 1000) : time);
    const isNew = last === undefined || place(last) !== place(t);
    if (isNew) {
      this.times.push(t);
      this.lengths.push(s);
    } else {
      this.times[this.times.length - 1] = t;
      this.lengths[this.lengths.length - 1]! += s;
    }
    const changed = new Map(v);
    for (const series of this.series) {
      const value = changed.get(series.id);
      const before = series.values.at(-1) ?? null;
      // A series that is not named is as before: a gauge has its value, a counter did not grow.
      const now = this.isRate ? (isNew ? 0 : (before ?? 0)) + (value ?? 0) : value === undefined ? before : value;
      if (isNew) series.values.push(now);
      else series.values[series.values.length - 1] = now;
    }
    while (this.times.length > MOST) {
      this.times.shift();
      this.lengths.shift();
      for (const { values } of this.series) values.shift();
    }
  }

  /** By a clock that was set back, what is known is of the future. */
  private forget(): void {
    this.times = [];
    this.lengths = [];
    for (const series of this.series) series.values = [];
  }

  /** The numbers that are drawn of a series: rates of counters, values of gauges. */
  shown({ values }: Series): (number | null)[] {
    if (!this.isRate) return values;
    return values.map((value, at) => (value === null ? null : value / this.lengths[at]!));
  }

  /** The number of the bin at a time, null where nothing was recorded. */
  binAt(ms: number): number | null {
    const after = this.times.findIndex((time) => time >= ms);
    const at = after < 0 ? this.times.length - 1 : after;
    const [end, length] = [this.times[at], this.lengths[at]];
    if (end === undefined || length === undefined) return null;
    const slack = 500 + length * 100;
    if (ms > end + slack) return null;
    if (ms >= end - length * 1000 - slack) return at;
    const before = this.times[at - 1];
    return before !== undefined && ms <= before + slack ? at - 1 : null;
  }

  /** The values that each label has, in order. */
  labels(): Map<string, string[]> {
    const found = new Map<string, Set<string>>();
    for (const { labels } of this.series) {
      for (const [name, value] of labels) {
        if (!found.has(name)) found.set(name, new Set());
        found.get(name)!.add(value);
      }
    }
    return new Map([...found].map(([name, values]) => [name, [...values].sort()]));
  }

  matching(wanted: Labels): Series[] {
    return this.series.filter(({ labels }) =>
      wanted.every(([name, value]) => labels.some(([label, found]) => label === name && found === value)),
    );
  }
}
