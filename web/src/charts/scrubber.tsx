// The cursor of the charts for the keyboard.

import { useEffect, useState } from 'preact/hooks';

import type { Span } from '../address.ts';
import { moment } from '../figures.ts';
import * as cursor from './cursor.ts';

/** The time that is pointed at, milliseconds, or null. */
export function usePointedTime(): number | null {
  const [, render] = useState(0);
  useEffect(() => cursor.onPoint(() => render((n) => n + 1)), []);
  return cursor.pointedAt();
}

export function Scrubber({
  window,
  describe,
  zoom,
}: {
  window: Span;
  /** The charts at a time in words, or null where nothing was recorded. */
  describe: (at: number) => string | null;
  zoom: (span: Span) => void;
}) {
  const at = usePointedTime();
  const value = Math.min(window.to, Math.max(window.from, at ?? window.to));
  const length = window.to - window.from;
  const pressed = (event: KeyboardEvent): void => {
    if (event.key === '+' || event.key === '=') {
      zoom({ from: Math.floor(value - length / 8), to: Math.ceil(value + length / 8) });
    } else if (event.key === '-') {
      zoom({ from: Math.floor(window.from - length / 2), to: Math.ceil(window.to + length / 2) });
    } else if (event.key === 'Escape' && at !== null) {
      cursor.point(null);
      event.stopPropagation();
    } else return;
    event.preventDefault();
  };
  return (
    <label class="scrubber">
      <span>Time: arrow keys move, + and − zoom</span>
      <input
        type="range"
        min={Math.round(window.from)}
        max={Math.round(window.to)}
        step={Math.max(1, Math.round(length / 120))}
        value={Math.round(value)}
        aria-label="Time in the charts"
        aria-valuetext={`${moment(value)}: ${describe(value) ?? 'no data'}`}
        onInput={(event) => cursor.point(Number(event.currentTarget.value))}
        onKeyDown={pressed}
        onBlur={() => cursor.point(null)}
      />
    </label>
  );
}
