// All endpoints: what they do together, and a table of them.

import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { type Address, COLUMNS, type Column } from '../address.ts';
import type { Surroundings } from '../charts/frame.ts';
import { Requests } from '../charts/requests.tsx';
import { NONE, count, level, quantile, rate, share } from '../figures.ts';
import { type Row, changedFirst, rows, sorted } from '../model/rows.ts';
import { type Sum, isError } from '../model/sum.ts';
import type { Bin, Timeline } from '../model/timeline.ts';
import { HEIGHT, Trends, WIDTH } from '../model/trends.ts';
import type { Page } from '../page.ts';
import { printable } from '../printable.ts';
import type { Change } from '../protocol.ts';
import { Empty } from './empty.tsx';
import { MANY, Services } from './services.tsx';
import { memo } from './memo.ts';
import { Faults, Marks, Showing, Tiles, linesOf, surroundings } from './parts.tsx';
import { useSeen } from './seen.ts';

const allOf = (bin: Bin) => bin.all;
const allInFlight = (bin: Bin) => bin.inFlight;

export function Endpoints({ page }: { page: Page }) {
  const { address, service } = page;
  const timeline = service.shown(address);
  const around = surroundings(page);
  if (service.hello && service.shownNames().size === 0 && !service.isLoading) return <Empty page={page} />;
  const { all } = timeline;
  return (
    <>
      <Showing page={page} timeline={timeline} />
      {page.isNarrow && <Changed page={page} />}
      <div aria-busy={service.isLoading}>
        {address.service === null && service.services().length >= MANY && <Services page={page} timeline={timeline} />}
        <Tiles
          sum={all}
          timeline={timeline}
          inFlight={timeline.bins.at(-1)?.inFlight ?? null}
          buckets={service.buckets}
          isLive={!page.isPaused}
        />
        {service.buckets.overlap(all.buckets) && (
          <p class="note">
            The services count latencies in buckets with other bounds. A quantile of all endpoints is known between
            bounds of all of them; those of each endpoint are as exact as its own buckets.
          </p>
        )}
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
          isOneRow
        />
        <Faults page={page} />
        <Marks page={page} around={around} />
        <Rows page={page} timeline={timeline} around={around} />
      </div>
    </>
  );
}

/** On a phone the table is far below: what changed is said first. */
function Changed({ page }: { page: Page }) {
  const changes = page.service.changesIn(page.address).slice(-3).reverse();
  if (changes.length === 0) return null;
  return (
    <section class="card words" aria-label="Changed endpoints">
      {changes.map(({ endpoint, quantity }) => (
        <p key={`${quantity} ${endpoint}`}>
          <a href={page.link({ endpoint, of: null })}>{printable(endpoint)}</a>
          <span class="changed">
            {linesOf(
              changes.filter((it) => it.quantity === quantity),
              endpoint,
            )}
          </span>
        </p>
      ))}
    </section>
  );
}

const HEADINGS: Record<Column, string> = {
  name: 'Endpoint',
  p50: 'p50',
  p99: 'p99',
  errors: 'Errors',
  rate: 'Requests/s',
  inflight: 'In flight',
};
/** What the columns are of, for those who wonder. */
const MEANINGS: Partial<Record<Column, string>> = {
  p50: 'The latest 10 seconds, or 20 requests',
  p99: 'The latest 10 seconds, or 20 requests; the line is of the time that is seen',
  errors: 'Responses with a status of 500 or more, of the latest; the line and the statuses are of the time that is seen',
  rate: 'The mean of the time that is seen',
};
/** The columns with a line of the time that is seen. */
const WITH_LINE = ['p99', 'errors', 'rate'] as const;
type WithLine = (typeof WITH_LINE)[number];
const hasLine = (column: Column): column is WithLine => WITH_LINE.some((it) => it === column);

/** The rows are made after the charts were drawn, so that many of them hold up neither charts nor keys. */
function Rows({ page, timeline, around }: { page: Page; timeline: Timeline; around: Surroundings }) {
  const names = page.service.shownNames();
  const make = () => ({
    timeline,
    all: rows(timeline, names),
    trends: new Trends(timeline, around.window, page.service.buckets),
  });
  const [made, setMade] = useState(make);
  useEffect(() => {
    const timer = setTimeout(() => setMade(make()));
    return () => clearTimeout(timer);
  }, [timeline, around, names.size, page.address.service]);
  return <Table page={page} address={page.address} isNarrow={page.isNarrow} {...made} />;
}

interface TableProps {
  page: Page;
  address: Address;
  isNarrow: boolean;
  timeline: Timeline;
  all: Row[];
  trends: Trends;
}

/** At every fifth time rows are sorted anew, and each row that cannot be seen is made anew. */
const TURNS = 5;

/** The state of a table, kept as long as the same is to be seen. */
interface Kept {
  address: Address;
  isNarrow: boolean;
  timeline: Timeline;
  turn: number;
  /** The endpoints that were first because they had changed. */
  changed: string;
  /** The numbers of the rows as they were sorted. */
  order: number[];
  rows: Map<number, VNode>;
}

/** Rows that are almost equal do not change places each second: the order is kept for some time. */
function inOrder(rows: Row[], kept: Kept, sort: (rows: Row[]) => Row[]): Row[] {
  const byId = new Map(rows.map((row) => [row.id, row]));
  const isSame = kept.order.length === rows.length && kept.order.every((id) => byId.has(id));
  if (isSame && kept.turn !== 0) return kept.order.map((id) => byId.get(id)!);
  const found = sort(rows);
  kept.order = found.map(({ id }) => id);
  return found;
}

const Table = memo(({ page, address, isNarrow, timeline, all, trends }: TableProps) => {
  const { service } = page;
  const body = useRef<HTMLTableSectionElement>(null);
  const seen = useSeen(body);
  const kept = useRef<Kept | null>(null);
  if (kept.current?.address !== address || kept.current.isNarrow !== isNarrow || kept.current.timeline !== timeline) {
    kept.current = { address, isNarrow, timeline, turn: 0, changed: '', order: [], rows: new Map() };
  }
  const wanted = address.filter.toLowerCase();
  const found = all.filter(({ title, service }) => `${title} ${service}`.toLowerCase().includes(wanted));
  const changes = service.changesIn(address);
  const changed = JSON.stringify(changes.map(({ endpoint, quantity }) => [endpoint, quantity]));
  // A change is seen at once, and its row wherever it was.
  if (kept.current.changed !== changed) Object.assign(kept.current, { changed, turn: 0, rows: new Map() });
  const shown = inOrder(found, kept.current, (rows) =>
    changedFirst(sorted(rows, address.sort, address.isDescending, service.buckets), changes),
  );
  const turn = (kept.current.turn = (kept.current.turn + 1) % TURNS);
  const isAmbiguous = new Set(all.map(({ name }) => name)).size < all.length;
  const hasServices = address.service === null && new Set(all.map((row) => row.service)).size > 1;
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
              {COLUMNS.map((column) => (
                <th
                  key={column}
                  title={MEANINGS[column]}
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
            </tr>
          </thead>
          <tbody ref={body} onClick={(event) => follow(event)}>
            {shown.map((row, at) => {
              const before = kept.current!.rows.get(row.id);
              if (before && !seen.has(String(row.id)) && at % TURNS !== turn) return before;
              const [p50, , p99] = row.latest.quantiles(service.buckets);
              const errors = row.latest.errors();
              const hadErrors = row.sum.errorCount() > 0;
              const made = (
                <RowOf
                  key={row.id}
                  id={row.id}
                  name={row.title}
                  service={hasServices ? row.service : ''}
                  family={isAmbiguous ? printable(row.family) : ''}
                  changed={linesOf(changes, row.name).join('\n')}
                  since={sinceOf(changes, row.name, trends)}
                  link={page.link({ endpoint: row.name, of: isAmbiguous ? row.family : null })}
                  rate={row.rate === null ? NONE : rate(row.rate)}
                  errors={share(errors)}
                  wrong={errors ?? 0}
                  statuses={hadErrors ? wrongStatuses(row.sum) : ''}
                  p50={quantile(p50)}
                  p99={quantile(p99)}
                  inflight={level(row.inFlight)}
                  p99Line={trends.p99(row.id)}
                  errorsLine={hadErrors ? trends.errors(row.id) : ''}
                  rateLine={trends.rate(row.id)}
                />
              );
              kept.current!.rows.set(row.id, made);
              return made;
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

/** The statuses of errors, the most frequent first. */
function wrongStatuses({ statuses }: Sum): string {
  const wrong = [...statuses].filter(([status]) => isError(status)).sort(([, a], [, b]) => b - a);
  return wrong.map(([status]) => printable(status)).join(', ');
}

/** Where the changes of an endpoint began, on its lines, separated by spaces. */
function sinceOf(changes: readonly Change[], endpoint: string, trends: Trends): string {
  const of = changes.filter((change) => change.endpoint === endpoint);
  return of.map(({ since }) => trends.at(since)).filter((x) => x !== null).join(' ');
}

interface RowProps {
  id: number;
  name: string;
  service: string;
  family: string;
  changed: string;
  since: string;
  link: string;
  rate: string;
  errors: string;
  wrong: number;
  statuses: string;
  p50: string;
  p99: string;
  inflight: string;
  p99Line: string;
  errorsLine: string;
  rateLine: string;
}

const RowOf = memo((row: RowProps) => (
  <tr data-id={row.id} class={row.changed ? 'has-changed' : ''}>
    {COLUMNS.map((column) =>
      column === 'name' ? (
        <th scope="row" class="name">
          <a class="row-link" href={row.link} title={row.name}>
            {row.name}
          </a>
          {row.service && <span class="chip">{printable(row.service)}</span>}
          {row.family && <span class="unit">{row.family}</span>}
          {row.changed && <span class="changed">{row.changed}</span>}
        </th>
      ) : (
        <td class={`${column} ${column === 'errors' && row.wrong >= 0.05 ? 'wrong' : ''}`}>
          <span class="hidden">{HEADINGS[column]} </span>
          <span class="number">
            {row[column]}
            {column === 'errors' && row.statuses && <span class="unit">{row.statuses}</span>}
          </span>
          {hasLine(column) && <Line path={row[`${column}Line`]} since={column === 'errors' ? '' : row.since} />}
        </td>
      ),
    )}
  </tr>
));

function Line({ path, since }: { path: string; since: string }) {
  return (
    <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT} aria-hidden="true" preserveAspectRatio="none">
      {since && since.split(' ').map((x) => <path key={x} class="since" d={`M${x} 0V${HEIGHT}`} />)}
      <path d={path} />
    </svg>
  );
}
