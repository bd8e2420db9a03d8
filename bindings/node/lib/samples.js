'use strict';

// Samples between text and the objects of prom-client.

/** The samples of one metric on a page in text. */
function readSamples(page, metric) {
  const values = [];
  for (const line of page.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const { name, labels, rest } = readLine(line);
    const sample = { value: toNumber(rest), labels };
    if (name !== metric.name) sample.metricName = name;
    if (metric.type === 'histogram') {
      if ('le' in labels && labels.le !== '+Inf') labels.le = Number(labels.le);
      sample.exemplar = null;
    }
    if (metric.type === 'summary' && 'quantile' in labels) {
      labels.quantile = Number(labels.quantile);
      // The client shows 0 while there are no observations.
      sample.value ||= 0;
    }
    values.push(sample);
  }
  return values;
}

function readLine(line) {
  const labels = {};
  let at = line.search(/[{ ]/);
  const name = line.slice(0, at);
  if (line[at] === '{') {
    const pair = /([^=,{]+)="((?:[^"\\]|\\.)*)"[,}]/y;
    pair.lastIndex = at + 1;
    for (let found; (found = pair.exec(line)) !== null; ) {
      labels[found[1]] = unescaped(found[2]);
      at = pair.lastIndex;
    }
  }
  return { name, labels, rest: line.slice(at).trim().split(' ')[0] };
}

function unescaped(text) {
  return text.replace(/\\(.)/g, (_, character) => (character === 'n' ? '\n' : character));
}

function toNumber(text) {
  if (text.endsWith('Inf')) return text.startsWith('-') ? -Infinity : Infinity;
  return Number(text);
}

function toText(value) {
  if (Number.isNaN(value)) return 'Nan';
  if (value === Infinity) return '+Inf';
  return value === -Infinity ? '-Inf' : `${value}`;
}

function escaped(text) {
  return text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n');
}

function labelsText(labels) {
  const pairs = Object.entries(labels).filter(([, value]) => value !== undefined);
  return pairs.map(([name, value]) => `${name}="${escaped(String(value)).replace(/"/g, '\\"')}"`).join(',');
}

/** The text of a metric that is not of this package, from the object that its method `get` returns. */
function writeMetric(metric, defaultLabels, isOpenMetrics) {
  const name = isOpenMetrics && metric.type === 'counter' ? metric.name.replace(/_total$/, '') : metric.name;
  const lines = [`# HELP ${name} ${escaped(metric.help)}`, `# TYPE ${name} ${metric.type}`];
  for (const sample of metric.values ?? []) {
    const ofCounter = isOpenMetrics && metric.type === 'counter' ? `${name}_total` : name;
    const labels = labelsText({ ...defaultLabels, ...sample.labels, ...sample.sharedLabels });
    const braces = labels === '' ? '' : `{${labels}}`;
    lines.push(`${sample.metricName ?? ofCounter}${braces} ${toText(sample.value)}`);
  }
  return `${lines.join('\n')}\n`;
}

module.exports = { readSamples, writeMetric };
