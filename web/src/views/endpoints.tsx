// All endpoints: what they do together, and a table of them.

import { memo } from 'preact/compat';
import { useEffect, useState } from 'preact/hooks';

import { type Address, COLUMNS, type Column } from '../address.ts';
import type { Surroundings } from '../charts/frame.ts';
import { Requests } from '../charts/requests.tsx';
import { NONE, count, level, quantile, rate, share } from '../figures.ts';
import { drawn } from '../model/buckets.ts';
import { type Row, rows, sorted } from '../model/rows.ts';
import type { Bin, Timeline } from '../model/timeline.ts';
import type { Page } from '../page.ts';
import { printable } from '../printable.ts';
import { Empty } from './empty.tsx';
import { Marks, Showing, Tiles, surroundings } from './parts.tsx';

const allOf = (bin: Bin) => bin.all;
const allInFlight = (bin: Bin) => bin.inFlight;

export function Endpoints({ page }: { page: Page }) {
  const { address, service } = page;
  const timeline = service.shown(address);
  const around = surroundings(page);
  if (service.hello && service.names.size === 0 && !service.isLoading) return <Empty page={page} />;
  return (
    <>
      <Showing page={page} timeline={timeline} />
      <div aria-busy={service.isLoading}>
        <Tiles
          sum={timeline.all}
          timeline={timeline}
          inFlight={timeline.bins.at(-1)?.inFlight ?? null}
          buckets={service.buckets}
          isLive={!page.isPaused}
        />
        <Requests
          timeline={timeline}
          sumOf={allOf}
          inFlightOf={allInFlight}
          buckets={service.buckets}
          around={around}
          zoom={(span) => page.zoom(span)}
          subject="all endpoints"
          latenciesFirst={page.isNarrow}
          isLive={!page.isPaused}
        />
        <Marks page={page} around={around} />
        <Rows page={page} timeline={timeline} around={around} />
      </div>
    </>
  );
}

const HEADINGS: Record<Column, string> = {
  name: 'Endpoint',
  rate: 'Requests/s',
  errors: 'Errors',
  p50: 'p50',
  p90: 'p90',
  p99: 'p99',
  inflight: 'In flight',
};
const NARROW_ORDER: readonly Column[] = ['name', 'p50', 'p90', 'p99', 'rate', 'errors', 'inflight'];

/** The rows are made after the charts were drawn, so that many of them hold up neither charts nor keys. */
function Rows({ page, timeline, around }: { page: Page; timeline: Timeline; around: Surroundings }) {
  const { names } = page.service;
  const [all, setAll] = useState(() => rows(timeline, names, around.window));
  useEffect(() => {
    const timer = setTimeout(() => setAll(rows(timeline, names, around.window)));
    return () => clearTimeout(timer);
  }, [timeline, around, names.size]);
  return <Table page={page} address={page.address} isNarrow={page.isNarrow} all={all} />;
}

interface TableProps {
  page: Page;
  address: Address;
  isNarrow: boolean;
  all: Row[];
}

const Table = memo(({ page, address, isNarrow, all }: TableProps) => {
  const { service } = page;
  const columns = isNarrow ? NARROW_ORDER : COLUMNS;
  const wanted = address.filter.toLowerCase();
  const found = all.filter(({ title }) => title.toLowerCase().includes(wanted));
  const shown = sorted(found, address.sort, address.isDescending, service.buckets);
  const busiest = Math.max(0, ...all.map((row) => row.rate ?? 0));
  const isAmbiguous = new Set(all.map(({ name }) => name)).size < all.length;
  const sort = (column: Column): void => {
    const isDescending = address.sort === column ? !address.isDescending : column !== 'name';
    page.amend({ sort: column, isDescending });
  };
  return (
    <section class="table-section" aria-labelledby="endpoints-title">
      <div class="section-head">
        <h2 id="endpoints-title">Endpoints</h2>
        <span class="soft">
          {found.length === all.length
            ? count(all.length, 'endpoint')
            : `${found.length} of ${count(all.length, 'endpoint')}`}
        </span>
        <input
          type="search"
          class="search"
          placeholder="Filter"
          aria-label="Filter endpoints by name"
          value={address.filter}
          onInput={(event) => page.amend({ filter: event.currentTarget.value })}
        />
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of endpoints">
        <table class="rows endpoints">
          <thead>
            <tr>
              {columns.map((column) => (
                <th
                  scope="col"
                  class={column}
                  aria-sort={address.sort === column ? (address.isDescending ? 'descending' : 'ascending') : undefined}
                >
                  <button onClick={() => sort(column)}>
                    <span class="arrow" aria-hidden="true">
                      {address.sort === column ? (address.isDescending ? '▼' : '▲') : ''}
                    </span>
                    {HEADINGS[column]}
                  </button>
                </th>
              ))}
              <th scope="col" class="trend">
                Trend
              </th>
            </tr>
          </thead>
          <tbody onClick={(event) => follow(event)}>
            {shown.map((row) => {
              const [p50, p90, p99] = row.sum.quantiles(service.buckets);
              const errors = row.sum.errors();
              return (
                <RowOf
                  key={row.id}
                  columns={columns}
                  name={row.title}
                  family={isAmbiguous ? printable(row.family) : ''}
                  link={page.link({ endpoint: row.name, of: isAmbiguous ? row.family : null })}
                  rate={row.rate === null ? NONE : rate(row.rate)}
                  load={busiest > 0 ? Math.round(((row.rate ?? 0) / busiest) * 100) : 0}
                  errors={share(errors)}
                  wrong={errors === null ? 0 : Math.ceil(Math.min(1, errors) * 100)}
                  p50={quantile(p50)}
                  p90={quantile(p90)}
                  p99={quantile(p99)}
                  slow={(drawn(p99 ?? null) ?? 0) >= 1}
                  inflight={level(row.inFlight)}
                  trend={row.trend}
                />
              );
            })}
          </tbody>
        </table>
        {shown.length === 0 && (
          <p class="nothing">
            {all.length === 0
              ? 'No endpoint was requested in this time.'
              : 'No endpoint has the text of the filter in its name.'}
          </p>
        )}
      </div>
    </section>
  );
});

/** A click anywhere in a row opens it, as its link does. */
function follow(event: MouseEvent): void {
  const target = event.target as HTMLElement;
  if (target.closest('a') || getSelection()?.type === 'Range') return;
  target.closest('tr')?.querySelector<HTMLElement>('a.row-link')?.click();
}

interface RowProps {
  columns: readonly Column[];
  name: string;
  family: string;
  link: string;
  rate: string;
  load: number;
  errors: string;
  wrong: number;
  p50: string;
  p90: string;
  p99: string;
  slow: boolean;
  inflight: string;
  trend: string;
}

// With 200 rows each second, those that did not change are left as they are.
const RowOf = memo((row: RowProps) => (
  <tr>
    {row.columns.map((column) =>
      column === 'name' ? (
        <th scope="row" class="name">
          <a class="row-link" href={row.link} title={row.name}>
            {row.name}
          </a>
          {row.family && <span class="unit">{row.family}</span>}
        </th>
      ) : column === 'errors' ? (
        <td class={`errors ${row.wrong >= 5 ? 'wrong' : ''}`}>
          {row.errors}
          <span class={row.wrong > 0 ? 'share' : 'share none'}>
            <i style={{ width: `${row.wrong}%` }} />
          </span>
        </td>
      ) : (
        <td class={column}>{row[column]}</td>
      ),
    )}
    <td class="trend">
      <svg viewBox="0 0 96 20" width="96" height="20" aria-hidden="true" preserveAspectRatio="none">
        <path d={row.trend} />
      </svg>
    </td>
  </tr>
));
