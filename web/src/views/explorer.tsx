// All families: find one, filter its series by their labels, see them over time.

import { count } from '../figures.ts';
import type { Page } from '../page.ts';
import { printable, printableLines } from '../printable.ts';
import type { Family } from '../protocol.ts';
import { FamilyView } from './family.tsx';
import { useLoaded } from './load.ts';

/** All families, or those of the service that alone is seen. */
export function useFamilies(page: Page): Family[] | null {
  const fields = new URLSearchParams(page.service.region());
  return useLoaded<{ families: Family[] }>(page, `live/families?${fields}`)?.families ?? null;
}

export function Explorer({ page }: { page: Page }) {
  const { address } = page;
  const families = useFamilies(page);
  if (address.family !== null) {
    const family = families?.find(({ name }) => name === address.family);
    return <FamilyView page={page} name={address.family} family={family ?? null} key={address.family} />;
  }
  const words = address.search.toLowerCase().split(/\s+/).filter(Boolean);
  const isFound = ({ name, help, kind, labels }: Family): boolean => {
    const text = `${name} ${help} ${kind} ${labels.join(' ')}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const found = families?.filter(isFound) ?? [];
  return (
    <section aria-labelledby="families-title">
      <div class="section-head">
        <h2 id="families-title">Families</h2>
        <span class="soft">
          {families === null
            ? 'loading'
            : found.length === families.length
              ? count(families.length, 'family', 'families')
              : `${found.length} of ${count(families.length, 'family', 'families')}`}
        </span>
        <input
          type="search"
          class="search"
          placeholder="Search names, help, labels"
          aria-label="Search families"
          value={address.search}
          onInput={(event) => page.amend({ search: event.currentTarget.value })}
        />
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of families">
        <table class="rows families">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Kind</th>
              <th scope="col">Series</th>
              <th scope="col">Labels</th>
            </tr>
          </thead>
          <tbody>
            {found.map(({ name, help, kind, series, labels }) => (
              <tr key={name}>
                <th scope="row" class="name">
                  <a class="row-link" href={page.link({ family: name, labels: [] })}>
                    {printable(name)}
                  </a>
                  {help && <span class="unit">{printableLines(help)}</span>}
                </th>
                <td>{kind}</td>
                <td>{series}</td>
                <td class="labels">{printable(labels.join(', '))}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {families !== null && found.length === 0 && (
          <p class="nothing">
            {families.length === 0 ? 'The service has no families.' : 'No family has all words of the search.'}
          </p>
        )}
      </div>
    </section>
  );
}
