'use strict';

// Samples between text and the objects of prom-client.

/** The samples of one metric on a page in text. */
function readSamples(page, metric) {
  const values = [];
  for (const line of page.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const { name, labels, value, exemplar } = readLine(line);
    const sample = { value: toNumber(value), labels };
    if (metric.type !== 'counter' && name !== metric.name) sample.metricName = name;
    if (metric.type === 'histogram' && 'le' in labels) {
      if (labels.le !== '+Inf') labels.le = Number(labels.le);
      sample.exemplar = null;
    }
    if (exemplar !== undefined) sample.exemplar = readExemplar(exemplar);
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
  const at = line.search(/[{ ]/);
  const { labels, end } = readLabels(line, at);
  const [, value, exemplar] = /^ (\S+)(?: # (.*))?/.exec(line.slice(end));
  return { name: line.slice(0, at), labels, value, exemplar };
}

function readExemplar(text) {
  const { labels: labelSet, end } = readLabels(text, 0);
  const [value, timestamp] = text.slice(end).trim().split(' ').map(Number);
  return { labelSet, value, timestamp };
}

/** The labels that a text may have here, and their end. */
function readLabels(text, begin) {
  const labels = {};
  let end = begin;
  if (text[begin] === '{') {
    const pair = /([^=,{]+)="((?:[^"\\]|\\.)*)"[,}]/y;
    pair.lastIndex = begin + 1;
    for (let found; (found = pair.exec(text)) !== null; ) {
      labels[found[1]] = unescaped(found[2]);
      end = pair.lastIndex;
    }
  }
  return { labels, end };
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

/** Labels of a sample, then those that its registry adds, then those that it shares with others. */
function labelsText({ labels, sharedLabels = {} }, defaultLabels) {
  const first = { ...labels };
  for (const name in defaultLabels) first[name] ??= defaultLabels[name];
  const own = Object.entries(first).filter(([name]) => !Object.hasOwn(sharedLabels, name));
  const pairs = [...own, ...Object.entries(sharedLabels)].filter(([, value]) => value !== undefined);
  return pairs.map(([name, value]) => `${name}="${escaped(String(value)).replace(/"/g, '\\"')}"`).join(',');
}

/** The text of a metric that is not of this package, from the object that its method `get` returns. */
function writeMetric(metric, defaultLabels, isOpenMetrics) {
  const name = isOpenMetrics && metric.type === 'counter' ? metric.name.replace(/_total$/, '') : metric.name;
  const lines = [`# HELP ${name} ${escaped(metric.help)}`, `# TYPE ${name} ${metric.type}`];
  for (const sample of metric.values ?? []) {
    const ofCounter = isOpenMetrics && metric.type === 'counter' ? `${name}_total` : name;
    const labels = labelsText(sample, defaultLabels);
    const braces = labels === '' ? '' : `{${labels}}`;
    lines.push(`${sample.metricName ?? ofCounter}${braces} ${toText(sample.value)}`);
  }
  return `${lines.join('\n')}\n`;
}

module.exports = { readSamples, writeMetric };
