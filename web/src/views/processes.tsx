// The processes that record, and how the service is.

import { Small } from '../charts/small.tsx';
import { binAt, curve, line } from '../charts/curves.ts';
import { Scrubber } from '../charts/scrubber.tsx';
import { duration, inUnit, moment, unitOf } from '../figures.ts';
import type { Page } from '../page.ts';
import { printable } from '../printable.ts';
import type { Process } from '../protocol.ts';
import { Faults, Marks, Showing, surroundings } from './parts.tsx';

export function Processes({ page }: { page: Page }) {
  const { address, service } = page;
  const timeline = service.shown(address);
  const around = surroundings(page);
  const shape = curve(timeline);
  const names = new Set<string>();
  for (const bin of timeline.bins) for (const name of Object.keys(bin.health)) names.add(name);
  const seen = service.processes.filter(({ region }) => address.service === null || region === address.service);
  const ordered = seen.sort(
    (a, b) => Number(b.alive) - Number(a.alive) || (b.died ?? 0) - (a.died ?? 0) || a.pid - b.pid,
  );
  return (
    <>
      <Showing page={page} timeline={timeline} />
      <Faults page={page} />
      <Marks page={page} around={around} />
      <section aria-labelledby="processes-title">
        <div class="section-head">
          <h2 id="processes-title">Processes</h2>
          {service.hello?.history && ordered.some(({ alive }) => !alive) && (
            <a class="soft" href="postmortem">
              The minute before the latest death
            </a>
          )}
        </div>
        <div class="scroll" tabIndex={0} role="region" aria-label="Table of processes">
          <table class="rows processes">
            <thead>
              <tr>
                <th scope="col">PID</th>
                <th scope="col">State</th>
                <th scope="col">Region</th>
                <th scope="col">Started</th>
                <th scope="col">Died</th>
                <th scope="col">Lived</th>
              </tr>
            </thead>
            <tbody>
              {ordered.map((process) => (
                <RowOf
                  key={`${process.region} ${process.pid} ${process.started}`}
                  process={process}
                  link={service.services().length > 1 ? page.link({ service: process.region }) : undefined}
                  now={service.now()}
                />
              ))}
            </tbody>
          </table>
          {ordered.length === 0 && (
            <p class="nothing">No process is known. A page that is read by URL does not tell its processes.</p>
          )}
        </div>
      </section>
      <section aria-labelledby="health-title">
        <div class="section-head">
          <h2 id="health-title">Health</h2>
          <span class="soft">
            all living processes {address.service === null ? '' : `of ${printable(address.service)} `}together
          </span>
        </div>
        {names.size === 0 ? (
          <p class="card words">
            The service shows no numbers about itself. The collectors of Talea add them: processor time, memory, open
            files, tasks.
          </p>
        ) : (
          <div class="smalls">
            {[...names].sort().map((name) => (
              <Small
                key={name}
                name={title(name)}
                unit={unitOf(name)}
                x={shape.x}
                values={line(shape, (bin) => bin.health[name] ?? null)}
                valueAt={(ms) => binAt(timeline, ms)?.health[name] ?? null}
                around={around}
                zoom={(span) => page.zoom(span)}
              />
            ))}
          </div>
        )}
        {names.size > 0 && (
          <Scrubber
            window={around.window}
            describe={(at) => {
              const bin = binAt(timeline, at);
              return (
                bin &&
                Object.entries(bin.health)
                  .map(([name, value]) => `${name} ${inUnit(value, unitOf(name))}`)
                  .join(', ')
              );
            }}
            zoom={(span) => page.zoom(span)}
          />
        )}
      </section>
    </>
  );
}

/** A name as a heading: without its unit, which its values have. */
function title(name: string): string {
  const words = name.replace(/_(bytes|seconds|cores)$/, '').replaceAll('_', ' ');
  const known = words.replace(/^cpu\b/, 'CPU').replace(/\bfds\b/, 'files');
  return known[0] ? known[0].toUpperCase() + known.slice(1) : name;
}

function RowOf({
  process: { region, pid, started, alive, died, reason },
  link,
  now,
}: {
  process: Process;
  /** To its service alone. */
  link: string | undefined;
  now: number;
}) {
  const lived = started === null ? null : ((alive ? now : (died ?? now)) - started) / 1000;
  return (
    <tr>
      <th scope="row">{pid}</th>
      <td>
        <span class={`mark ${alive ? 'started' : 'died'}`}>
          <span aria-hidden="true">{alive ? '●' : '✕'}</span> {alive ? 'alive' : 'dead'}
        </span>
        {reason && <span class="unit">{printable(reason)}</span>}
      </td>
      <td>{link ? <a href={link}>{printable(region)}</a> : printable(region) || '–'}</td>
      <td>{started === null ? '–' : moment(started)}</td>
      <td>{died === null ? '–' : moment(died)}</td>
      <td>{lived === null ? '–' : duration(lived)}</td>
    </tr>
  );
}
