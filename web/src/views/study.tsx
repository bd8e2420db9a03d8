// A study or load while it runs: its cases, and what clients and server measure.

import { useMemo } from 'preact/hooks';
import type uPlot from 'uplot';

import { binAt, curve, lonely } from '../charts/curves.ts';
import { logarithmic, valuesAxis } from '../charts/frame.ts';
import { Plot } from '../charts/plot.tsx';
import { Scrubber } from '../charts/scrubber.tsx';
import { NONE, measured, quantile, rate, share, time, whole } from '../figures.ts';
import { drawn } from '../model/buckets.ts';
import { Sum } from '../model/sum.ts';
import type { Bin } from '../model/timeline.ts';
import type { Page } from '../page.ts';
import type { StudyCase } from '../protocol.ts';
import { colour } from '../theme.ts';
import { Showing, surroundings } from './parts.tsx';

export function StudyView({ page }: { page: Page }) {
  const { study } = page.service;
  const timeline = page.service.shown(page.address);
  if (!study) return <p class="card words">{page.service.hello ? 'No study runs here.' : 'Connecting…'}</p>;
  const done = study.cases.filter(({ state }) => state === 'done' || state === 'failed').length;
  return (
    <>
      <Showing page={page} timeline={timeline} />
      <div class="section-head">
        <h2>{study.title}</h2>
        <span class="soft">
          {done} of {study.cases.length} cases, {study.state}
        </span>
      </div>
      {study.report && (
        <p class="card words good-words">
          <b>✓ The report is written:</b> <code>{study.report}</code>
        </p>
      )}
      <Cases cases={study.cases} />
      <Sides page={page} />
    </>
  );
}

const ms = (value: number | null | undefined): string =>
  value === null || value === undefined ? NONE : measured(value);

function Cases({ cases }: { cases: readonly StudyCase[] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Table of cases">
      <table class="rows cases">
        <thead>
          <tr class="groups">
            <th rowSpan={2} scope="col">
              Case
            </th>
            <th rowSpan={2} scope="col">
              Progress
            </th>
            <th colSpan={3} scope="colgroup">
              <span>At the clients, ms</span>
            </th>
            <th colSpan={3} scope="colgroup">
              <span>At the server, ms</span>
            </th>
            <th colSpan={4} scope="colgroup">
              <span>Load</span>
            </th>
          </tr>
          <tr>
            {['p50', 'p90', 'p99', 'p50', 'p90', 'p99', 'req/s', 'sent', 'errors', 'time, s'].map((name) => (
              <th scope="col">{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {cases.map((it, at) => {
            const progress = Math.round((it.progress ?? (it.state === 'done' ? 1 : 0)) * 100);
            return (
              <tr key={at}>
                <th scope="row">
                  {it.name}
                  <span class="unit">{it.text}</span>
                </th>
                <td class="progress">
                  <progress max={100} value={progress} aria-label={`Case ${it.name}`} />
                  <span class={`unit ${it.state === 'failed' ? 'wrong' : ''}`}>
                    {it.state === 'running' ? `${progress}%` : it.state}
                  </span>
                </td>
                <td>{ms(it.p50_ms)}</td>
                <td>{ms(it.p90_ms)}</td>
                <td>{ms(it.p99_ms)}</td>
                <td>{ms(it.server_p50_ms)}</td>
                <td>{ms(it.server_p90_ms)}</td>
                <td>{ms(it.server_p99_ms)}</td>
                <td>{it.rate === null || it.rate === undefined ? NONE : rate(it.rate)}</td>
                <td>{it.requests === null || it.requests === undefined ? NONE : whole(it.requests)}</td>
                <td class={it.errors ? 'wrong' : ''}>{share(it.errors ?? null)}</td>
                <td>{ms(it.seconds)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** The latencies of clients and server, one beside the other, on the same axis. */
function Sides({ page }: { page: Page }) {
  const timeline = page.service.shown(page.address);
  const { buckets } = page.service;
  const around = surroundings(page);
  const shape = curve(timeline);
  const clients = (bin: Bin): Sum => Sum.of(bin.clients);
  const servers = (bin: Bin): Sum => bin.all;
  const linesOf = (of: (bin: Bin) => Sum): (number | null)[][] => {
    const found = shape.bins.map((bin) => (bin ? of(bin).quantiles(buckets) : null));
    return [0, 1, 2].map((at) => found.map((it) => drawn(it?.[at] ?? null)));
  };
  const sides = [
    { name: 'At the clients', lines: linesOf(clients), sum: timeline.clients },
    { name: 'At the server', lines: linesOf(servers), sum: timeline.all },
  ];
  const all = sides
    .flatMap(({ lines }) => lines.flat())
    .filter((value): value is number => value !== null && value > 0);
  const bounds = logarithmic(Math.min(...all, Infinity), Math.max(...all, 0));
  return (
    <>
      <div class="halves">
        {sides.map(({ name, lines, sum }) => (
          <Side
            key={name}
            name={name}
            x={shape.x}
            lines={lines}
            found={sum.quantiles(buckets).map((between) => quantile(between))}
            bounds={bounds}
            around={around}
            zoom={(span) => page.zoom(span)}
          />
        ))}
      </div>
      <Scrubber
        window={around.window}
        describe={(at) => {
          const bin = binAt(timeline, at);
          if (!bin) return null;
          const texts = [clients, servers].map((of) => of(bin).quantiles(buckets).map((between) => quantile(between)).join(', '));
          return `p50, p90 and p99 at the clients ${texts[0]}, at the server ${texts[1]}`;
        }}
        zoom={(span) => page.zoom(span)}
      />
      <p class="note">
        The latencies of the whole time that is shown stand above each chart. Clients count the way through the network
        too.
      </p>
    </>
  );
}

function Side({
  name,
  x,
  lines,
  found,
  bounds,
  around,
  zoom,
}: {
  name: string;
  x: number[];
  lines: (number | null)[][];
  found: string[];
  bounds: [number, number];
  around: ReturnType<typeof surroundings>;
  zoom: Parameters<typeof Plot>[0]['zoom'];
}) {
  const range = useMemo(() => ({ current: bounds }), []);
  range.current = bounds;
  const names = ['p50', 'p90', 'p99'];
  return (
    <figure class="card">
      <figcaption>
        <b>{name}</b>
      </figcaption>
      <p class="legend">
        {names.map((quantile, n) => (
          <span>
            <span class={`key-line ${['third', 'series', 'peak dashed'][n]}`}>{quantile}</span>
            <b>{found[n]}</b>
          </span>
        ))}
      </p>
      <Plot
        label={`Latency ${name.toLowerCase()}: ${names.map((quantile, n) => `${quantile} ${found[n]}`).join(', ')}.`}
        data={[x, ...lines] as uPlot.AlignedData}
        around={around}
        zoom={zoom}
        parts={() => ({
          height: 190,
          y: { distr: 3, range: () => range.current },
          yAxis: valuesAxis(() => range.current, time),
          series: ['--third', '--series', '--peak'].map((name, n) => ({
            stroke: () => colour(name),
            width: n === 1 ? 2 : 1.5,
            ...(n === 2 && { dash: [5, 3] }),
            points: { show: false, size: 4, filter: lonely },
          })),
        })}
      />
    </figure>
  );
}
