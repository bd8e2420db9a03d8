// The three charts of requests: how many, how long, and how the times are distributed.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type uPlot from 'uplot';

import type { Span } from '../address.ts';
import { NONE, clock, level, moment, quantile, rate, share, time, whole } from '../figures.ts';
import { type BucketTable, drawn } from '../model/buckets.ts';
import { QUANTILES, type Sum } from '../model/sum.ts';
import type { Bin, Timeline } from '../model/timeline.ts';
import { colour } from '../theme.ts';
import * as cursor from './cursor.ts';
import { type Curve, binAt, curve, line, lonely } from './curves.ts';
import { type Surroundings, logarithmic, timesAxis } from './frame.ts';
import { type Heat, SHADES, drawHeat, heat } from './heat.ts';
import { Plot } from './plot.tsx';

export interface RequestsProps {
  timeline: Timeline;
  /** The requests of a bin that are shown. */
  sumOf: (bin: Bin) => Sum;
  inFlightOf: (bin: Bin) => number | null;
  buckets: BucketTable;
  around: Surroundings;
  zoom: (span: Span) => void;
  /** Of what the charts are: "all endpoints". */
  subject: string;
  latenciesFirst: boolean;
}

const NAMES = ['p50', 'p90', 'p99'];
const COLOURS = ['--third', '--series', '--peak'];
const DASHES = [undefined, undefined, [5, 3]];
const WIDTHS = [1.5, 2, 1.5];
const ROW = 4;

export function Requests(props: RequestsProps) {
  const { timeline, sumOf, buckets, around, subject, latenciesFirst } = props;
  const shape = useMemo(() => curve(timeline), [timeline, around]);
  const counts = <Rates {...props} shape={shape} key="rates" />;
  const times = <Times {...props} shape={shape} key="times" />;
  return (
    <div class="charts" aria-label={`Charts of ${subject}`} role="group">
      {latenciesFirst ? [times, counts] : [counts, times]}
      <Heats {...props} shape={shape} key={latenciesFirst ? 'low heat' : 'heat'} />
      <Scrubber window={around.window} timeline={timeline} describe={(bin) => describe(bin, sumOf(bin), buckets)} zoom={props.zoom} />
    </div>
  );
}

/** The bin that is pointed at, and if none is, the latest. */
function usePointed(timeline: Timeline): { bin: Bin | null; at: number | null } {
  const [, render] = useState(0);
  useEffect(() => cursor.onPoint(() => render((n) => n + 1)), []);
  const at = cursor.pointedAt();
  return at === null ? { bin: timeline.bins.at(-1) ?? null, at } : { bin: binAt(timeline, at), at };
}

function When({ at, bin }: { at: number | null; bin: Bin | null }) {
  return <span class="when">{at === null ? 'now' : bin ? clock(bin.end) : `${clock(at)} no data`}</span>;
}

function Rates({ timeline, sumOf, inFlightOf, around, zoom, subject, shape }: RequestsProps & { shape: Curve }) {
  const [data, most] = useMemo(() => {
    const rates = line(shape, (bin) => sumOf(bin).count / bin.seconds);
    const errors = line(shape, (bin) => sumOf(bin).errorCount() / bin.seconds);
    return [[shape.x, rates, errors] as uPlot.AlignedData, Math.max(0, ...rates.map((it) => it ?? 0))];
  }, [shape]);
  const top = useRef(1);
  top.current = nice(most * 1.08) || 1;
  const { bin, at } = usePointed(timeline);
  const sum = bin && sumOf(bin);
  const label = bin
    ? `Requests a second to ${subject}: up to ${rate(most)} in the time shown, ${rate(sumOf(bin).count / bin.seconds)} of late.`
    : `Requests a second to ${subject}: nothing was recorded.`;
  return (
    <figure class="card">
      <figcaption>
        <b>Requests a second</b>
        <When at={at} bin={bin} />
      </figcaption>
      <p class="legend">
        <span>
          <span class="key-line series">all</span>
          <b>{sum && bin ? rate(sum.count / bin.seconds) : NONE}</b>
        </span>
        <span>
          <span class="key-line bad">errors</span>
          <b>{sum && bin ? rate(sum.errorCount() / bin.seconds) : NONE}</b>
          {sum && sum.errorCount() > 0 && ` ${share(sum.errors())}`}
        </span>
        <span class="push">
          in flight <b>{level(bin && inFlightOf(bin))}</b>
        </span>
      </p>
      <Plot
        label={label}
        data={data}
        around={around}
        zoom={zoom}
        parts={() => ({
          height: 150,
          y: { range: () => [0, top.current] },
          yAxis: { values: (_, splits) => splits.map((split) => short(split)), space: 30 },
          series: [
            {
              stroke: () => colour('--series'),
              fill: () => colour('--series-back'),
              width: 1.5,
              points: { show: false, size: 4, filter: lonely },
            },
            {
              stroke: () => colour('--bad'),
              fill: () => colour('--bad-fill'),
              width: 1.5,
              dash: [4, 2],
              points: { show: false, size: 4, filter: lonely },
            },
          ],
        })}
      />
    </figure>
  );
}

function Times({ timeline, sumOf, buckets, around, zoom, subject, shape }: RequestsProps & { shape: Curve }) {
  const [data, bounds] = useMemo(() => {
    const lines = QUANTILES.map((_, at) => line(shape, (bin) => drawn(sumOf(bin).quantiles(buckets)[at] ?? null)));
    const all = lines.flat().filter((it): it is number => it !== null && it > 0);
    return [[shape.x, ...lines] as uPlot.AlignedData, logarithmic(Math.min(...all, Infinity), Math.max(...all, 0))];
  }, [shape]);
  const range = useRef(bounds);
  range.current = bounds;
  const { bin, at } = usePointed(timeline);
  const found = bin && sumOf(bin).quantiles(buckets);
  const last = timeline.bins.at(-1);
  const now = last && sumOf(last).quantiles(buckets);
  const label = now
    ? `Latency of ${subject}, of late: ${NAMES.map((name, n) => `${name} ${quantile(now[n])}`).join(', ')}.`
    : `Latency of ${subject}: nothing was recorded.`;
  return (
    <figure class="card">
      <figcaption>
        <b>Latency</b>
        <When at={at} bin={bin} />
      </figcaption>
      <p class="legend">
        {NAMES.map((name, n) => (
          <span>
            <span class={`key-line ${['third', 'series', 'peak dashed'][n]}`}>{name}</span>
            <b>{quantile(found?.[n])}</b>
          </span>
        ))}
      </p>
      <Plot
        label={label}
        data={data}
        around={around}
        zoom={zoom}
        parts={() => ({
          height: 150,
          y: { distr: 3, range: () => range.current },
          yAxis: timesAxis(() => range.current),
          series: QUANTILES.map((_, n) => ({
            stroke: () => colour(COLOURS[n]!),
            width: WIDTHS[n]!,
            ...(DASHES[n] && { dash: DASHES[n] }),
            points: { show: false, size: 4, filter: lonely },
          })),
        })}
      />
    </figure>
  );
}

const HEAT_HEIGHT = 396;
const LOW_HEAT_HEIGHT = 260;

function Heats({ timeline, sumOf, buckets, around, zoom, subject, shape, latenciesFirst }: RequestsProps & { shape: Curve }) {
  const height = latenciesFirst ? LOW_HEAT_HEIGHT : HEAT_HEIGHT;
  const [cells, data] = useMemo(() => {
    const rows = Math.round((height - 38) / ROW / 2);
    const x = timeline.bins.map((bin) => bin.end / 1000);
    const bounds = latencyBounds(shape, sumOf, buckets);
    return [heat(timeline, sumOf, buckets, bounds, rows), [x, x.map(() => null)] as uPlot.AlignedData];
  }, [shape]);
  const current = useRef<Heat>(cells);
  current.current = cells;
  const label = cells.most
    ? `Heat map of the latencies of ${subject}, from ${time(cells.low)} to ${time(cells.high)}; up to ${rate(cells.most)} requests a second in a cell.`
    : `Heat map of the latencies of ${subject}: nothing was recorded.`;
  return (
    <figure class="card heat">
      <figcaption>
        <b>Latency heat map</b>
        <span class="shades" aria-hidden="true">
          <span>few</span>
          {Array.from({ length: SHADES }, (_, at) => (
            <i class={`shade${at}`} />
          ))}
          <span>{cells.most ? `${rate(cells.most)}/s` : 'many'}</span>
        </span>
      </figcaption>
      <Plot
        label={label}
        data={data}
        around={around}
        zoom={zoom}
        parts={() => ({
          height,
          y: { distr: 3, range: () => [current.current.low, current.current.high] },
          yAxis: timesAxis(() => [current.current.low, current.current.high]),
          series: [{ points: { show: false } }],
          below: (chart) => drawHeat(chart, current.current),
        })}
      />
    </figure>
  );
}

/** From the least to the greatest latency that lines and cells show. */
function latencyBounds({ bins }: Curve, sumOf: (bin: Bin) => Sum, buckets: BucketTable): [number, number] {
  let [low, high] = [Infinity, 0];
  for (const bin of bins) {
    if (!bin) continue;
    for (const id of sumOf(bin).buckets.keys()) {
      const between = buckets.get(id);
      if (!between) continue;
      // A bucket that begins at 0 is drawn an octave high, one without an end likewise.
      low = Math.min(low, between.low > 0 ? between.low : between.high / 2);
      high = Math.max(high, Number.isFinite(between.high) ? between.high : between.low * 2);
    }
  }
  return logarithmic(low, high);
}

function describe(bin: Bin, sum: Sum, buckets: BucketTable): string {
  const found = sum.quantiles(buckets);
  const times = NAMES.map((name, n) => `${name} ${quantile(found[n])}`).join(', ');
  return `${rate(sum.count / bin.seconds)} requests a second, errors ${share(sum.errors())}, ${times}`;
}

/** The cursor of the charts for the keyboard. */
export function Scrubber({ window, timeline, describe, zoom }: {
  window: Span;
  timeline: Timeline;
  describe: (bin: Bin) => string;
  zoom: (span: Span) => void;
}) {
  const { bin, at } = usePointed(timeline);
  const value = at ?? window.to;
  const move = (to: number): void => cursor.point(Math.min(window.to, Math.max(window.from, to)));
  const pressed = (event: KeyboardEvent): void => {
    const length = window.to - window.from;
    if (event.key === '+' || event.key === '=') {
      zoom({ from: Math.floor(value - length / 8), to: Math.ceil(value + length / 8) });
    } else if (event.key === '-') {
      zoom({ from: Math.floor(window.from - length / 2), to: Math.ceil(window.to + length / 2) });
    } else if (event.key === 'Escape' && at !== null) {
      cursor.point(null);
      event.stopPropagation();
    } else return;
    event.preventDefault();
  };
  return (
    <label class="scrubber">
      <span>Time: arrow keys move, + and − zoom</span>
      <input
        type="range"
        min={Math.round(window.from)}
        max={Math.round(window.to)}
        step={Math.max(1, Math.round((window.to - window.from) / 120))}
        value={Math.round(value)}
        aria-label="Time in the charts"
        aria-valuetext={`${moment(value)}: ${bin ? describe(bin) : 'no data'}`}
        onInput={(event) => move(Number(event.currentTarget.value))}
        onKeyDown={pressed}
        onBlur={() => cursor.point(null)}
      />
    </label>
  );
}

const NICE = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];

/** The next round number. */
export function nice(value: number): number {
  if (!(value > 0)) return 0;
  const power = 10 ** Math.floor(Math.log10(value));
  return NICE.find((step) => step * power >= value)! * power;
}

/** A number at an axis: `1.5k`. */
export function short(value: number): string {
  if (value >= 1e9) return `${Number((value / 1e9).toPrecision(3))}G`;
  if (value >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (value >= 1e4) return `${Number((value / 1e3).toPrecision(3))}k`;
  return value >= 1000 ? whole(value) : String(Number(value.toPrecision(3)));
}
