// Advice for the reader if the service has no endpoints that the page can show.

import type { Page } from '../page.ts';
import { printable } from '../printable.ts';
import { Faults } from './parts.tsx';

export function Empty({ page }: { page: Page }) {
  // A study has no regions, and no processes.
  const { service } = page.address;
  if (service !== null && !page.service.services().includes(service)) return <Gone page={page} service={service} />;
  const lives = page.service.study !== null || page.service.processes.some(({ alive }) => alive);
  if (!lives && page.service.faults.length > 0) return <Unreadable page={page} />;
  return (
    <>
      <Faults page={page} />
      <Advice page={page} lives={lives} />
    </>
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

function Advice({ page, lives }: { page: Page; lives: boolean }) {
  return (
    <section class="card words empty" aria-labelledby="empty-title">
      <h2 id="empty-title">No endpoints yet</h2>
      {!lives && <p>No process is there that records metrics where this agent looks: start the service first.</p>}
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
