// The view, as the fragment of the page's address: `#endpoints?range=5m&sort=-p99`. A link shows the
// same to a colleague. The text may come from anyone, so that all of it is checked.

export const VIEWS = ['endpoints', 'explorer', 'processes', 'study'] as const;
export type View = (typeof VIEWS)[number];

/** The ranges that can be chosen, in seconds, with their names. */
export const RANGES = [
  [60, '1m', '1 min'],
  [300, '5m', '5 min'],
  [900, '15m', '15 min'],
  [3600, '1h', '1 h'],
  [21600, '6h', '6 h'],
  [86400, '24h', '24 h'],
] as const;

export const COLUMNS = ['name', 'p50', 'p99', 'errors', 'rate', 'inflight'] as const;
export type Column = (typeof COLUMNS)[number];

/** Two times, milliseconds since 1970. */
export interface Span {
  from: number;
  to: number;
}

export interface Address {
  view: View;
  /** The seconds up to now that are seen, if `span` is not. */
  range: number;
  span: Span | null;
  /** The service that alone is seen. */
  service: string | null;
  /** The endpoint that is open, and the family it belongs to if that is not clear. */
  endpoint: string | null;
  of: string | null;
  filter: string;
  sort: Column;
  isDescending: boolean;
  /** The family that is open in the explorer. */
  family: string | null;
  search: string;
  /** The values that the labels of its series have. */
  labels: [name: string, value: string][];
}

export const START: Address = {
  view: 'endpoints',
  range: 300,
  span: null,
  service: null,
  endpoint: null,
  of: null,
  filter: '',
  sort: 'rate',
  isDescending: true,
  family: null,
  search: '',
  labels: [],
};

const LONGEST_TEXT = 2000;
const MOST_LABELS = 50;
const LATEST = 8.64e15;

const oneOf = <Text extends string>(all: readonly Text[], text: string): Text | null =>
  all.find((one) => one === text) ?? null;

export function read(fragment: string): Address {
  const [path = '', query = ''] = splitOnce(fragment.replace(/^#/, ''), '?');
  const fields = new URLSearchParams(query);
  const text = (name: string): string => (fields.get(name) ?? '').slice(0, LONGEST_TEXT);
  const sort = text('sort');
  const column = oneOf(COLUMNS, sort.replace(/^-/, ''));
  const labels: [string, string][] = [];
  for (const [key, value] of fields) {
    if (!key.startsWith('label.') || labels.length === MOST_LABELS) continue;
    labels.push([key.slice(6, LONGEST_TEXT), value.slice(0, LONGEST_TEXT)]);
  }
  return {
    view: oneOf(VIEWS, path) ?? START.view,
    range: RANGES.find(([, name]) => name === text('range'))?.[0] ?? START.range,
    span: span(text('from'), text('to')),
    service: text('service') || null,
    endpoint: text('endpoint') || null,
    of: text('of') || null,
    filter: text('filter'),
    sort: column ?? START.sort,
    isDescending: column ? sort.startsWith('-') : START.isDescending,
    family: text('family') || null,
    search: text('search'),
    labels,
  };
}

/** The fragment of an address, without what is as at the start. */
export function write(address: Address): string {
  const fields = new URLSearchParams();
  const put = (name: string, value: string | null): void => {
    if (value) fields.append(name, value);
  };
  if (address.range !== START.range) {
    put('range', RANGES.find(([seconds]) => seconds === address.range)?.[1] ?? null);
  }
  put('from', address.span && String(Math.round(address.span.from)));
  put('to', address.span && String(Math.round(address.span.to)));
  put('service', address.service);
  if (address.view === 'endpoints') {
    put('endpoint', address.endpoint);
    put('of', address.endpoint && address.of);
    put('filter', address.filter);
    if (address.sort !== START.sort || !address.isDescending) {
      put('sort', (address.isDescending ? '-' : '') + address.sort);
    }
  }
  if (address.view === 'explorer') {
    put('family', address.family);
    put('search', address.search);
    for (const [name, value] of address.family ? address.labels : []) fields.append(`label.${name}`, value);
  }
  const query = fields.toString();
  return `#${address.view}${query ? `?${query}` : ''}`;
}

function span(from: string, to: string): Span | null {
  if (!/^\d{1,16}$/.test(from) || !/^\d{1,16}$/.test(to)) return null;
  const found = { from: Number(from), to: Number(to) };
  return found.from < found.to && found.to <= LATEST ? found : null;
}

function splitOnce(text: string, at: string): [string, string] {
  const found = text.indexOf(at);
  return found < 0 ? [text, ''] : [text.slice(0, found), text.slice(found + 1)];
}
