import { expect, test } from 'vitest';

import cases from '../../crates/talea-view/src/printable.json';
import { printable } from './printable.ts';

test('characters that hide or turn text are escaped as the terminal programs do it', () => {
  expect(cases.length).toBeGreaterThanOrEqual(5);
  for (const [text, shown] of cases) expect(printable(text!)).toBe(shown);
});
