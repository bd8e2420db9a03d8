import { expect, test } from 'vitest';

import type { Mark, MarkKind } from '../protocol.ts';
import { lines } from './marks.ts';

function mark(second: number, kind: MarkKind, of = 'shop'): Mark {
  return { t: second * 1000, kind, of, text: `${kind} at ${second}` };
}

/** The latest first, as `number of deaths @ second - first second`. */
function shown(marks: Mark[]): string[] {
  return lines([...marks].reverse()).map(
    ({ mark, deaths, since }) => `${mark.of} ${mark.kind} ${deaths} @ ${mark.t / 1000} - ${since / 1000}`,
  );
}

test('a process that dies again and again is one line with a count', () => {
  const loop = [10, 20, 30, 40].flatMap((at) => [mark(at, 'died'), mark(at + 2, 'started')]);
  expect(shown(loop)).toEqual(['shop died 4 @ 40 - 10']);
  expect(shown([10, 20, 30].map((at) => mark(at, 'replaced')))).toEqual(['shop replaced 3 @ 30 - 10']);
});

test('single deaths, and those of other regions and far apart, are lines of their own', () => {
  expect(shown([mark(10, 'died'), mark(12, 'started'), mark(20, 'died')])).toEqual([
    'shop died 1 @ 20 - 20',
    'shop started 0 @ 12 - 12',
    'shop died 1 @ 10 - 10',
  ]);
  const apart = [0, 100, 200].map((at) => mark(at, 'died'));
  expect(shown(apart)).toHaveLength(3);
  const others = [mark(1, 'died', 'a'), mark(2, 'died', 'b'), mark(3, 'died', 'a'), mark(4, 'died', 'a')];
  expect(shown(others)).toEqual(['a died 3 @ 4 - 1', 'b died 1 @ 2 - 2']);
  // What an endpoint does is no part of a loop.
  const changed = [mark(1, 'changed', 'GET /a'), mark(2, 'changed', 'GET /a'), mark(3, 'back', 'GET /a')];
  expect(shown(changed)).toHaveLength(3);
});
