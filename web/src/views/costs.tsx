// What the requests of an endpoint cost, if the service records it.

import { significant, time } from '../figures.ts';
import type { Page } from '../page.ts';
import { useFamilies } from './explorer.tsx';
import { useObserved } from './observed.tsx';

export function Costs({ page, family, endpoint }: { page: Page; family: string; endpoint: string }) {
  const stem = family.replace(/(duration|handling)_seconds$/, '');
  const has = useFamilies(page)?.some(({ name }) => name === `${stem}cpu_seconds`);
  return has ? <Recorded page={page} stem={stem} endpoint={endpoint} /> : null;
}

function Recorded({ page, stem, endpoint }: { page: Page; stem: string; endpoint: string }) {
  const cpu = useObserved(page, `${stem}cpu_seconds`, endpoint);
  const waiting = useObserved(page, `${stem}waiting_seconds`, endpoint)?.clients;
  if (!cpu?.clients.count || !waiting?.count) return null;
  return (
    <p class="card words" aria-label="Costs">
      {`${significant(cpu.clients.seconds / cpu.seconds)} cores. A request takes ${time(cpu.clients.seconds / cpu.clients.count)} of CPU time and waits ${time(waiting.seconds / waiting.count)}.`}
    </p>
  );
}
