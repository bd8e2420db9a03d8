'use strict';

// prom-client and this package, driven side by side by the same random calls: their pages, objects and errors are equal.

const assert = require('node:assert');
const { test } = require('node:test');

const talea = require('..');
const { linesOf } = require('./support');

const ACCEPTED = [
  'text/plain; version=0.0.4; charset=utf-8',
  'application/openmetrics-text; version=1.0.0; charset=utf-8',
];

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

/** What a call throws. */
function thrown(call) {
  try {
    call();
    return 'nothing';
  } catch (error) {
    return `${error.name}: ${error.message}`;
  }
}

/** A registry of a format with one metric of each type without labels, and one with. */
function metricsOf({ Registry, Counter, Gauge, Histogram, Summary }, format) {
  const registry = new Registry(format);
  const of = (name) => ({ name, help: 'Of \\ and\nmore.', registers: [registry] });
  const labelNames = ['method', 'code'];
  return {
    registry,
    summary: new Summary({ ...of('summary'), percentiles: [0.5, 0.99] }),
    gauge: new Gauge(of('gauge')),
    counter: new Counter(of('counter')),
    histogram: new Histogram({ ...of('histogram'), buckets: [0.25, 1, 20] }),
    summaryOf: new Summary({ ...of('summary_of'), labelNames, percentiles: [0.5] }),
    gaugeOf: new Gauge({ ...of('gauge_of_total'), labelNames }),
    counterOf: new Counter({ ...of('counter_of_total'), labelNames }),
    histogramOf: new Histogram({ ...of('histogram_of'), labelNames, buckets: [1] }),
  };
}

/** A metric that is of no library. */
const foreign = (name, values, type = 'counter') => ({ name, get: async () => ({ name, help: 'Foreign.', type, values }) });

/** Programs: what one of them returns is equal under each library, to the character. */
const programs = {
  'pages of metrics without observations': ({ registry }) => registry.metrics(),
  async 'pages of metrics with observations'({ registry, gauge, counter, histogram, summary, ...others }) {
    counter.inc(3);
    gauge.set(2.5);
    histogram.observe(1);
    summary.observe(1);
    const labels = { method: 'a"b\nc\\d', code: 200 };
    others.gaugeOf.set(labels, -0.125);
    others.counterOf.inc(labels, 1e9);
    others.histogramOf.observe(labels, 0.5);
    others.summaryOf.observe(labels, 7);
    const pages = [await registry.metrics()];
    registry.setDefaultLabels({ app: 'shop', code: 'default' });
    pages.push(await registry.metrics());
    return [...pages, await registry.getSingleMetricAsString('histogram')];
  },
  async 'pages of metrics of another library'({ registry }) {
    registry.registerMetric(foreign('before', [{ value: NaN }, { value: Infinity }, { value: -Infinity }], 'gauge'));
    registry.registerMetric(foreign('shared', [{ value: 1, labels: { le: 1 }, sharedLabels: { a: 'x', b: 'y' } }]));
    registry.registerMetric(foreign('labels', [{ value: 1, labels: { a: 'own', z: '"' } }]));
    registry.setDefaultLabels({ a: 'default', c: 'd' });
    return registry.metrics();
  },
  async 'label values that are no texts'({ registry, counterOf, histogramOf, summaryOf }) {
    counterOf.inc({ method: 'GET', code: 200 });
    counterOf.labels('POST', true).inc();
    histogramOf.observe({ method: 'GET', code: 200 }, 1);
    summaryOf.observe({ method: 'GET', code: 200 }, 1);
    return (await registry.getMetricsAsJSON()).map(({ values }) => values.map(({ labels = {} }) => Object.entries(labels).sort()));
  },
  async 'metrics that are reset or whose series are removed'({ registry, counter, gauge, histogram, summary, ...others }) {
    const found = [];
    for (const method of ['reset', 'remove']) {
      counter.inc(3);
      gauge.set(2);
      histogram.observe(1);
      summary.observe(1);
      others.counterOf.inc({ method: 'GET', code: '1' });
      counter[method]();
      gauge[method]();
      histogram[method]();
      if (method === 'reset') summary.reset();
      found.push(await registry.metrics());
      counter.inc(3);
      gauge.inc();
      histogram.observe(2);
      found.push(await registry.metrics());
    }
    return found;
  },
  'errors of definitions': ({ registry }, { Gauge, Histogram, Summary, Registry, Pushgateway }) => [
    thrown(() => new Gauge({ name: 'no name', help: 'h' })),
    thrown(() => new Gauge({ name: 'name', help: 'h', labelNames: ['no label', 'a', '1b'] })),
    thrown(() => new Gauge({ name: 'name' })),
    thrown(() => new Gauge({ help: 'h' })),
    thrown(() => new Gauge('name')),
    thrown(() => new Histogram({ name: 'name', help: 'h', labelNames: ['le'], registers: [registry] })),
    thrown(() => new Summary({ name: 'other', help: 'h', labelNames: ['quantile'], registers: [registry] })),
    thrown(() => new Gauge({ name: 'gauge', help: 'h', registers: [registry] })),
    thrown(() => new Registry('text/other')),
    thrown(() => registry.setContentType('text/other')),
    thrown(() => new Pushgateway('http://127.0.0.1:9').pushAdd()),
  ],
  async 'metrics by aggregator'({ registry }, { Registry }) {
    registry.registerMetric(foreign('foreign', [{ value: 2, labels: {} }]));
    const all = await registry.getMetricsAsJSON('sum');
    const aggregated = Registry.aggregate([all, all], registry.contentType);
    return [registry.getMetricsAsArray('sum').length, (await aggregated.getSingleMetric('foreign').get()).values];
  },
  async 'timers by the clock that tests replace'({ registry, histogram, histogramOf, summary }) {
    const { hrtime } = process;
    try {
      let now = 0;
      process.hrtime = ([seconds, nanoseconds] = [0, 0]) => [now - seconds, 5e8 - nanoseconds];
      const ends = [histogram, histogramOf.labels('GET', '1'), summary].map((metric) => metric.startTimer());
      now = 2;
      return [ends.map((end) => end()), await registry.metrics()];
    } finally {
      process.hrtime = hrtime;
    }
  },
};

for (const [what, program] of Object.entries(programs)) {
  test(`${what} are those of the official client`, async () => {
    for (const format of ACCEPTED) {
      const results = [];
      for (const library of [talea, theirs['@prometheus-io/client']]) {
        results.push(await program(metricsOf(library, format), library));
      }
      assert.deepStrictEqual(...results);
    }
  });
}

test('exemplars are in the objects of metrics as those of the official client', async () => {
  const [found, expected] = await Promise.all(
    [talea, theirs['@prometheus-io/client']].map(async (library) => {
      const registry = new library.Registry(ACCEPTED[1]);
      const options = { help: 'h', labelNames: ['a'], registers: [registry], enableExemplars: true };
      const counter = new library.Counter({ name: 'counter', ...options });
      const histogram = new library.Histogram({ name: 'histogram', buckets: [1, 2], ...options });
      const exemplarLabels = { trace_id: 'a"b # c 2.0' };
      // The first amount is also the total, which the client shows as the exemplar's value.
      counter.inc({ labels: { a: 'x' }, value: 2, exemplarLabels });
      counter.inc({ labels: { a: 'x' } });
      histogram.observe({ labels: { a: 'x' }, value: 2, exemplarLabels });
      histogram.observe({ labels: { a: 'x' }, value: 3 });
      const page = (await registry.metrics()).replace(/(# \{.*) [\d.]+$/gm, '$1 TIME');
      const objects = await registry.getMetricsAsJSON();
      for (const { exemplar } of objects.flatMap(({ values }) => values)) {
        if (exemplar) exemplar.timestamp = Math.abs(exemplar.timestamp - Date.now() / 1000) < 60;
      }
      return { page, objects: objects.map(({ values }) => values.map(({ labels, value, exemplar }) => [labels, value, exemplar])) };
    }),
  );
  assert.deepStrictEqual(JSON.parse(JSON.stringify(found)), JSON.parse(JSON.stringify(expected)));
});
