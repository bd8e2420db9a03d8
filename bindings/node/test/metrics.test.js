'use strict';

// Claims about metrics in one process.

const assert = require('node:assert');
const { test } = require('node:test');

const talea = require('..');
const { samples } = require('./support');

function registryWith(...make) {
  const registry = new talea.Registry();
  return [registry, ...make.map((one) => one(registry))];
}

const counter = (more) => (registry) => new talea.Counter({ name: 'made_total', help: 'Made.', registers: [registry], ...more });

test('this environment adds by plain stores', async () => {
  const { register, Counter, Histogram } = talea;
  const one = new Counter({ name: 'plain_total', help: 'h' });
  const observed = new Histogram({ name: 'plain_seconds', help: 'h' });
  assert.ok(register._region.floats instanceof Float64Array);
  one.inc(2.5);
  observed.observe(1);
  assert.ok(one._only()._series().index() >= 0);
  assert.strictEqual(one._region.floats[one._only()._series().index()], 2.5);
  assert.strictEqual(one._only()._series().value(), 2.5);
  assert.ok(observed._only()._series().places());
});

test('a counter counts whole numbers exactly beyond what a float of its plane holds', async () => {
  const [registry, made] = registryWith(counter());
  made.inc(2 ** 53 - 2);
  for (let n = 0; n < 10; n++) made.inc();
  const total = samples(await registry.metrics()).made_total;
  assert.ok(Math.abs(total - (2 ** 53 + 8)) <= 2, String(total));
});

test('values at, between and beyond thresholds are counted as a comparison says', async () => {
  for (const buckets of [[1, 2, 5], [-1, 0, 1], [0], [0.1], [-5, -2]]) {
    const registry = new talea.Registry();
    const histogram = new talea.Histogram({ name: 'h', help: 'h', buckets, registers: [registry] });
    const values = [-10, -5, -2, -1, -0.5, 0, 0.1, 0.5, 1, 1.5, 2, 5, 7, 1e300];
    for (const value of values) histogram.observe(value);
    const found = await histogram.get();
    for (const bound of buckets) {
      const expected = values.filter((value) => value <= bound).length;
      const { value } = found.values.find(({ labels }) => labels.le === bound);
      assert.strictEqual(value, expected, `${bound} of ${buckets}`);
    }
    assert.strictEqual(found.values.find(({ labels }) => labels.le === '+Inf').value, values.length);
  }
});

test('a child that was removed counts from 0 again', async () => {
  const [registry, made] = registryWith(counter({ labelNames: ['a'] }));
  const kept = made.labels('x');
  kept.inc(5);
  made.remove('x');
  assert.deepStrictEqual(samples(await registry.metrics()), {});
  kept.inc(2);
  made.inc({ a: 'x' });
  assert.deepStrictEqual(samples(await registry.metrics()), { 'made_total{a="x"}': 3 });
});

test('methods of a child can be taken from it', async () => {
  const [registry, made] = registryWith(counter({ labelNames: ['a'] }));
  const { inc } = made.labels('x');
  inc();
  inc(2);
  assert.deepStrictEqual(samples(await registry.metrics()), { 'made_total{a="x"}': 3 });
});

test('label values of any characters are themselves', async () => {
  const values = ['', 'a"b', 'a\\b', 'a\nb', '\u0000', ',', '}', '💡', 'a="b"', '1', 'undefined'];
  const [, made] = registryWith(counter({ labelNames: ['a', 'b'] }));
  for (const a of values) for (const b of values) made.inc({ a, b });
  const found = await made.get();
  assert.strictEqual(found.values.length, values.length ** 2);
  for (const a of values) {
    for (const b of values) {
      assert.ok(found.values.some((value) => value.labels.a === a && value.labels.b === b && value.value === 1));
    }
  }
});

test('a number and its text are one label value', async () => {
  const [registry, made] = registryWith(counter({ labelNames: ['code'] }));
  made.inc({ code: 200 });
  made.inc({ code: '200' });
  assert.deepStrictEqual(samples(await registry.metrics()), { 'made_total{code="200"}': 2 });
});

test('series beyond the limit count together and take no memory here', async () => {
  const [registry, made] = registryWith(counter({ labelNames: ['a'], limit: 10 }));
  for (let n = 0; n < 1000; n++) made.inc({ a: n });
  const found = samples(await registry.metrics());
  assert.strictEqual(found['made_total{otel_metric_overflow="true"}'], 990);
  assert.strictEqual(made._byKey.size, 10);
});

test('labels of a registry are on all samples that have none of that name', async () => {
  const [registry, made] = registryWith(counter({ labelNames: ['a'] }));
  registry.setDefaultLabels({ a: 'default', app: 'shop "1"' });
  made.inc({ a: 'own' });
  new talea.Gauge({ name: 'g', help: 'h', registers: [registry] }).set(1);
  assert.deepStrictEqual(samples(await registry.metrics()), {
    'made_total{a="own",app="shop \\"1\\""}': 1,
    'g{a="default",app="shop \\"1\\""}': 1,
  });
});

test('a counter keeps the name that it was given', async () => {
  const [registry] = registryWith((registry) => {
    const requests = new talea.Counter({ name: 'requests', help: 'Requests.', registers: [registry] });
    requests.inc(3);
  });
  const page = await registry.metrics();
  assert.match(page, /^# HELP requests Requests\.\n# TYPE requests counter\nrequests 3\n$/);
});

test('OpenMetrics has exemplars, and ends once', async () => {
  const registry = new talea.Registry(talea.openMetricsContentType);
  const options = { help: 'h', registers: [registry], enableExemplars: true };
  new talea.Counter({ name: 'c', ...options }).inc({ value: 2, exemplarLabels: { trace_id: 'abc' } });
  new talea.Histogram({ name: 'h', ...options }).observe({ value: 0.3, exemplarLabels: { trace_id: 'def' } });
  const page = await registry.metrics();
  assert.match(page, /^c_total 2(\.0)? # \{trace_id="abc"\} 2/m);
  assert.match(page, /^h_bucket\{le="0\.5"\} 1 # \{trace_id="def"\} 0\.3/m);
  assert.match(page, /\n# EOF\n$/);
  assert.strictEqual(page.split('# EOF').length, 2);
});

test('the functions collect run before each page, also asynchronous ones', async () => {
  const registry = new talea.Registry();
  let runs = 0;
  new talea.Gauge({
    name: 'collected',
    help: 'h',
    registers: [registry],
    async collect() {
      await new Promise(setImmediate);
      this.set(++runs);
    },
  });
  assert.deepStrictEqual(samples(await registry.metrics()), { collected: 1 });
  assert.deepStrictEqual(samples(await registry.metrics()), { collected: 2 });
});

test('a metric of a cleared registry begins at 0 in the next one of its name', async () => {
  const registry = new talea.Registry();
  for (let round = 0; round < 3; round++) {
    const [made, of] = [counter()(registry), counter({ name: 'of_total', labelNames: ['a'] })(registry)];
    made.inc();
    of.inc({ a: 'x' });
    assert.deepStrictEqual(samples(await registry.metrics()), { made_total: 1, 'of_total{a="x"}': 1 });
    registry.clear();
  }
});

test('a metric that is registered again after a clear counts', async () => {
  const [registry, made] = registryWith(counter());
  made.inc();
  registry.clear();
  registry.registerMetric(made);
  made.inc(7);
  assert.strictEqual(samples(await registry.metrics()).made_total, 7);
});

test('modules that are loaded again register their metrics again during development', async () => {
  const [registry] = registryWith(counter());
  assert.throws(() => counter()(registry), /already been registered/);
  process.env.NODE_ENV = 'development';
  try {
    counter()(registry).inc();
    assert.throws(() => counter({ help: 'Another.' })(registry), /already been registered/);
  } finally {
    delete process.env.NODE_ENV;
  }
  assert.deepStrictEqual(samples(await registry.metrics()), { made_total: 1 });
});

test('both kinds of modules and copies of the package share one registry', async () => {
  const module = await import('../index.mjs');
  assert.strictEqual(module.register, talea.register);
  assert.strictEqual(module.Counter, talea.Counter);
  delete require.cache[require.resolve('..')];
  assert.strictEqual(require('..').register, talea.register);
});

test('the default metrics are those of the official client', async () => {
  const official = require('@prometheus-io/client');
  const [theirs, own] = [new official.Registry(), new talea.Registry()];
  official.collectDefaultMetrics({ register: theirs });
  talea.collectDefaultMetrics({ register: own });
  const types = async (registry) =>
    Object.fromEntries((await registry.getMetricsAsJSON()).map(({ name, type }) => [name, type]));
  assert.deepStrictEqual(await types(own), await types(theirs));
  for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'nodejs_heap_size_used_bytes']) {
    assert.ok(samples(await own.metrics())[name] > 0, name);
  }
});

test('default metrics that are excluded are not there, and cleared ones are read no more', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const registry = new talea.Registry();
  talea.collectDefaultMetrics({ register: registry, exclude: ['heapSizeAndUsed'] });
  assert.strictEqual(registry.getSingleMetric('nodejs_heap_size_used_bytes'), undefined);
  const resident = registry.getSingleMetric('process_resident_memory_bytes');
  t.mock.timers.tick(5000);
  assert.ok((await resident.get()).values[0].value > 0);
  registry.clear();
  const set = t.mock.method(resident, 'set');
  t.mock.timers.tick(5000);
  assert.strictEqual(set.mock.callCount(), 0);
});

test('labels of default metrics are as they were given', async () => {
  const registry = new talea.Registry();
  talea.collectDefaultMetrics({ register: registry, labels: { instance: 0 } });
  const all = (await registry.getMetricsAsJSON()).flatMap(({ values }) => values);
  assert.ok(all.length > 20);
  assert.deepStrictEqual(new Set(all.map(({ labels }) => labels.instance)), new Set([0]));
});

test('the percentiles of a few observations are exact', async () => {
  const [registry] = registryWith((registry) => {
    const summary = new talea.Summary({ name: 's', help: 'h', percentiles: [0, 0.5, 0.9, 1], registers: [registry] });
    for (const value of [50, 100, 100, 30, 50]) summary.observe(value);
  });
  const { 's{quantile="0"}': least, 's{quantile="0.5"}': median, 's{quantile="0.9"}': most } = samples(await registry.metrics());
  assert.deepStrictEqual([least, median, most], [30, 50, 100]);
});

test('a page is made off the event loop', async () => {
  const registry = new talea.Registry();
  const made = counter({ labelNames: ['a'] })(registry);
  for (let n = 0; n < 2000; n++) made.inc({ a: n });
  // It is not there in the turn of the loop that asks for it, although all of this thread's work is done.
  let isThere = false;
  const page = registry.metrics().then((text) => {
    isThere = true;
    return text;
  });
  await Promise.resolve();
  assert.strictEqual(isThere, false);
  assert.strictEqual(Object.keys(samples(await page)).length, 2000);
});
