// Advice for the reader if the service has no endpoints that the page can show.

import { count } from '../figures.ts';
import type { Page } from '../page.ts';
import { printable } from '../printable.ts';
import { useFamilies } from './explorer.tsx';
import { Faults } from './parts.tsx';

/** The family that has a series for each region that can be read. */
const CREATED = 'talea_region_created_timestamp_seconds';

export function Empty({ page }: { page: Page }) {
  const { service } = page.address;
  const families = useFamilies(page);
  if (service !== null && !page.service.services().includes(service)) return <Gone page={page} service={service} />;
  // A study has no regions, and no processes.
  const isStudy = page.service.study !== null;
  const lives = isStudy || page.service.processes.some(({ alive }) => alive);
  if (!lives && page.service.faults.length > 0) return <Unreadable page={page} />;
  const regions = families?.find(({ name }) => name === CREATED)?.series ?? 0;
  return (
    <>
      <Faults page={page} />
      {lives ? <NoEndpoints page={page} /> : families && <NoProcess page={page} regions={regions} />}
    </>
  );
}

/** Nothing records: how the service is named and what it does once it runs is not the question yet. */
function NoProcess({ page, regions }: { page: Page; regions: number }) {
  return (
    <section class="card words empty" aria-labelledby="empty-title">
      <h2 id="empty-title">{regions ? 'No living process' : 'No region yet'}</h2>
      {regions ? (
        <p>
          {count(regions, 'region is', 'regions are')} here, and no process has {regions === 1 ? 'it' : 'one'} open: the
          service has ended, or writes to another file. Start it, or see what it recorded in the{' '}
          <a href={page.link({ view: 'explorer' })}>Explorer</a> and in the <a href="postmortem">minute before</a>.
        </p>
      ) : (
        <p>
          The agent looks at <code>{printable(page.service.hello?.title ?? '')}</code> and finds no region of metrics.
          Start the service with the path of its region, such as <code>TALEA_REGION=/dev/shm/shop.talea</code>: in a
          directory that the agent was named with <code>--dir</code>, where its name has to end in{' '}
          <code>.talea</code>, or as the file that it was named. The page goes on by itself.
        </p>
      )}
    </section>
  );
}

function NoEndpoints({ page }: { page: Page }) {
  return (
    <section class="card words empty" aria-labelledby="empty-title">
      <h2 id="empty-title">No endpoints yet</h2>
      <p>
        The page shows endpoints as soon as the service has a histogram of the durations of its requests, such as{' '}
        <code>http_request_duration_seconds</code> or <code>http_server_request_duration_seconds</code>, with a label
        for the route or the method.
      </p>
      <ul>
        <li>
          A Rust service: build the router with <code>talea_http::axum::Router</code>, or add the tower layer of{' '}
          <code>talea-http</code>.
        </li>
        <li>
          A Python or PHP service: add the middleware of the package <code>talea</code>, and let the service and this
          agent name the same region.
        </li>
        <li>The service meters its requests already? Then send one: an endpoint appears with its first request.</li>
      </ul>
      <p>
        All other metrics are in the <a href={page.link({ view: 'explorer' })}>Explorer</a>, the processes that record
        them in <a href={page.link({ view: 'processes' })}>Processes</a>.
      </p>
    </section>
  );
}

/** A link may name a service that has ended since. */
function Gone({ page, service }: { page: Page; service: string }) {
  return (
    <>
      <section class="card words empty" aria-labelledby="empty-title">
        <h2 id="empty-title">
          No service <code>{printable(service)}</code>
        </h2>
        <p>
          The agent has no endpoints and no living processes of it now, nor in the time that is seen. It may have ended,
          or have another name since. <a href={page.link({ service: null, endpoint: null, of: null })}>All services</a>
        </p>
      </section>
      <Faults page={page} />
    </>
  );
}

/** The cause is the agent's: advice for the service would not help. */
function Unreadable({ page }: { page: Page }) {
  return (
    <>
      <section class="card words empty" aria-labelledby="empty-title">
        <h2 id="empty-title">No region can be read</h2>
        <p>The agent found regions of metrics, or was named some, and can read none of them. The reasons:</p>
      </section>
      <Faults page={page} />
    </>
  );
}
