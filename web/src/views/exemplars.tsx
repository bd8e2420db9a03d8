// The latest exemplars of a family: single requests, with links to their traces.

import { NONE, inUnit, moment, unitOf } from '../figures.ts';
import type { Page } from '../page.ts';
import { printable } from '../printable.ts';
import type { Exemplar, Labels } from '../protocol.ts';
import { traceLink } from '../trace.ts';
import { useLoaded } from './load.ts';

export function Exemplars({
  page,
  family,
  labels = [],
  endpoint,
}: {
  page: Page;
  family: string;
  labels?: Labels;
  /** Those of this endpoint alone. */
  endpoint?: string;
}) {
  const { hello } = page.service;
  const fields = new URLSearchParams({ family, ...(endpoint && { endpoint }), ...page.service.region() });
  for (const [label, value] of labels) fields.append(`label.${label}`, value);
  const all = useLoaded<{ exemplars: Exemplar[] }>(page, `live/exemplars?${fields}`)?.exemplars ?? [];
  if (all.length === 0) return null;
  return (
    <section aria-label="Exemplars">
      <div class="section-head">
        <h2>Exemplars</h2>
        <span class="soft">the latest</span>
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of exemplars">
        <table class="rows exemplars">
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col">Value</th>
              <th scope="col" class="label">
                Exemplar
              </th>
              {!endpoint && (
                <th scope="col" class="label">
                  Series
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {all.map(({ t, value, exemplar, labels }, at) => (
              <tr key={at}>
                <td>{t === null ? NONE : moment(t)}</td>
                <td>{value === null ? NONE : inUnit(value, unitOf(family))}</td>
                <td class="label">
                  {exemplar.map(([name, value]) => (
                    <Label key={name} name={name} value={value} link={traceLink(hello?.traceUrl, name, value)} />
                  ))}
                </td>
                {!endpoint && <td class="label">{printable(labels.map(([, value]) => value).join(' '))}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Label({ name, value, link }: { name: string; value: string; link: string | null }) {
  const text = `${printable(name)}=${printable(value)} `;
  return link === null ? (
    <code>{text}</code>
  ) : (
    <a href={link} target="_blank" rel="noreferrer">
      <code>{text}</code>
    </a>
  );
}
