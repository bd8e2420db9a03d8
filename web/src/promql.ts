// PromQL for what the explorer shows.

import type { Kind, Labels } from './protocol.ts';

const METRIC = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

function quoted(text: string): string {
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n').replaceAll('\r', '\\r');
  return `"${escaped}"`;
}

/** A selector of series: `name{label="value"}`, and for other names `{"na.me", label="value"}`. */
export function selector(name: string, labels: Labels): string {
  const matchers = labels.map(([label, value]) => `${LABEL.test(label) ? label : quoted(label)}=${quoted(value)}`);
  if (!METRIC.test(name)) return `{${[quoted(name), ...matchers].join(', ')}}`;
  return matchers.length ? `${name}{${matchers.join(', ')}}` : name;
}

/** The queries whose results are what the explorer draws of a family, each with its name. */
export function queries(name: string, kind: Kind, labels: Labels, isNative = false): [name: string, query: string][] {
  switch (kind) {
    case 'counter':
      return [['Increase a second', `rate(${selector(name, labels)}[1m])`]];
    case 'histogram': {
      const all = isNative
        ? `sum(rate(${selector(name, labels)}[1m]))`
        : `sum by (le) (rate(${selector(`${name}_bucket`, labels)}[1m]))`;
      const observations = isNative
        ? `histogram_count(rate(${selector(name, labels)}[1m]))`
        : `rate(${selector(`${name}_count`, labels)}[1m])`;
      return [
        ...[0.5, 0.9, 0.99].map((q): [string, string] => [`p${q * 100}`, `histogram_quantile(${q}, ${all})`]),
        ['Observations a second', observations],
      ];
    }
    case 'summary':
    case 'gauge':
    case 'untyped':
      return [['Value', selector(name, labels)]];
  }
}
