import { useEffect, useState } from 'preact/hooks';

import type { Page } from '../page.ts';

/** How often it is asked for again, milliseconds. */
const EVERY = 10_000;

/** What the server has at an address, asked for from time to time; null until it is there. */
export function useLoaded<Data>(page: Page, url: string): Data | null {
  const [found, setFound] = useState<Data | null>(null);
  const run = page.service.hello?.run;
  useEffect(() => {
    let isOver = false;
    setFound(null);
    const load = async (): Promise<void> => {
      try {
        const response = await fetch(url);
        const data = response.ok ? ((await response.json()) as Data) : null;
        if (data && !isOver) setFound(data);
      } catch {
        // The state of the connection says it.
      }
    };
    void load();
    const timer = setInterval(() => void load(), EVERY);
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, [url, run]);
  return found;
}
