// The time that is pointed at, the same in all charts of a view.

import type uPlot from 'uplot';

type Listener = () => void;

const charts = new Set<uPlot>();
const listeners = new Set<Listener>();
let time: number | null = null;

/** Milliseconds, or null while nothing is pointed at. */
export const pointedAt = (): number | null => time;

export function onPoint(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(ms: number | null): void {
  if (ms === time) return;
  time = ms;
  for (const listener of listeners) listener();
}

let isMoving = false;

/** Points at a time in all charts. */
export function point(ms: number | null): void {
  isMoving = true;
  for (const chart of charts) place(chart, ms);
  isMoving = false;
  tell(ms);
}

function place(chart: uPlot, ms: number | null): void {
  if (ms === null) return chart.setCursor({ left: -10, top: -10 });
  const left = chart.valToPos(ms / 1000, 'x');
  return chart.setCursor({ left, top: 0 });
}

/** Takes a chart in, whose cursor moves with the others. */
export function join(chart: uPlot): () => void {
  charts.add(chart);
  return () => charts.delete(chart);
}

/** Is called when the pointer moves over a chart. */
export function moved(chart: uPlot): void {
  if (isMoving) return;
  const { left } = chart.cursor;
  point(left === undefined || left < 0 ? null : Math.round(chart.posToVal(left, 'x') * 1000));
}
