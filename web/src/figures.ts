// Numbers as people read them; the same as in the report of a study.

import { type Between, estimate } from './model/buckets.ts';

/** The placeholder for a missing number. */
export const NONE = '–';

/** A whole number with its thousands set apart: `12,345`. */
export function whole(number: number): string {
  const text = Math.round(Math.abs(number)).toFixed(0);
  const grouped = text.replace(/\B(?=(\d{3})+$)/g, ',');
  return number < 0 && grouped !== '0' ? `-${grouped}` : grouped;
}

/** A measured number to three digits that mean something: `0.042`, `4.21`, `42.1`, `421`, `4,213`. */
export function measured(number: number): string {
  if (!Number.isFinite(number)) return NONE;
  const size = Math.abs(number);
  if (size >= 99.95) return whole(number);
  return number.toFixed(size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3);
}

/** A number that may be a count: whole where it is one. */
export function plain(number: number): string {
  return Number.isInteger(number) && number >= 0 && number < 1e15 ? whole(number) : measured(number);
}

/** Three significant digits, or a whole number if it has more. */
export function significant(number: number): string {
  if (!Number.isFinite(number) || number === 0 || Math.abs(number) >= 99.95) return measured(number);
  const magnitude = Math.floor(Math.log10(Math.abs(number) * 1.0005));
  return number.toFixed(Math.min(30, Math.max(0, 2 - magnitude)));
}

/** A time in its unit: `382 µs`, `1.24 s`. */
export function time(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds === 0) return plain(seconds);
  const scales: [number, string][] = [
    [1, 's'],
    [1e-3, 'ms'],
    [1e-6, 'µs'],
    [1e-9, 'ns'],
  ];
  // A value that rounds to 1,000 of one unit is 1 of the one before.
  const [scale, unit] = scales.find(([scale]) => Math.abs(seconds) >= scale * 0.9995) ?? scales[3]!;
  return `${significant(seconds / scale)} ${unit}`;
}

/** Bytes in binary units: `23.5 GiB`. */
export function bytes(number: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let size = number;
  let unit = 0;
  while (size >= 1024 && unit + 1 < units.length) {
    size /= 1024;
    unit += 1;
  }
  return unit === 0 ? count(number, 'byte') : `${size.toFixed(1)} ${units[unit]}`;
}

export type Unit = 'seconds' | 'bytes' | 'cores' | null;

/** The unit that a metric's name ends with. */
export function unitOf(name: string): Unit {
  const base = name.replace(/_(total|sum|max|min|current|peak)$/, '');
  return (['seconds', 'bytes', 'cores'] as const).find((unit) => base === unit || base.endsWith(`_${unit}`)) ?? null;
}

/** A value in its unit to three significant digits. */
export function inUnit(number: number, unit: Unit): string {
  if (!Number.isFinite(number)) return NONE;
  if (unit === 'seconds') return time(number);
  if (unit === 'bytes' && number >= 0) return bytes(number);
  if (unit === 'cores') return `${cores(number)} cores`;
  return Number.isInteger(number) ? plain(number) : significant(number);
}

/** Cores in thousandths: that is as much as a process takes that does nothing. */
function cores(number: number): string {
  if (number === 0) return '0';
  return Math.abs(number) < 0.001 ? '<0.001' : measured(number);
}

/** As exact as its bucket: `12.3 ms`, or where the bucket is wide its bound: `<250 ms`, `>10.0 s`. */
export function quantile(between: Between | null | undefined, show: (value: number) => string = time): string {
  if (!between) return NONE;
  const exact = estimate(between);
  if (exact !== null) return show(exact);
  return Number.isFinite(between.high) ? `<${show(between.high)}` : `>${show(between.low)}`;
}

export function rate(perSecond: number): string {
  return perSecond === 0 ? '0' : measured(perSecond);
}

/** A share as per cent; what is small is not 0. */
export function share(share: number | null): string {
  if (share === null || !Number.isFinite(share)) return NONE;
  if (share === 0) return '0';
  if (share < 0.00005) return '<0.01%';
  return `${(share * 100).toFixed(share < 0.0995 ? 2 : 1)}%`;
}

export function level(level: number | null | undefined): string {
  return level === null || level === undefined ? NONE : plain(Math.max(0, level));
}

/** By how much a rate may be wrong: `± 0.4%`. */
export function uncertainty(share: number): string {
  if (!(share > 0)) return '';
  return share < 0.0005 ? '± <0.1%' : `± ${(share * 100).toFixed(1)}%`;
}

/** A length of time as people say it: `61 s`, `5 min`, `2 h 5 min`, `3 d 4 h`. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 120) return `${whole} s`;
  const minutes = Math.round(whole / 60);
  if (minutes < 60)
    return whole % 60 === 0 || whole >= 600 ? `${minutes} min` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  const days = Math.floor(hours / 24);
  return hours % 24 === 0 ? `${days} d` : `${days} d ${hours % 24} h`;
}

/** A number with its noun in the right form. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${whole(number)} ${number === 1 ? one : many}`;
}

const two = (number: number): string => String(number).padStart(2, '0');

/** The time of day: `10:02:14`. */
export function clock(ms: number, withSeconds = true): string {
  const date = new Date(ms);
  const text = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return withSeconds ? `${text}:${two(date.getSeconds())}` : text;
}

/** The time of day, with the day if that is another one than now. */
export function moment(ms: number, now = Date.now()): string {
  const [date, today] = [new Date(ms), new Date(now)];
  const isToday = date.toDateString() === today.toDateString();
  return isToday ? clock(ms) : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(ms)}`;
}
