// The services, if they are so many that a list of endpoints says little of each.

import { bytes, NONE, level, moment, quantile, rate, share } from '../figures.ts';
import { latestOf } from '../model/rows.ts';
import { Sum } from '../model/sum.ts';
import type { Timeline } from '../model/timeline.ts';
import type { Page } from '../page.ts';
import { printable } from '../printable.ts';

/** So many services have a list. */
export const MANY = 13;

interface Line {
  service: string;
  sum: Sum;
  latest: Sum;
  /** The endpoints that are otherwise than usual. */
  changes: number;
  processes: number;
  memory: number | null;
  /** The start of its longest-lived process that lives. */
  since: number | null;
}

export function Services({ page, timeline }: { page: Page; timeline: Timeline }) {
  const all = linesOf(page, timeline);
  return (
    <section class="table-section" aria-labelledby="services-title">
      <div class="section-head">
        <h2 id="services-title">Services</h2>
        <span class="soft">{all.length} services</span>
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of services">
        <table class="rows services">
          <thead>
            <tr>
              <th scope="col" class="name">
                Service
              </th>
              <th scope="col">Requests/s</th>
              <th scope="col">Errors</th>
              <th scope="col">p99</th>
              <th scope="col">Processes</th>
              <th scope="col">Memory</th>
              <th scope="col">Since</th>
            </tr>
          </thead>
          <tbody>
            {all.map(({ service, sum, latest, changes, processes, memory, since }) => (
              <tr key={service} class={changes ? 'has-changed' : ''}>
                <th scope="row" class="name">
                  <a class="row-link" href={page.link({ service })}>
                    {printable(service)}
                  </a>
                  {changes > 0 && <span class="changed">{changes} changed</span>}
                </th>
                <td>{timeline.seconds > 0 ? rate(sum.count / timeline.seconds) : NONE}</td>
                <td class={(latest.errors() ?? 0) >= 0.05 ? 'wrong' : ''}>{share(latest.errors())}</td>
                <td>{quantile(latest.quantiles(page.service.buckets)[2])}</td>
                <td>{level(processes)}</td>
                <td>{memory === null ? NONE : bytes(memory)}</td>
                <td>{since === null ? NONE : moment(since)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** A line for each service: those that changed first, then the busiest. */
function linesOf({ address, service: from }: Page, timeline: Timeline): Line[] {
  const health = timeline.bins.at(-1)?.healthByRegion;
  const lines = new Map<string, Line>();
  for (const service of from.services()) {
    const living = from.processes.filter(({ region, alive }) => alive && region === service);
    const started = living.map((process) => process.started).filter((at) => at !== null);
    lines.set(service, {
      service,
      sum: new Sum(),
      latest: new Sum(),
      changes: 0,
      processes: living.length,
      memory: health?.[service]?.['memory_bytes'] ?? null,
      since: started.length ? Math.min(...started) : null,
    });
  }
  const latest = latestOf(timeline);
  for (const [id, { service }] of from.names) {
    const line = lines.get(service);
    const [all, last] = [timeline.sums.get(id), latest.get(id)];
    if (line && all) line.sum.join(all);
    if (line && last) line.latest.join(last);
  }
  const changed = new Set(from.changesIn(address).map(({ endpoint }) => endpoint));
  for (const { name, service } of from.names.values()) {
    const line = lines.get(service);
    if (line && changed.has(name)) line.changes += 1;
  }
  return [...lines.values()].sort((a, b) => b.changes - a.changes || b.sum.count - a.sum.count);
}
