// The common parts of all charts over time: axes, gaps, marks, zoom, and the cursor.

import uPlot from 'uplot';

import type { Span } from '../address.ts';
import { clock } from '../figures.ts';
import type { Gap } from '../model/timeline.ts';
import type { Mark } from '../protocol.ts';
import { colour } from '../theme.ts';
import * as cursor from './cursor.ts';

/** The parts that are drawn besides the lines. */
export interface Surroundings {
  window: Span;
  gaps: readonly Gap[];
  marks: readonly Mark[];
}

export const MARKS = {
  started: { glyph: '▲', name: 'started', colour: '--good' },
  died: { glyph: '✕', name: 'died', colour: '--bad' },
  replaced: { glyph: '◆', name: 'replaced', colour: '--good' },
  changed: { glyph: '▼', name: 'changed', colour: '--wait' },
  back: { glyph: '○', name: 'as usual', colour: '--good' },
  clock: { glyph: '◷', name: 'clock set', colour: '--wait' },
  missed: { glyph: '░', name: 'missed', colour: '--soft' },
} as const;

/** An axis of times or other values, on a logarithmic scale. */
export function valuesAxis(range: () => [number, number], show: (value: number) => string): uPlot.Axis {
  return {
    splits: (chart) => labelled(...range(), chart.bbox.height / devicePixelRatio),
    filter: (_, splits) => splits,
    values: (_, splits) => splits.map((split) => show(split).replace(/\.0+ /, ' ')),
  };
}

export const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';

export interface Parts {
  height: number;
  series: uPlot.Series[];
  y: uPlot.Scale;
  yAxis: uPlot.Axis;
  /** Is drawn below everything else. */
  below?: (chart: uPlot) => void;
}

/** The options of a chart. `around` is asked at each drawing. */
export function frame(parts: Parts, around: () => Surroundings, zoom: (span: Span) => void): uPlot.Options {
  const soft = (): string => colour('--soft');
  const grid = { stroke: () => colour('--grid'), width: 1 };
  return {
    width: 300,
    height: parts.height,
    padding: [14, 8, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      drag: { x: true, y: false, setScale: false, dist: 4 },
      points: { size: 6 },
    },
    select: { show: true, left: 0, top: 0, width: 0, height: 0 },
    scales: {
      x: { time: true, range: () => [around().window.from / 1000, around().window.to / 1000] },
      y: parts.y,
    },
    series: [{}, ...parts.series],
    axes: [
      {
        stroke: soft,
        font: FONT,
        grid: { ...grid, show: false },
        ticks: { ...grid, size: 4, stroke: () => colour('--axis') },
        border: { show: true, stroke: () => colour('--axis'), width: 1 },
        size: 24,
        gap: 4,
        // Without seconds a label takes less room.
        space: (_, __, min, max, width) => (width < 400 && ((max - min) / width) * 44 > 30 ? 44 : 64),
        // A label that would be cut off at the right is left out.
        values: (chart, splits, _, __, step) => {
          const edge = chart.bbox.width / devicePixelRatio - (step < 60 ? 20 : 9);
          return splits.map((split) => (chart.valToPos(split, 'x') > edge ? '' : clock(split * 1000, step < 60)));
        },
      },
      { stroke: soft, font: FONT, grid, ticks: { show: false }, size: 56, gap: 6, ...parts.yAxis },
    ],
    hooks: {
      drawClear: [(chart) => drawGaps(chart, around()), ...(parts.below ? [parts.below] : [])],
      draw: [(chart) => drawMarks(chart, around())],
      setCursor: [(chart) => cursor.moved(chart)],
      setSelect: [
        (chart) => {
          const { left, width } = chart.select;
          if (width < 4) return;
          const [from, to] = [chart.posToVal(left, 'x'), chart.posToVal(left + width, 'x')];
          chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          zoom({ from: Math.floor(from * 1000), to: Math.ceil(to * 1000) });
        },
      ],
    },
  };
}

/** The least and the most of a logarithmic axis: 1, 2 or 5 times a power of ten. */
export function logarithmic(low: number, high: number): [number, number] {
  if (!(low > 0) || !(high > 0) || !Number.isFinite(high)) return [1e-3, 1];
  const [from, to] = [roundDown(low), roundUp(high)];
  return to / from >= 10 ? [from, to] : [roundDown(from / 2), roundUp(to * 2)];
}

const STEPS = [1, 2, 5, 10];

export function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return STEPS.find((step) => step * power >= value * 0.999999)! * power;
}

function roundDown(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value) + 1e-9);
  return STEPS.findLast((step) => step * power <= value * 1.000001)! * power;
}

/** Where a logarithmic axis of some height is labelled: at 1, 2 and 5, or if that is too close at powers of ten. */
export function labelled(low: number, high: number, height: number): number[] {
  const perDecade = height / Math.log10(high / low);
  const steps = perDecade * Math.log10(2) >= 18 ? [1, 2, 5] : [1];
  const found: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const step of steps) {
      const at = Number(`${step}e${power}`);
      if (at >= low * 0.999 && at <= high * 1.001) found.push(at);
    }
  }
  return found;
}

function drawGaps(chart: uPlot, { gaps }: Surroundings): void {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const gap of gaps) {
    const from = chart.valToPos(gap.from / 1000, 'x', true);
    const to = chart.valToPos(gap.to / 1000, 'x', true);
    ctx.fillStyle = colour('--gap');
    ctx.fillRect(from, bbox.top, to - from, bbox.height);
    hatch(ctx, from, to, bbox.top, bbox.height);
  }
  ctx.restore();
}

/** Oblique lines: a gap is not shown by its colour alone. */
function hatch(ctx: CanvasRenderingContext2D, from: number, to: number, top: number, height: number): void {
  ctx.save();
  ctx.beginPath();
  ctx.rect(from, top, to - from, height);
  ctx.clip();
  ctx.beginPath();
  const step = 7 * devicePixelRatio;
  const start = Math.floor((from - height) / step) * step;
  for (let x = start; x < to; x += step) {
    ctx.moveTo(x, top + height);
    ctx.lineTo(x + height, top);
  }
  ctx.strokeStyle = colour('--rule');
  ctx.lineWidth = devicePixelRatio;
  ctx.stroke();
  ctx.restore();
}

function drawMarks(chart: uPlot, { marks, window }: Surroundings): void {
  const { ctx, bbox } = chart;
  ctx.save();
  let written = -Infinity;
  for (const mark of marks) {
    if (mark.t < window.from || mark.t > window.to || mark.kind === 'missed') continue;
    const { colour: name } = MARKS[mark.kind] ?? MARKS.missed;
    const x = Math.round(chart.valToPos(mark.t / 1000, 'x', true));
    ctx.strokeStyle = ctx.fillStyle = colour(name);
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    if (x - written < 11 * devicePixelRatio) continue;
    ctx.setLineDash([]);
    drawGlyph(ctx, mark.kind, x, bbox.top - 6 * devicePixelRatio, 3.5 * devicePixelRatio);
    written = x;
  }
  ctx.restore();
}

/** The shape of a mark: a triangle, a cross, a circle or a square on its tip. */
function drawGlyph(ctx: CanvasRenderingContext2D, kind: Mark['kind'], x: number, y: number, size: number): void {
  ctx.beginPath();
  if (kind === 'died') {
    ctx.moveTo(x - size, y - size);
    ctx.lineTo(x + size, y + size);
    ctx.moveTo(x - size, y + size);
    ctx.lineTo(x + size, y - size);
    ctx.lineWidth = 1.75 * devicePixelRatio;
    ctx.stroke();
    return;
  }
  if (kind === 'back') {
    ctx.arc(x, y, size - devicePixelRatio / 2, 0, 2 * Math.PI);
    ctx.setLineDash([]);
    ctx.stroke();
    return;
  }
  const [tip, side] = kind === 'changed' ? [y + size, y - size] : [y - size, kind === 'started' ? y + size : y];
  ctx.moveTo(x, tip);
  ctx.lineTo(x + size, side);
  if (kind === 'replaced') ctx.lineTo(x, y + size);
  ctx.lineTo(x - size, side);
  ctx.fill();
}
