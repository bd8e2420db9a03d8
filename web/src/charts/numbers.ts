// Round numbers, and numbers at axes.

import { type Unit, inUnit, whole } from '../figures.ts';

const NICE = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];

/** The next round number. */
export function nice(value: number): number {
  if (!(value > 0)) return 0;
  const power = 10 ** Math.floor(Math.log10(value));
  return NICE.find((step) => step * power >= value)! * power;
}

/** The end of an axis of whole numbers, whose half is one too: there are no 1.25 processes. */
export function even(most: number): number {
  const step = most > 100 ? 10 ** Math.floor(Math.log10(most) - 1) : 1;
  return Math.max(2, 2 * step * Math.ceil(most / step / 2));
}

/** A number at an axis: `1.5k`. */
export function short(value: number): string {
  if (value >= 1e9) return `${Number((value / 1e9).toPrecision(3))}G`;
  if (value >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (value >= 1e4) return `${Number((value / 1e3).toPrecision(3))}k`;
  return value >= 1000 ? whole(value) : String(Number(value.toPrecision(3)));
}

/** A number at an axis in its unit. */
export function tick(value: number, unit: Unit): string {
  if (value === 0) return '0';
  return unit === null || unit === 'cores' ? short(value) : inUnit(value, unit).replace(/\.0+( |$)/, '$1');
}
