// One endpoint: its charts, statuses, and what its requests ended with.

import { Requests } from '../charts/requests.tsx';
import { rate, share, whole } from '../figures.ts';
import { titleOf } from '../model/rows.ts';
import { Sum, isError, isFailure } from '../model/sum.ts';
import type { Bin } from '../model/timeline.ts';
import type { Page } from '../page.ts';
import { printable } from '../printable.ts';
import type { Endpoint as Step } from '../protocol.ts';
import { Costs } from './costs.tsx';
import { Exemplars } from './exemplars.tsx';
import { Marks, Showing, Tiles, linesOf, surroundings } from './parts.tsx';

/** The sums of single steps: a step does not change, another takes its place. */
const known = new WeakMap<Step, Sum>();
const nothing = new Sum();

function sumOf(bin: Bin, id: number): Sum {
  const step = bin.endpoints.get(id);
  if (!step) return nothing;
  let sum = known.get(step);
  if (!sum) known.set(step, (sum = Sum.of(step)));
  return sum;
}

export function Endpoint({ page, name }: { page: Page; name: string }) {
  const { address, service } = page;
  const timeline = service.shown(address);
  const around = surroundings(page);
  const found = [...service.names].find(([, it]) => it.name === name && (!address.of || it.family === address.of));
  const back = (
    <a class="back" href={page.link({ endpoint: null, of: null })}>
      ← All endpoints
    </a>
  );
  if (!found) {
    return (
      <>
        {back}
        <p class="card words">
          {service.hello ? (
            <>
              There is no endpoint <code>{printable(name)}</code> now. It may come back when it is requested.
            </>
          ) : (
            'Connecting…'
          )}
        </p>
      </>
    );
  }
  const [id, { family }] = found;
  const sum = timeline.sums.get(id) ?? nothing;
  const inFlight = timeline.inFlight.get(id) ?? null;
  return (
    <>
      {back}
      <div class="endpoint-head">
        <h2 class="endpoint-name">{titleOf(found[1])}</h2>
        {found[1].service && address.service === null && <span class="chip">{printable(found[1].service)}</span>}
        <code class="soft">{printable(family)}</code>
      </div>
      {linesOf(service.changesIn(address), name).map((line) => (
        <p class="changed" key={line}>
          {line}
        </p>
      ))}
      <Showing page={page} timeline={timeline} />
      <div aria-busy={service.isLoading}>
        <Tiles sum={sum} timeline={timeline} inFlight={inFlight} buckets={service.buckets} isLive={!page.isPaused} />
        <Requests
          timeline={timeline}
          sumOf={(bin) => sumOf(bin, id)}
          inFlightOf={(bin) => bin.endpoints.get(id)?.[3] ?? (bin === timeline.bins.at(-1) ? inFlight : null)}
          buckets={service.buckets}
          around={around}
          zoom={(span) => page.zoom(span)}
          subject={printable(name)}
          latenciesFirst={page.isNarrow}
          isLive={!page.isPaused}
        />
        <Marks page={page} around={around} />
        <Costs page={page} family={family} endpoint={name} />
        {service.hello?.history && <Exemplars page={page} family={family} endpoint={name} />}
        <div class="halves">
          <Counts
            title="Statuses"
            counts={sum.statuses}
            seconds={timeline.seconds}
            isWrong={isError}
            none="The service shows no statuses of this endpoint, or none in this time."
          />
          <Counts
            title="Outcomes"
            counts={sum.outcomes}
            seconds={timeline.seconds}
            isWrong={isFailure}
            none="The service shows no outcomes of this endpoint, or none in this time."
          />
        </div>
      </div>
    </>
  );
}

function Counts({
  title,
  counts,
  seconds,
  isWrong,
  none,
}: {
  title: string;
  counts: ReadonlyMap<string, number>;
  seconds: number;
  isWrong: (name: string) => boolean;
  none: string;
}) {
  const all = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const ordered = [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
  return (
    <section class="card counts">
      <h3>{title}</h3>
      {ordered.length === 0 ? (
        <p class="soft">{none}</p>
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col">{title === 'Statuses' ? 'Status' : 'Outcome'}</th>
              <th scope="col">Requests</th>
              <th scope="col">A second</th>
              <th scope="col">Share</th>
            </tr>
          </thead>
          <tbody>
            {ordered.map(([name, count]) => (
              <tr key={name} class={isWrong(name) ? 'wrong' : ''}>
                <th scope="row">{printable(name)}</th>
                <td>{whole(count)}</td>
                <td>{seconds > 0 ? rate(count / seconds) : '–'}</td>
                <td class="with-share">
                  {share(count / all)}
                  <span class="share">
                    <i style={{ width: `${(count / all) * 100}%` }} />
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
