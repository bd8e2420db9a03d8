'use strict';

// prom-client and this package, driven side by side by the same random calls: their pages, objects and errors are equal.

const assert = require('node:assert');
const { test } = require('node:test');

const talea = require('..');
const { linesOf } = require('./support');

const theirs = {
  'prom-client': require('prom-client'),
  '@prometheus-io/client': require('@prometheus-io/client'),
};

/** A small generator: the same numbers for the same seed. */
function random(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

// A counter of theirs takes NaN, and is NaN from then on; this one refuses it. Of null as an amount they differ.
const VALUES = [undefined, 0, 1, 0.5, 3, 1e9, -1, Infinity, -Infinity, 'text', '7', {}, true];
const LABELS = ['x', 'y', 'a"b', 'a\\b\n', '', 5, 200];

/** The calls of a run: each the name of a metric, a method and its arguments. */
function calls(seed) {
  const below = random(seed);
  const pick = (list) => list[below(list.length)];
  const label = () => (below(15) === 0 ? { wrong: 'x' } : { a: pick(LABELS), b: pick(LABELS) });
  const value = () => (below(3) === 0 ? pick(VALUES) : below(2000) / 16);
  return Array.from({ length: 60 }, () => {
    const [kind, methods] = pick([
      ['counter', ['inc']],
      ['gauge', ['inc', 'dec', 'set']],
      ['histogram', ['observe']],
    ]);
    const method = pick(methods);
    switch (below(8)) {
      case 0:
        return [kind, 'labelled', 'remove', [label()]];
      case 1:
        return [kind, 'labelled', 'child', [method, [pick(LABELS), pick(LABELS)], value()]];
      case 2:
        return below(6) === 0 ? [kind, 'labelled', 'reset', []] : [kind, 'labelled', 'child', [method, ['x'], 1]];
      case 3:
      case 4:
        return [kind, 'plain', method, [value()]];
      default:
        return [kind, 'labelled', method, [label(), value()]];
    }
  });
}

/** What a library does with the calls: the errors, then the values. */
async function run(library, all) {
  const registry = new library.Registry();
  const registers = [registry];
  const metrics = {};
  for (const [kind, Kind] of [['counter', library.Counter], ['gauge', library.Gauge], ['histogram', library.Histogram]]) {
    const more = kind === 'histogram' ? { buckets: [0, 0.5, 1, 50, 100] } : {};
    metrics[`${kind} plain`] = new Kind({ name: `${kind}_plain`, help: 'Help.', registers, ...more });
    metrics[`${kind} labelled`] = new Kind({ name: `${kind}_labelled`, help: 'Help.', labelNames: ['a', 'b'], registers, ...more });
  }
  const errors = all.map(([kind, form, method, args]) => {
    const metric = metrics[`${kind} ${form}`];
    try {
      if (method === 'child') metric.labels(...args[1])[args[0]](args[2]);
      else metric[method](...args);
      return 'done';
    } catch (error) {
      return `${error.name}: ${error.message}`;
    }
  });
  const objects = await registry.getMetricsAsJSON();
  return { errors, objects: objects.map(normal), page: linesOf(await registry.metrics()) };
}

/** Values by name and labels: an order, and the type of a label value, say nothing. */
function normal({ name, help, type, aggregator, values }) {
  const all = values.map(({ labels, value, metricName = name }) => {
    const texts = Object.entries(labels).map(([label, text]) => `${label}=${JSON.stringify(String(text))}`);
    // Minus zero is zero.
    return [`${metricName}{${texts.sort()}}`, value + 0];
  });
  return { name, help, type, aggregator, values: Object.fromEntries(all.sort()) };
}

for (const [name, library] of Object.entries(theirs)) {
  test(`random calls have the values, pages and errors of ${name}`, async () => {
    for (let seed = 0; seed < 300; seed++) {
      const all = calls(seed);
      const [found, expected] = [await run(talea, all), await run(library, all)];
      if (name !== 'prom-client') {
        // Of two faults in one call they name another one.
        for (const one of [found, expected]) one.errors = one.errors.map((error) => error === 'done');
      }
      assert.deepStrictEqual(found, expected, `seed ${seed}: ${JSON.stringify(all)}`);
    }
  });
}
