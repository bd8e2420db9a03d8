// Untrusted text as the terminal programs show it: characters that cannot be seen, or that turn the direction
// of what follows, are written as escapes.

const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu;
const SHORT: Record<string, string> = { '\t': '\\t', '\n': '\\n', '\r': '\\r' };

export function printable(text: string): string {
  return text.replace(HIDDEN, (character) => SHORT[character] ?? `\\u{${character.codePointAt(0)!.toString(16)}}`);
}

/** A text of several lines, which stay lines. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}
