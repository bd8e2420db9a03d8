// Which rows of a table can be seen.

import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

/** The numbers, from `data-id`, of the rows that are seen or nearly; it renders anew when more of them are. */
export function useSeen(body: RefObject<HTMLTableSectionElement>): ReadonlySet<string> {
  const [, render] = useState(0);
  const seen = useRef(new Set<string>());
  const watched = useRef<{ observer: IntersectionObserver; rows: WeakSet<Element> } | null>(null);
  useEffect(() => {
    watched.current ??= {
      observer: new IntersectionObserver(
        (entries) => {
          for (const { target, isIntersecting } of entries) {
            const id = (target as HTMLElement).dataset['id'] ?? '';
            if (!isIntersecting || !target.isConnected) seen.current.delete(id);
            else seen.current.add(id);
          }
          if (entries.some(({ isIntersecting }) => isIntersecting)) render((n) => n + 1);
        },
        { rootMargin: '300px 0px' },
      ),
      rows: new WeakSet(),
    };
    for (const row of body.current?.rows ?? []) {
      if (watched.current.rows.has(row)) continue;
      watched.current.rows.add(row);
      watched.current.observer.observe(row);
    }
  });
  useEffect(() => () => watched.current?.observer.disconnect(), []);
  return seen.current;
}
