// From bins to what is drawn: times, and for each of them what was measured.

import type uPlot from 'uplot';

import { type Bin, type Timeline, begin } from '../model/timeline.ts';

/** The bins in order; null stands for a gap, where a line breaks off. */
export interface Curve {
  /** Seconds since 1970, at the middles of bins and gaps. */
  x: number[];
  bins: (Bin | null)[];
}

export function curve(timeline: Timeline): Curve {
  const [x, bins]: [number[], (Bin | null)[]] = [[], []];
  timeline.bins.forEach((bin, at) => {
    if (timeline.isAfterGap(at)) {
      x.push((timeline.bins[at - 1]!.end + begin(bin)) / 2000);
      bins.push(null);
    }
    x.push((begin(bin) + bin.end) / 2000);
    bins.push(bin);
  });
  return { x, bins };
}

/** A line: a number for each time, null where there is none. */
export function line({ bins }: Curve, of: (bin: Bin) => number | null): (number | null)[] {
  return bins.map((bin) => (bin ? of(bin) : null));
}

/** The bin at a time, or null in a gap. */
export function binAt({ bins, width }: Timeline, ms: number): Bin | null {
  const slack = 500 + width * 100;
  let [low, high] = [0, bins.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bins[middle]!.end < ms) low = middle + 1;
    else high = middle;
  }
  const [before, bin] = [bins[low - 1], bins[low]];
  if (bin && ms >= begin(bin) - slack) return bin;
  return before && ms <= before.end + slack ? before : null;
}

/** The points without a neighbour, which a line alone would not show. */
export function lonely(chart: uPlot, series: number): number[] | null {
  const values = chart.data[series]!;
  const found: number[] = [];
  for (let at = 0; at < values.length; at += 1) {
    const isKnown = (place: number): boolean => values[place] !== null && values[place] !== undefined;
    if (isKnown(at) && !isKnown(at - 1) && !isKnown(at + 1)) found.push(at);
  }
  return found.length ? found : null;
}
