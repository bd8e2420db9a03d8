import { expect, test } from 'vitest';

import { printable } from './printable.ts';

test('characters that hide or turn text are escaped', () => {
  expect(printable('a\u001b[2Jb\r\nc\u202e\u200b')).toBe('a\\u{1b}[2Jb\\r\\nc\\u{202e}\\u{200b}');
  expect(printable('größe="1" <b> 日本 👍')).toBe('größe="1" <b> 日本 👍');
});
