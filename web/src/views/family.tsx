// One family: its series over time, by their labels, and the PromQL for them.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type uPlot from 'uplot';

import type { Span } from '../address.ts';
import { lonely } from '../charts/curves.ts';
import { Plot } from '../charts/plot.tsx';
import { Scrubber, usePointedTime } from '../charts/scrubber.tsx';
import { nice, tick } from '../charts/numbers.ts';
import { NONE, type Unit, clock, count, inUnit, rate, uncertainty, unitOf } from '../figures.ts';
import { type Series, SeriesTable } from '../model/series.ts';
import type { Page } from '../page.ts';
import { printable, printableLines } from '../printable.ts';
import { queries } from '../promql.ts';
import { binsOf } from '../service.ts';
import type { Family, Labels, SeriesRange, SeriesValues } from '../protocol.ts';
import { colour } from '../theme.ts';
import { Exemplars } from './exemplars.tsx';
import { Observed } from './observed.tsx';
import { Showing, surroundings } from './parts.tsx';

const MOST_LINES = 12;
/** The steps of an axis of whole numbers: 1, 2, 5, 10, … */
const WHOLE = Array.from({ length: 45 }, (_, at) => [1, 2, 5][at % 3]! * 10 ** Math.floor(at / 3));
const COLOURS = ['--series', '--peak', '--third', '--line4', '--line5', '--line6'];

/** Loads a family's series and follows them while the page is live. */
function useSeries(page: Page, name: string): { table: SeriesTable | null; trouble: string | null; version: number } {
  const [state, setState] = useState<{ table: SeriesTable | null; trouble: string | null; version: number }>({
    table: null,
    trouble: null,
    version: 0,
  });
  const { address, service } = page;
  const span = address.span;
  const isLive = span === null && service.connection === 'live';
  const { region } = service.region();
  const run = service.hello?.run;
  useEffect(() => {
    if (!run) return undefined;
    let events: EventSource | null = null;
    let table: SeriesTable | null = null;
    let isOver = false;
    const selected = { family: name, ...(region !== undefined && { region }) };
    const early: SeriesValues[] = [];
    const tell = (trouble: string | null = null): void => {
      if (!isOver) setState((state) => ({ table: table ?? state.table, trouble, version: state.version + 1 }));
    };
    const load = async (): Promise<void> => {
      const fields = new URLSearchParams({ ...selected, ...binsOf(span ?? service.window(address)) });
      try {
        const response = await fetch(`live/series?${fields}`);
        if (!response.ok) return tell((await response.text()).slice(0, 300));
        table = SeriesTable.of((await response.json()) as SeriesRange);
        for (const values of early) table.add(values);
        tell();
      } catch {
        tell('The server does not answer.');
      }
    };
    void load();
    if (isLive) {
      events = new EventSource(`live/series/events?${new URLSearchParams(selected)}`);
      events.addEventListener('series', (event) => {
        table?.meet(JSON.parse((event as MessageEvent<string>).data) as { id: number; labels: Labels }[]);
        tell();
      });
      events.addEventListener('values', (event) => {
        const values = JSON.parse((event as MessageEvent<string>).data) as SeriesValues;
        if (table) table.add(values);
        else early.push(values);
        tell();
      });
    }
    return () => {
      isOver = true;
      events?.close();
    };
  }, [name, region, run, isLive, address.range, span?.from, span?.to]);
  return state;
}

export function FamilyView({ page, name, family }: { page: Page; name: string; family: Family | null }) {
  const { address } = page;
  const { table, trouble, version } = useSeries(page, name);
  const kind = table?.kind ?? family?.kind ?? 'untyped';
  const found = table?.matching(address.labels) ?? [];
  const unit = table?.isRate ? null : unitOf(name);
  const { regionLabel } = page.service.hello ?? {};
  const { region } = page.service.region();
  const ofService: Labels = regionLabel && region !== undefined ? [[regionLabel, region]] : [];
  const promql = queries(name, kind, [...ofService, ...address.labels], family?.native);
  const around = surroundings(page);
  const choose = (label: string, value: string | null): void => {
    const others = address.labels.filter(([name]) => name !== label);
    page.go({ labels: value === null ? others : [...others, [label, value]] });
  };
  return (
    <>
      <a class="back" href={page.link({ family: null, labels: [] })}>
        ← All families
      </a>
      <div class="endpoint-head">
        <h2 class="endpoint-name">{printable(name)}</h2>
        <span class="soft">
          {kind}
          {table && `, ${count(table.series.length + table.more, 'series', 'series')}`}
          {table?.isRate && `, rates ${uncertainty(page.service.shown(address).uncertainty)}`}
        </span>
      </div>
      {family?.help && <p class="note help-text">{printableLines(family.help)}</p>}
      <Showing page={page} timeline={page.service.shown(address)} />
      {trouble && (
        <p class="card words trouble" role="alert">
          {trouble}
        </p>
      )}
      <ul class="card promql">
        {promql.map(([what, query]) => (
          <li key={what}>
            {promql.length > 1 && <b>{what}</b>}
            <code>{printable(query)}</code>
            <Copy text={query} />
          </li>
        ))}
      </ul>
      {table && (
        <>
          <Filters table={table} labels={address.labels} choose={choose} />
          {kind === 'histogram' && <Observed page={page} name={name} around={around} />}
          <Chart
            table={table}
            found={found}
            version={version}
            name={name}
            around={around}
            zoom={(span) => page.zoom(span)}
          />
          <Values table={table} found={found} unit={unit} isLive={!page.isPaused} />
          <Scrubber
            window={around.window}
            describe={(at) => described(table, found, unit, at)}
            zoom={(span) => page.zoom(span)}
          />
          <Exemplars page={page} family={name} labels={address.labels} />
          {table.more > 0 && (
            <p class="note">
              {count(table.more, 'further series', 'further series')} with smaller values{' '}
              {table.more === 1 ? 'is' : 'are'} left out.
            </p>
          )}
        </>
      )}
    </>
  );
}

function Copy({ text }: { text: string }) {
  const [state, setState] = useState('');
  const copy = async (): Promise<void> => {
    setState((await copied(text)) ? 'Copied' : 'Select the text and copy it');
    setTimeout(() => setState(''), 2000);
  };
  return (
    <button class="button" onClick={() => void copy()}>
      <span aria-live="polite">{state || 'Copy PromQL'}</span>
    </button>
  );
}

/** Copies a text, also where the page is not served by TLS and the clipboard has no interface. */
async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement('textarea');
    field.value = text;
    field.className = 'hidden';
    document.body.append(field);
    field.select();
    const isCopied = document.execCommand('copy');
    field.remove();
    return isCopied;
  }
}

function Filters({
  table,
  labels,
  choose,
}: {
  table: SeriesTable;
  labels: Labels;
  choose: (label: string, value: string | null) => void;
}) {
  const known = table.labels();
  // A label that is chosen stays to be seen, whatever the series have now.
  for (const [name, value] of labels) {
    const values = known.get(name) ?? [];
    if (!values.includes(value)) known.set(name, [...values, value]);
  }
  if (known.size === 0) return null;
  return (
    <div class="filters" role="group" aria-label="Filter by labels">
      {[...known].map(([name, values]) => {
        const chosen = labels.find(([label]) => label === name)?.[1];
        return (
          <label class="select" key={name}>
            <span>{printable(name)}</span>
            <select
              value={chosen === undefined ? 0 : values.indexOf(chosen) + 1}
              onChange={(event) => choose(name, values[event.currentTarget.selectedIndex - 1] ?? null)}
            >
              <option value={0}>any</option>
              {values.map((value, at) => (
                <option value={at + 1}>{value === '' ? '(empty)' : printable(value)}</option>
              ))}
            </select>
          </label>
        );
      })}
    </div>
  );
}

function Chart({
  table,
  found,
  version,
  name,
  around,
  zoom,
}: {
  table: SeriesTable;
  found: Series[];
  version: number;
  name: string;
  around: ReturnType<typeof surroundings>;
  zoom: (span: Span) => void;
}) {
  const lines = found.slice(0, MOST_LINES);
  const unit = table.isRate ? null : unitOf(name);
  const data = useMemo(() => columns(table, lines), [table, version, lines.map(({ id }) => id).join()]);
  const all = data
    .slice(1)
    .flat()
    .filter((value): value is number => typeof value === 'number');
  const bounds = useRef<[number, number]>([0, 1]);
  const [low, high] = [Math.min(0, ...all), Math.max(0, ...all)];
  bounds.current = [low < 0 ? -nice(-low * 1.05) : 0, nice(high * 1.05) || (low < 0 ? 0 : 1)];
  const isWhole = !table.isRate && unit === null && all.every(Number.isInteger);
  const title = table.isRate ? (table.kind === 'counter' ? 'Increase a second' : 'Observations a second') : 'Value';
  return (
    <figure class="card">
      <figcaption>
        <b>{title}</b>
        {found.length > MOST_LINES && (
          <span class="soft">
            the first {MOST_LINES} of {count(found.length, 'series', 'series')}
          </span>
        )}
      </figcaption>
      <Plot
        key={lines.map(({ id }) => id).join()}
        label={`${title} of ${count(lines.length, 'series', 'series')} of ${name}, up to ${inUnit(high, unit)}.`}
        data={data as uPlot.AlignedData}
        around={around}
        zoom={zoom}
        parts={() => ({
          height: 240,
          y: { range: () => bounds.current },
          yAxis: {
            values: (_, splits) => splits.map((split) => tick(split, unit)),
            size: 62,
            // Of whole numbers there are no fractions.
            ...(isWhole && { incrs: WHOLE }),
          },
          series: lines.map((_, at) => ({
            stroke: () => colour(COLOURS[at % COLOURS.length]!),
            width: 1.5,
            ...(at >= COLOURS.length && { dash: [5, 3] }),
            points: { show: false, size: 4, filter: lonely },
          })),
        })}
      />
    </figure>
  );
}

/** The lines, with a break where nothing was recorded. */
function columns(table: SeriesTable, lines: readonly Series[]): (number | null)[][] {
  const all = lines.map((series) => table.shown(series));
  const [x, y]: [number[], (number | null)[][]] = [[], lines.map(() => [])];
  table.times.forEach((t, at) => {
    const before = table.times[at - 1];
    const length = table.lengths[at]!;
    if (before !== undefined && t - length * 1000 - before > 500 + length * 500) {
      x.push((before + t) / 2000);
      y.forEach((line) => line.push(null));
    }
    x.push(t / 1000);
    y.forEach((line, n) => line.push(all[n]![at] ?? null));
  });
  return [x, ...y];
}

function shownValue(table: SeriesTable, series: Series, unit: Unit, bin: number): string {
  const value = table.shown(series).at(bin) ?? null;
  return value === null ? NONE : table.isRate ? rate(value) : inUnit(value, unit);
}

/** The values at a time, for those who cannot see the chart. */
function described(table: SeriesTable, found: Series[], unit: Unit, at: number): string | null {
  const bin = table.binAt(at);
  if (bin === null) return null;
  const texts = found.slice(0, 5).map((series) => {
    const labels = series.labels.map(([, value]) => value).join(' ');
    return `${labels} ${shownValue(table, series, unit, bin)}`;
  });
  return texts.join(', ');
}

/** The values of all series: the latest, or those of the time that is pointed at. */
function Values({ table, found, unit, isLive }: { table: SeriesTable; found: Series[]; unit: Unit; isLive: boolean }) {
  const names = [...table.labels().keys()];
  const at = usePointedTime();
  const bin = at === null ? -1 : table.binAt(at);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Table of current values">
      <table class="rows values">
        <thead>
          <tr>
            <th scope="col">
              <span class="hidden">Line</span>
            </th>
            {names.map((name) => (
              <th scope="col" class="label">
                {printable(name)}
              </th>
            ))}
            <th scope="col">
              {table.isRate ? 'A second' : 'Value'} {at !== null ? `at ${clock(at)}` : isLive ? 'now' : 'at the end'}
            </th>
          </tr>
        </thead>
        <tbody>
          {found.map((series, at) => {
            return (
              <tr key={series.id}>
                <td class="swatch">
                  {at < MOST_LINES && (
                    <span class={`key-line line${at % COLOURS.length} ${at >= COLOURS.length ? 'dashed' : ''}`} />
                  )}
                </td>
                {names.map((name) => (
                  <td class="label">{printable(series.labels.find(([label]) => label === name)?.[1] ?? '')}</td>
                ))}
                <td>{bin === null ? NONE : shownValue(table, series, unit, bin)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {found.length === 0 && <p class="nothing">No series has these labels.</p>}
    </div>
  );
}
