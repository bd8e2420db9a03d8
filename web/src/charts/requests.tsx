// The three charts of requests: how many, how long, and how the times are distributed.

import { useMemo, useRef } from 'preact/hooks';
import type uPlot from 'uplot';

import type { Span } from '../address.ts';
import { NONE, clock, level, quantile, rate, share, time } from '../figures.ts';
import { type BucketTable, drawn } from '../model/buckets.ts';
import { QUANTILES, type Sum } from '../model/sum.ts';
import type { Bin, Timeline } from '../model/timeline.ts';
import { colour } from '../theme.ts';
import { type Curve, binAt, curve, line, lonely } from './curves.ts';
import { type Surroundings, logarithmic, valuesAxis } from './frame.ts';
import { type Heat, SHADES, drawHeat, heat } from './heat.ts';
import { nice, short } from './numbers.ts';
import { Plot } from './plot.tsx';
import { Scrubber, usePointedTime } from './scrubber.tsx';

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
  /** Whether the time that is shown goes on. */
  isLive: boolean;
  /** What is distributed, and its values as text: times, if it is not said. */
  quantity?: string;
  show?: (value: number) => string;
  /** Whether the charts stand side by side, so that there is room below them. */
  isOneRow?: boolean;
}

const NAMES = ['p50', 'p90', 'p99'];
const COLOURS = ['--third', '--series', '--peak'];
const DASHES = [undefined, undefined, [5, 3]];
const WIDTHS = [1.5, 2, 1.5];
const ROW = 4;
const HEIGHT = 150;

export function Requests(props: RequestsProps) {
  const { timeline, sumOf, buckets, around, subject, latenciesFirst } = props;
  const shape = useMemo(() => curve(timeline), [timeline, around]);
  const counts = <Rates {...props} shape={shape} key="rates" />;
  const times = <Times {...props} shape={shape} key="times" />;
  return (
    <div class={`charts ${props.isOneRow ? 'one-row' : ''}`} aria-label={`Charts of ${subject}`} role="group">
      {latenciesFirst ? [times, counts] : [counts, times]}
      <Heats {...props} shape={shape} key={latenciesFirst ? 'low heat' : 'heat'} />
      <Scrubber
        window={around.window}
        describe={(at) => {
          const bin = binAt(timeline, at);
          return bin && describe(bin, sumOf(bin), buckets);
        }}
        zoom={props.zoom}
      />
    </div>
  );
}

/** The distribution of what a histogram observed: its quantiles and its heat map. */
export function Distribution(props: RequestsProps) {
  const { timeline, around } = props;
  const shape = useMemo(() => curve(timeline), [timeline, around, timeline.version]);
  return (
    <div class="charts halves" aria-label={`Charts of ${props.subject}`} role="group">
      <Times {...props} shape={shape} />
      <Heats {...props} shape={shape} />
    </div>
  );
}

/** The bin that is pointed at, and if none is, the latest. */
function usePointed(timeline: Timeline): { bin: Bin | null; at: number | null } {
  const at = usePointedTime();
  return at === null ? { bin: timeline.bins.at(-1) ?? null, at } : { bin: binAt(timeline, at), at };
}

function When({ at, bin, isLive }: { at: number | null; bin: Bin | null; isLive: boolean }) {
  const text = at === null && isLive ? 'now' : bin ? clock(bin.end) : at === null ? '' : `${clock(at)} no data`;
  return <span class="when">{text}</span>;
}

function Rates({
  timeline,
  sumOf,
  inFlightOf,
  around,
  zoom,
  subject,
  isLive,
  shape,
}: RequestsProps & { shape: Curve }) {
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
        <When at={at} bin={bin} isLive={isLive} />
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
          height: HEIGHT,
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

function Times({
  timeline,
  sumOf,
  buckets,
  around,
  zoom,
  subject,
  isLive,
  shape,
  quantity = 'Latency',
  show = time,
}: RequestsProps & { shape: Curve }) {
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
    ? `${quantity} of ${subject}, of late: ${NAMES.map((name, n) => `${name} ${quantile(now[n], show)}`).join(', ')}.`
    : `${quantity} of ${subject}: nothing was recorded.`;
  return (
    <figure class="card">
      <figcaption>
        <b>{quantity}</b>
        <When at={at} bin={bin} isLive={isLive} />
      </figcaption>
      <p class="legend">
        {NAMES.map((name, n) => (
          <span>
            <span class={`key-line ${['third', 'series', 'peak dashed'][n]}`}>{name}</span>
            <b>{quantile(found?.[n], show)}</b>
          </span>
        ))}
      </p>
      <Plot
        label={label}
        data={data}
        around={around}
        zoom={zoom}
        parts={() => ({
          height: HEIGHT,
          y: { distr: 3, range: () => range.current },
          yAxis: valuesAxis(() => range.current, show),
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

/** The height of a legend, which the heat map does not have. */
const LEGEND = 20;
const HEAT_HEIGHT = 396;
const LOW_HEAT_HEIGHT = 260;

function Heats({
  timeline,
  sumOf,
  buckets,
  around,
  zoom,
  subject,
  shape,
  latenciesFirst,
  isOneRow,
  quantity = 'Latency',
  show = time,
}: RequestsProps & { shape: Curve }) {
  const height = isOneRow ? HEIGHT + LEGEND : latenciesFirst ? LOW_HEAT_HEIGHT : HEAT_HEIGHT;
  const [cells, data] = useMemo(() => {
    const rows = Math.round((height - 38) / ROW / 2);
    const x = timeline.bins.map((bin) => bin.end / 1000);
    const bounds = latencyBounds(shape, sumOf, buckets);
    return [heat(timeline, sumOf, buckets, bounds, rows), [x, x.map(() => null)] as uPlot.AlignedData];
  }, [shape]);
  const current = useRef<Heat>(cells);
  current.current = cells;
  const label = cells.most
    ? `Heat map of ${subject}, from ${show(cells.low)} to ${show(cells.high)}; up to ${rate(cells.most)} a second in a cell.`
    : `Heat map of ${subject}: nothing was recorded.`;
  return (
    <figure class="card heat">
      <figcaption>
        <b>{quantity} heat map</b>
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
          // Lines would lie over the cells.
          yAxis: { ...valuesAxis(() => [current.current.low, current.current.high], show), grid: { show: false } },
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
