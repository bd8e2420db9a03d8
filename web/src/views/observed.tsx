// What a histogram observed: its quantiles over time and its heat map, whatever its buckets are.

import { useEffect, useState } from 'preact/hooks';

import type { Surroundings } from '../charts/frame.ts';
import { Distribution } from '../charts/requests.tsx';
import { inUnit, time, unitOf } from '../figures.ts';
import { Sum } from '../model/sum.ts';
import { type Bin, Timeline } from '../model/timeline.ts';
import type { Page } from '../page.ts';
import { printable } from '../printable.ts';
import type { Endpoint, Range } from '../protocol.ts';
import { binsOf, widthOf } from '../service.ts';

/** How often the latest seconds are asked for, milliseconds. */
const EVERY = 2000;

/** Loads what was observed, of one endpoint if that is named, and goes on while the page is live. */
export function useObserved(page: Page, name: string, endpoint?: string): Timeline | null {
  const [state, setState] = useState<{ timeline: Timeline | null; version: number }>({ timeline: null, version: 0 });
  const { address, service } = page;
  const { span, range, labels } = address;
  const run = service.hello?.run;
  const isLive = span === null && service.connection === 'live';
  const selected = new URLSearchParams({ family: name, ...(endpoint && { endpoint }), ...service.region() });
  for (const [label, value] of labels) selected.append(`label.${label}`, value);
  useEffect(() => {
    if (!run) return undefined;
    let isOver = false;
    const timeline = new Timeline(span ? 0 : widthOf(range));
    const load = async (fields: Record<string, string>): Promise<void> => {
      try {
        const response = await fetch(`live/range?${selected}&${new URLSearchParams(fields)}`);
        const found = response.ok ? ((await response.json()) as Range) : null;
        if (isOver || found?.run !== run) return;
        service.buckets.add(found.buckets);
        for (const point of found.points) timeline.add(point);
        setState(({ version }) => ({ timeline, version: version + 1 }));
      } catch {
        // The state of the connection says it; it is asked for again.
      }
    };
    const goOn = async (): Promise<void> => {
      if (timeline.last === null) return load(binsOf(span ?? service.window(address)));
      await load({ from: String(timeline.last), bins: '480' });
      timeline.trim(timeline.last - range * 1000);
    };
    void goOn();
    const timer = isLive ? setInterval(() => void goOn(), EVERY) : undefined;
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, [String(selected), run, isLive, range, span?.from, span?.to]);
  return state.timeline;
}

/** The sums of single bins: what is in a bin does not change, another takes its place. */
const known = new WeakMap<Endpoint, Sum>();
const nothing = new Sum();

function sumOf({ clients }: Bin): Sum {
  if (!clients) return nothing;
  let sum = known.get(clients);
  if (!sum) known.set(clients, (sum = Sum.of(clients)));
  return sum;
}

export function Observed({ page, name, around }: { page: Page; name: string; around: Surroundings }) {
  const timeline = useObserved(page, name);
  const unit = unitOf(name);
  if (!timeline) return null;
  return (
    <Distribution
      timeline={timeline}
      sumOf={sumOf}
      inFlightOf={() => null}
      buckets={page.service.buckets}
      around={around}
      zoom={(span) => page.zoom(span)}
      subject={printable(name)}
      quantity="Quantiles"
      show={unit === 'seconds' ? time : (value) => inUnit(value, unit)}
      latenciesFirst
      isLive={!page.isPaused}
      isOneRow
    />
  );
}
