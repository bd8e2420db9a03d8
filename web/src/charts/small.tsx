// A small chart of one number over time.

import { useMemo, useRef } from 'preact/hooks';
import type uPlot from 'uplot';

import type { Span } from '../address.ts';
import { NONE, type Unit, inUnit } from '../figures.ts';
import { colour } from '../theme.ts';
import { lonely } from './curves.ts';
import type { Surroundings } from './frame.ts';
import { Plot } from './plot.tsx';
import { even, nice, tick } from './numbers.ts';
import { usePointedTime } from './scrubber.tsx';

export function Small({
  name,
  unit,
  x,
  values,
  valueAt,
  around,
  zoom,
}: {
  name: string;
  unit: Unit;
  /** Seconds since 1970. */
  x: number[];
  values: (number | null)[];
  /** The value at a time, milliseconds; null where there is none. */
  valueAt: (ms: number) => number | null;
  around: Surroundings;
  zoom: (span: Span) => void;
}) {
  const known = values.filter((value): value is number => value !== null);
  const last = known.at(-1);
  const top = useRef(1);
  top.current = unit === null && known.every(Number.isInteger) ? even(Math.max(0, ...known)) : niceIn(unit, Math.max(0, ...known) * 1.05) || 1;
  const data = useMemo(() => [x, values] as uPlot.AlignedData, [values, around]);
  const at = usePointedTime();
  const now = last === undefined ? NONE : inUnit(last, unit);
  const pointed = at === null ? null : valueAt(at);
  return (
    <figure class="card small">
      <figcaption>
        <b>{name}</b>
        <span class="headline">{at === null ? now : pointed === null ? NONE : inUnit(pointed, unit)}</span>
      </figcaption>
      <Plot
        label={`${name}: ${now} of late, up to ${known.length ? inUnit(Math.max(...known), unit) : NONE} in the time shown.`}
        data={data}
        around={around}
        zoom={zoom}
        parts={() => ({
          height: 110,
          y: { range: () => [0, top.current] },
          yAxis: {
            splits: () => [0, top.current / 2, top.current],
            values: (_, splits) => splits.map((split) => tick(split, unit)),
            size: 64,
          },
          series: [
            {
              stroke: () => colour('--series'),
              fill: () => colour('--series-back'),
              width: 1.5,
              points: { show: false, size: 4, filter: lonely },
            },
          ],
        })}
      />
    </figure>
  );
}

/** A round number of the unit, for bytes in powers of 1,024. */
function niceIn(unit: Unit, value: number): number {
  if (unit !== 'bytes' || value < 1024) return nice(value);
  const scale = 1024 ** Math.floor(Math.log(value) / Math.log(1024));
  return nice(value / scale) * scale;
}
