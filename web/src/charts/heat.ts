// Latencies over time as a heat map: time to the right, latency upwards, the darker the more requests.
// Buckets of any width are spread over rows of equal height, so that several resolutions add up.

import type uPlot from 'uplot';

import type { BucketTable } from '../model/buckets.ts';
import { type Timeline, begin } from '../model/timeline.ts';
import type { Sum } from '../model/sum.ts';
import type { Bin } from '../model/timeline.ts';
import { colour } from '../theme.ts';

export const SHADES = 6;

export interface Heat {
  low: number;
  high: number;
  rows: number;
  columns: { from: number; to: number; /** Requests a second in each row. */ rates: Float64Array }[];
  most: number;
}

/** The columns of the last drawing: only the latest bin changes, unless the axis does. */
const drawn = new WeakMap<Sum, { shape: string; count: number; rates: Float64Array; most: number }>();

export function heat(
  timeline: Timeline,
  sumOf: (bin: Bin) => Sum,
  table: BucketTable,
  [low, high]: [number, number],
  rows: number,
): Heat {
  const base = Math.log(low);
  const perRow = (Math.log(high) - base) / rows;
  const place = (seconds: number): number => Math.min(rows, Math.max(0, (Math.log(seconds) - base) / perRow));
  let most = 0;
  const shape = `${low} ${high} ${rows}`;
  const columns = timeline.bins.map((bin) => {
    const sum = sumOf(bin);
    const before = drawn.get(sum);
    if (before?.shape === shape && before.count === sum.count) {
      most = Math.max(most, before.most);
      return { from: begin(bin), to: bin.end, rates: before.rates };
    }
    const rates = new Float64Array(rows);
    for (const [id, count] of sum.buckets) {
      const between = table.get(id);
      if (!between || count <= 0) continue;
      const from = between.low > 0 ? Math.min(place(between.low), rows - 1e-6) : 0;
      const to = Number.isFinite(between.high) ? Math.max(place(between.high), 1e-6) : rows;
      const width = Math.max(to - from, 1e-6);
      for (let row = Math.floor(from); row < Math.min(rows, Math.ceil(to)); row += 1) {
        const overlap = Math.min(to, row + 1) - Math.max(from, row);
        rates[row]! += (count / bin.seconds) * (overlap / width);
      }
    }
    let greatest = 0;
    for (const rate of rates) greatest = Math.max(greatest, rate);
    most = Math.max(most, greatest);
    drawn.set(sum, { shape, count: sum.count, rates, most: greatest });
    return { from: begin(bin), to: bin.end, rates };
  });
  return { low, high, rows, columns, most };
}

/** The shade of a rate, on a logarithmic scale over three decades; -1 for none. */
export function shade(rate: number, most: number): number {
  if (!(rate > 0) || !(most > 0)) return -1;
  const place = 1 + Math.log10(rate / most) / 3;
  return Math.max(0, Math.min(SHADES - 1, Math.floor(place * SHADES)));
}

export function drawHeat(chart: uPlot, { rows, columns, most }: Heat): void {
  const { ctx, bbox } = chart;
  const shades = Array.from({ length: SHADES }, (_, at) => colour(`--shade${at}`));
  const edge = (row: number): number => Math.round(bbox.top + bbox.height - (row / rows) * bbox.height);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  columns.forEach(({ from, to, rates }, at) => {
    // A column reaches to the next one if nothing is missing between them.
    const next = columns[at + 1]?.from ?? to;
    const left = Math.round(chart.valToPos(from / 1000, 'x', true));
    const right = Math.round(chart.valToPos((next - to < 500 && next > from ? next : to) / 1000, 'x', true));
    for (let row = 0; row < rows; row += 1) {
      const found = shade(rates[row]!, most);
      if (found < 0) continue;
      ctx.fillStyle = shades[found]!;
      const [top, bottom] = [edge(row + 1), edge(row)];
      ctx.fillRect(left, top, Math.max(1, right - left), bottom - top);
    }
  });
  ctx.restore();
}
