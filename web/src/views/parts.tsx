// Parts that several views share.

import type { ComponentChildren } from 'preact';

import { MARKS, type Surroundings } from '../charts/frame.ts';
import { NONE, duration, level, moment, quantile, rate, share, uncertainty } from '../figures.ts';
import type { BucketTable } from '../model/buckets.ts';
import { lines } from '../model/marks.ts';
import type { Sum } from '../model/sum.ts';
import type { Timeline } from '../model/timeline.ts';
import type { Page } from '../page.ts';
import { printable } from '../printable.ts';
import type { Change, Mark } from '../protocol.ts';

let latest: { key: unknown[]; around: Surroundings } | null = null;

/** Whether a mark says something of what is seen: marks of processes do of all endpoints of their service. */
function isOf({ kind, of }: Mark, { address: { endpoint, service: only }, service }: Page): boolean {
  const isOfEndpoint = kind === 'changed' || kind === 'back';
  if (isOfEndpoint && endpoint !== null && of !== endpoint) return false;
  return only === null || of === '' || (isOfEndpoint ? service.isOf(of, only) : of === only);
}

/** The window, gaps and marks of what is seen; the same object as long as nothing of it changes. */
export function surroundings(page: Page): Surroundings {
  const { address, service } = page;
  const window = service.window(address);
  const timeline = service.shown(address);
  const { endpoint, service: only } = address;
  const key = [timeline, timeline.version, window.from, window.to, service.marks, endpoint, only, service.isLoading];
  if (latest?.key.every((part, at) => part === key[at])) return latest.around;
  // While a range is on its way nothing is known of it, not even that it has gaps.
  const gaps = service.isLoading && timeline.bins.length === 0 ? [] : timeline.gaps(window.from, window.to);
  latest = { key, around: { window, gaps, marks: service.marks.filter((mark) => isOf(mark, page)) } };
  return latest.around;
}

export function Tiles({
  sum,
  timeline,
  inFlight,
  buckets,
  isLive,
}: {
  sum: Sum;
  timeline: Timeline;
  inFlight: number | null;
  buckets: BucketTable;
  isLive: boolean;
}) {
  const isKnown = timeline.seconds > 0;
  const [p50, p90, p99] = sum.quantiles(buckets);
  const errors = sum.errors();
  return (
    <dl class="tiles card">
      <Tile name="requests/s" note={uncertainty(timeline.uncertainty)}>
        {isKnown ? rate(sum.count / timeline.seconds) : NONE}
      </Tile>
      <Tile name="errors" kind={errors !== null && errors >= 0.05 ? 'bad' : ''}>
        {share(errors)}
      </Tile>
      <Tile name="p50">{quantile(p50)}</Tile>
      <Tile name="p90">{quantile(p90)}</Tile>
      <Tile name="p99">{quantile(p99)}</Tile>
      <Tile name="in flight" note={inFlight === null ? '' : isLive ? 'now' : 'at the end'}>
        {level(inFlight)}
      </Tile>
    </dl>
  );
}

function Tile({
  name,
  note,
  kind = '',
  children,
}: {
  name: string;
  note?: string;
  kind?: string;
  children: ComponentChildren;
}) {
  return (
    <div class={`tile ${kind}`}>
      <dt class="name">{name}</dt>
      <dd class="figure">
        {children}
        {note && <small>{note}</small>}
      </dd>
    </div>
  );
}

/** The time that is seen, and the way back to now. */
export function Showing({ page, timeline }: { page: Page; timeline: Timeline }) {
  const { span } = page.address;
  if (!span) return null;
  const length = (span.to - span.from) / 1000;
  const isEmpty = !page.service.isLoading && timeline.bins.length === 0;
  return (
    <p class="showing card">
      <span>
        <b>
          {moment(span.from)} to {moment(span.to)}
        </b>{' '}
        ({duration(length)}){isEmpty && ': nothing was recorded then'}
      </span>
      <button class="button primary" onClick={() => page.go({ span: null })}>
        Back to now
      </button>
    </p>
  );
}

const QUANTITIES = {
  slower: 'slower',
  errors: 'more errors',
  more: 'more requests',
  fewer: 'fewer requests',
} as const;

/** What an endpoint is otherwise in than usual, and since when, as a line each. */
export function linesOf(changes: readonly Change[], endpoint: string): string[] {
  return changes
    .filter((change) => change.endpoint === endpoint)
    .map(({ quantity, since, text }) => `${QUANTITIES[quantity]} since ${moment(since)}: ${printable(text)}`);
}

/** What is not shown, or not as it is defined, and what is wrong with the agent itself. */
export function Faults({ page: { service } }: { page: Page }) {
  return (
    <>
      <FaultList title="Not shown, or not as it is defined" faults={service.faults} />
      <FaultList title="The agent" faults={service.agentFaults} />
    </>
  );
}

function FaultList({ title, faults }: { title: string; faults: readonly string[] }) {
  if (faults.length === 0) return null;
  return (
    <section class="card marks faults" aria-label={title}>
      <h3>{title}</h3>
      <ul tabIndex={faults.length > 2 ? 0 : -1}>
        {faults.map((fault) => (
          <li key={fault}>
            <span>{printable(fault)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Starts and deaths of processes and changes of endpoints in the time that is seen, the latest first. */
export function Marks({ page: { service }, around: { window, marks } }: { page: Page; around: Surroundings }) {
  const seen = marks.filter(({ t }) => t >= window.from && t <= window.to).reverse();
  if (!seen.length) return null;
  // The agent has a page of the latest death; the server of a study does not.
  const latest = service.hello?.history ? marks.findLast(({ kind }) => kind === 'died' || kind === 'replaced') : null;
  return (
    <section class="card marks" aria-label="Marks">
      <ul tabIndex={seen.length > 2 ? 0 : -1}>
        {lines(seen)
          .slice(0, 50)
          .map(({ mark, deaths, since }) => (
            <li key={`${mark.t} ${mark.kind} ${mark.of} ${mark.text}`}>
              <MarkName mark={mark} />
              <time dateTime={new Date(mark.t).toISOString()}>{moment(mark.t)}</time>
              <span>
                {mark.of && <b>{printable(mark.of)}: </b>}
                {deaths > 1 && `${deaths} deaths since ${moment(since)}, the latest: `}
                {printable(mark.text)} {mark === latest && <a href="postmortem">The minute before</a>}
              </span>
            </li>
          ))}
      </ul>
    </section>
  );
}

function MarkName({ mark }: { mark: Mark }) {
  const { glyph, name } = MARKS[mark.kind] ?? MARKS.missed;
  return (
    <span class={`mark ${mark.kind}`}>
      <span aria-hidden="true">{glyph}</span> {name}
    </span>
  );
}
