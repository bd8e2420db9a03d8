// The list of what happened, in which a process that dies again and again is one line.

import type { Mark } from '../protocol.ts';

/** One that dies or starts within so long of the time before goes on with it, milliseconds. */
const NEAR = 60_000;
/** So many deaths together are one line. */
const LOOP = 3;

export interface Line {
  /** The latest death, or the only mark. */
  mark: Mark;
  /** How many deaths it stands for. */
  deaths: number;
  /** The time of the first of its marks. */
  since: number;
}

const isDeath = ({ kind }: Mark): boolean => kind === 'died' || kind === 'replaced';

/** Marks as lines. Both have the latest first. */
export function lines(marks: readonly Mark[]): Line[] {
  const runs: Mark[][] = [];
  const open = new Map<string, Mark[]>();
  for (const mark of marks) {
    const isOfProcess = mark.kind === 'started' || isDeath(mark);
    const run = isOfProcess ? open.get(mark.of) : undefined;
    if (run && run.at(-1)!.t - mark.t <= NEAR) {
      run.push(mark);
      continue;
    }
    const begun = [mark];
    runs.push(begun);
    if (isOfProcess) open.set(mark.of, begun);
  }
  const all = runs.flatMap((run): Line[] => {
    const deaths = run.filter(isDeath);
    if (deaths.length < LOOP) return run.map((mark) => ({ mark, deaths: Number(isDeath(mark)), since: mark.t }));
    return [{ mark: deaths[0]!, deaths: deaths.length, since: run.at(-1)!.t }];
  });
  return all.sort((a, b) => b.mark.t - a.mark.t);
}
