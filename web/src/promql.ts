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

/** The query whose result is what the explorer shows of a family. */
export function query(name: string, kind: Kind, labels: Labels): string {
  switch (kind) {
    case 'counter':
      return `rate(${selector(name, labels)}[1m])`;
    case 'histogram':
      return `histogram_quantile(0.99, sum by (le) (rate(${selector(`${name}_bucket`, labels)}[5m])))`;
    case 'summary':
    case 'gauge':
    case 'untyped':
      return selector(name, labels);
  }
}
