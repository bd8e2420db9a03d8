'use strict';

// Claims about several processes and threads of one region.

const assert = require('node:assert');
const { spawnSync } = require('node:child_process');
const { once } = require('node:events');
const { chmodSync, closeSync, existsSync, openSync, writeFileSync, writeSync } = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { Worker } = require('node:worker_threads');

const talea = require('..');
const { Region } = require('../lib/native');
const { Program, folder, freePort, get, samples, until } = require('./support');

/** In the long tests (scripts/node). */
const IS_LONG = process.env.NODES === 'all';

const example = (name) => path.join('..', '..', 'examples', name);

/** What a process of its own shows of a region in a file. `first` is what it does before it opens the region. */
function pageOf(file, first = '') {
  const program = `
    const { renderRegion } = require(${JSON.stringify(path.join(__dirname, '..'))});
    ${first}
    renderRegion().then(({ body }) => process.stdout.write(body))`;
  const { stdout, status } = spawnSync(process.execPath, ['-e', program], {
    env: { ...process.env, TALEA_REGION: file },
    encoding: 'utf8',
  });
  assert.strictEqual(status, 0);
  return samples(stdout);
}

test('processes that are killed lose nothing, and their planes are used again', async (t) => {
  const file = path.join(folder(t), 'killed.talea');
  let [acknowledged, killed] = [0, 0];
  for (let round = 0; round < 10; round++) {
    const writers = [0, 1, 2, 3].map(() => new Program(t, 'writer.js', [], { TALEA_REGION: file }));
    await Promise.all(writers.map((writer) => until('it writes', () => writer.said.length > 50 * round)));
    for (const writer of writers) writer.child.kill('SIGKILL');
    for (const writer of writers) {
      const { signal } = await writer.ended;
      assert.strictEqual(signal, 'SIGKILL');
      acknowledged += writer.said.length;
      killed++;
    }
  }
  const page = pageOf(file);
  const labelled = Object.entries(page).filter(([name]) => name.startsWith('labelled_total'));
  const found = {
    written: page.written_total,
    labelled: labelled.reduce((sum, [, value]) => sum + value, 0),
    observed: page.observed_seconds_count,
    sum: page.observed_seconds_sum,
  };
  for (const [what, value] of Object.entries(found)) {
    assert.ok(value >= acknowledged && value <= acknowledged + killed, `${what}: ${value}, ${acknowledged}`);
  }
});

test('workers of a cluster are exact when they are killed under load, and every one shows all', async (t) => {
  const port = await freePort();
  // Otherwise the primary hands connections to workers that are dead, and their clients wait for ever.
  const env = { NODE_CLUSTER_SCHED_POLICY: 'none' };
  const cluster = new Program(t, example('cluster.js'), [String(port)], env);
  const workers = () => new Set(cluster.said.flatMap((value) => value.worker ?? []));
  const ended = () => new Set(cluster.said.flatMap((value) => value.exit ?? []));
  await until('four workers listen', () => workers().size === 4);
  const KILLS = 6;
  let answered = 0;
  let failed = 0;
  let isOver = false;
  const clients = [0, 1, 2, 3].map(async () => {
    for (let n = 0; !isOver; n++) {
      try {
        const { status } = await get(port, `/shops/${n}/items/${n}`, { agent: false });
        assert.strictEqual(status, 200);
        answered++;
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error;
        failed++;
      }
    }
  });
  for (let kill = 0; kill < KILLS; kill++) {
    const before = answered;
    await until('requests were answered', () => answered > before + 20);
    const victim = [...workers()].find((pid) => !ended().has(pid));
    process.kill(victim, 'SIGKILL');
    await until('it has ended', () => ended().has(victim));
    await until('another one listens', () => workers().size === 5 + kill);
  }
  isOver = true;
  await Promise.all(clients);
  // Any worker answers.
  const shown = new Set();
  for (let n = 0; n < 20; n++) {
    const page = samples((await get(port, '/metrics', { agent: false })).body);
    shown.add(page['shop_orders_total{country="pe"}']);
  }
  assert.strictEqual(shown.size, 1, 'all workers show the same');
  const [orders] = shown;
  assert.ok(orders >= answered && orders <= answered + failed, `${orders} of ${answered} and ${failed}`);
  const labels = 'method="GET",route="/shops/:shop/items/:item"';
  // A worker may be killed when its response has arrived, before it records the end.
  await until('no request is in flight, and the ends of all were recorded', async () => {
    const page = samples((await get(port, '/metrics', { agent: false })).body);
    const complete = page[`http_request_outcomes_total{${labels},outcome="complete"}`];
    return page[`http_requests_in_flight{${labels}}`] === 0 && complete >= answered - KILLS && complete <= answered + failed;
  });
});

test("percentiles are of all processes' observations, also for a process that is new", (t) => {
  const file = path.join(folder(t), 'summary.talea');
  for (const value of [1, 2, 3]) {
    pageOf(file, `
      const { Summary } = require(${JSON.stringify(path.join(__dirname, '..'))});
      new Summary({ name: 'took_seconds', help: 'h', percentiles: [0, 1] }).observe(${value});`);
  }
  const page = pageOf(file);
  const { 'took_seconds{quantile="0.0"}': least, 'took_seconds{quantile="1.0"}': most, took_seconds_count: count } = page;
  assert.deepStrictEqual([least, most, count], [1, 3, 3], JSON.stringify(page));
});

test('the primary shows what its workers and their threads count', async (t) => {
  const program = new Program(t, 'primary.js');
  const page = samples(await program.says('page'));
  assert.strictEqual(page.counted_total, 330);
  const file = await program.says('file');
  await program.ended;
  assert.strictEqual(existsSync(file), false, 'the file goes with the primary');
});

test('threads count in the region of their process, and what ended threads counted stays', async () => {
  const program = `
    const { Counter } = require(${JSON.stringify(path.join(__dirname, '..'))});
    const counter = new Counter({ name: 'threads_total', help: 'h' });
    for (let n = 0; n < 1000; n++) counter.inc();`;
  // Many more than there are planes.
  for (let round = 0; round < 25; round++) {
    const workers = [0, 1, 2, 3].map(() => new Worker(program, { eval: true }));
    await Promise.all(workers.map((worker) => new Promise((resolve) => worker.once('exit', resolve))));
  }
  const { body } = await talea.renderRegion();
  assert.strictEqual(samples(body.toString()).threads_total, 100_000);
});

test('threads that are terminated in the middle lose no acknowledged add', async () => {
  const program = `
    const { workerData } = require('node:worker_threads');
    const { Counter } = require(${JSON.stringify(path.join(__dirname, '..'))});
    const counter = new Counter({ name: 'terminated_total', help: 'h' });
    for (;;) { counter.inc(); workerData[0]++; }`;
  let acknowledged = 0;
  for (let round = 0; round < 40; round++) {
    const workerData = new Float64Array(new SharedArrayBuffer(8));
    const worker = new Worker(program, { eval: true, workerData });
    await until('it counts', () => workerData[0] > 1000);
    await worker.terminate();
    acknowledged += workerData[0];
  }
  const { body } = await talea.renderRegion();
  const found = samples(body.toString()).terminated_total;
  assert.ok(found >= acknowledged && found <= acknowledged + 40, `${found} of ${acknowledged}`);
});

test('CPU time is counted once, however many threads collect it, and again after metrics were cleared', (t) => {
  const talea = JSON.stringify(path.join(__dirname, '..'));
  const thread = `
    const { collectDefaultMetrics, register } = require(${talea});
    collectDefaultMetrics();
    register.metrics();`;
  const program = `
    const { collectDefaultMetrics, register } = require(${talea});
    const { Worker } = require('node:worker_threads');
    for (let used = 0; used < 3e5; ) {
      const { user, system } = process.cpuUsage();
      used = user + system;
    }
    const ends = [1, 2, 3].map(() => new Worker(${JSON.stringify(thread)}, { eval: true })).map((worker) =>
      new Promise((resolve) => worker.once('exit', resolve)));
    Promise.all(ends).then(async () => {
      for (let n = 0; n < 3; n++) {
        collectDefaultMetrics();
        await register.metrics();
        register.clear();
      }
      collectDefaultMetrics();
      const page = await register.metrics();
      const { user, system } = process.cpuUsage();
      process.stdout.write(page + 'used ' + (user + system) / 1e6);
    });`;
  const env = { ...process.env, TALEA_REGION: path.join(folder(t), 'cpu.talea') };
  const { stdout, stderr, status } = spawnSync(process.execPath, ['-e', program], { env, encoding: 'utf8' });
  assert.strictEqual(status, 0, stderr);
  const { process_cpu_seconds_total: counted, used } = samples(stdout);
  assert.ok(counted > 0.2 && counted <= used, `${counted} of ${used}`);
});

test('Fastify shows what its worker threads count', async (t) => {
  const program = new Program(t, example('threads.js'), ['0']);
  const port = await program.says('port');
  for (let n = 0; n < 5; n++) {
    assert.deepStrictEqual(JSON.parse((await get(port, '/jobs/100')).body), { jobs: 300 });
  }
  const page = samples((await get(port, '/metrics')).body);
  assert.strictEqual(page.shop_jobs_total, 1500);
  assert.strictEqual(page.shop_job_seconds_count, 1500);
  const route = 'http_request_outcomes_total{method="GET",route="/jobs/:count",outcome="complete"}';
  assert.strictEqual(page[route], 5);
});

/** Makes a small region, and fills it. */
function fill(file, what) {
  // The longest file that it may make, in units of 512 bytes or of a kilobyte.
  const shell = 'ulimit -f 1024; exec "$0" "$@"';
  const { status, stderr } = spawnSync('sh', ['-c', shell, process.execPath, path.join(__dirname, 'programs', 'filler.js'), what], {
    env: { ...process.env, TALEA_REGION: file },
    encoding: 'utf8',
  });
  assert.strictEqual(status, 0, stderr);
}

/** Makes a region, and writes another version of the layout to its second word. */
function ofAnotherLayout(file) {
  pageOf(file);
  writeVersion(file);
}

function writeVersion(file) {
  const open = openSync(file, 'r+');
  writeSync(open, new BigUint64Array([9999n]), 0, 8, 8);
  closeSync(open);
}

/** How a file may be, what the warning says of it, and the file that the service counts in then, if there is one. */
const faults = {
  'is no region': { prepare: (file) => writeFileSync(file, 'something else'), warning: /is a file of something else/ },
  'is in a folder that is missing': { at: 'missing/x.talea', warning: /make the directory first/ },
  'is not on tmpfs': { at: '/proc/shop.talea', warning: /not on tmpfs/ },
  'is full of metrics': { prepare: (file) => fill(file, 'metrics'), warning: /the region is full/ },
  'is full of series': { prepare: (file) => fill(file, 'series'), warning: /the region is full/ },
  'may only be read': {
    prepare(file) {
      pageOf(file);
      chmodSync(file, 0o444);
      chmodSync(path.dirname(file), 0o777);
    },
    // Root may write whatever the mode is.
    first: 'if (process.geteuid() === 0) process.seteuid(65534);',
    warning: /using .*shop\.talea\.1 instead/,
    counted: 'shop.talea.1',
  },
  'has another layout': {
    prepare: ofAnotherLayout,
    warning: /its layout is version 9999, .* moved to .*\.stale-/,
    counted: 'shop.talea',
  },
  'has another layout, and a process uses it': {
    prepare(file) {
      Region.open(file);
      writeVersion(file);
    },
    warning: /using .*shop\.talea\.1 instead/,
    counted: 'shop.talea.1',
  },
};

for (const [what, { at = 'shop.talea', prepare, first = '', warning, counted }] of Object.entries(faults)) {
  test(`a service starts and counts, with one warning, if its file ${what}`, (t) => {
    const of = folder(t);
    const file = path.resolve(of, at);
    prepare?.(file);
    const program = `
      const { Counter, register } = require(${JSON.stringify(path.join(__dirname, '..'))});
      ${first}
      for (const name of ['a', 'b', 'c']) new Counter({ name, help: 'h' }).inc();
      register.metrics().then((page) => process.stdout.write(page));`;
    const { stdout, stderr, status } = spawnSync(process.execPath, ['-e', program], {
      env: { ...process.env, TALEA_REGION: file },
      encoding: 'utf8',
    });
    assert.strictEqual(status, 0, stderr);
    assert.deepStrictEqual(samples(stdout), { a: 1, b: 1, c: 1 });
    const warnings = stderr.split('\n').filter((line) => /TaleaWarning|^talea: /.test(line));
    assert.strictEqual(warnings.length, 1, stderr);
    assert.match(warnings[0], warning);
    if (counted) assert.strictEqual(pageOf(path.join(of, counted), first).a_total, 1);
  });
}

test('threads of a process whose region cannot be opened count together, with one warning', () => {
  const talea = JSON.stringify(path.join(__dirname, '..'));
  const thread = `const { Counter } = require(${talea}); new Counter({ name: 'threads_total', help: 'h' }).inc();`;
  const program = `
    const { Counter, register } = require(${talea});
    const { Worker } = require('node:worker_threads');
    new Counter({ name: 'threads_total', help: 'h' }).inc();
    const ends = [1, 2, 3].map(() => new Worker(${JSON.stringify(thread)}, { eval: true })).map((worker) =>
      new Promise((resolve) => worker.once('exit', resolve)));
    Promise.all(ends).then(() => register.metrics()).then((page) => process.stdout.write(page));`;
  const { stdout, stderr } = spawnSync(process.execPath, ['-e', program], {
    env: { ...process.env, TALEA_REGION: '/proc/shop.talea' },
    encoding: 'utf8',
  });
  assert.deepStrictEqual(samples(stdout), { threads_total: 4 });
  assert.strictEqual(stderr.match(/TaleaWarning/g)?.length, 1, stderr);
});

test('a service that may make no large file counts more metrics than its region has room for', () => {
  const program = `
    const { Counter, register } = require(${JSON.stringify(path.join(__dirname, '..'))});
    for (let n = 0; n < 500; n++) new Counter({ name: 'many_' + n + '_total', help: 'h' }).inc();
    register.metrics().then((page) => process.stdout.write(page));`;
  const shell = 'ulimit -f 1024; exec "$0" "$@"';
  const { stdout, stderr, status } = spawnSync('sh', ['-c', shell, process.execPath, '-e', program], { encoding: 'utf8' });
  assert.strictEqual(status, 0, stderr);
  const counted = Object.values(samples(stdout));
  assert.deepStrictEqual([counted.length, new Set(counted)], [500, new Set([1])]);
  assert.strictEqual(stderr.match(/TaleaWarning/g)?.length, 1, stderr);
});

test('threads that are terminated in the middle of a scrape leave whole pages to others', async () => {
  const registry = new talea.Registry();
  const counter = new talea.Counter({ name: 'scraped_total', help: 'h', labelNames: ['n'] });
  for (let n = 0; n < 2000; n++) counter.inc({ n });
  const program = `
    const { workerData } = require('node:worker_threads');
    const talea = require(${JSON.stringify(path.join(__dirname, '..'))});
    const { register, renderRegion, Counter } = talea;
    const counter = new Counter({ name: 'scraped_total', help: 'h', labelNames: ['n'] });
    const pages = () => [register.metrics(), renderRegion(), counter.get()];
    (async () => {
      for (;; Atomics.add(workerData, 0, 1)) await Promise.all([...pages(), ...pages()]);
    })();`;
  for (let round = 0; round < (IS_LONG ? 60 : 6); round++) {
    const workerData = new Int32Array(new SharedArrayBuffer(4));
    const workers = [0, 1].map(() => new Worker(program, { eval: true, workerData }));
    await until('they scrape', () => Atomics.load(workerData, 0) > round % 4);
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
  const page = samples((await talea.renderRegion()).body.toString());
  const found = Object.entries(page).filter(([name]) => name.startsWith('scraped_total'));
  assert.deepStrictEqual([found.length, found.every(([, value]) => value === 1)], [2000, true]);
  registry.clear();
});

test('a process that exits in the middle of scrapes of all its threads ends by itself', () => {
  const program = `
    const { Worker, isMainThread } = require('node:worker_threads');
    const { Counter, register } = require(${JSON.stringify(path.join(__dirname, '..'))});
    const counter = new Counter({ name: 'exited_total', help: 'h', labelNames: ['n'] });
    for (let n = 0; n < 2000; n++) counter.inc({ n });
    const thread = "const { parentPort } = require('node:worker_threads');" +
      "const { register } = require(" + JSON.stringify(require.resolve(${JSON.stringify(path.join(__dirname, '..'))})) + ");" +
      "(async () => { for (;;) { register.metrics(); await register.metrics(); parentPort.postMessage('page'); } })()";
    let heard = 0;
    for (let n = 0; n < 3; n++) {
      new Worker(thread, { eval: true }).once('message', () => {
        register.metrics();
        if (++heard === 3) process.exit(7);
      });
    }`;
  for (let round = 0; round < (IS_LONG ? 10 : 2); round++) {
    const { status, signal, stderr } = spawnSync(process.execPath, ['-e', program], { encoding: 'utf8' });
    assert.deepStrictEqual([status, signal, stderr], [7, null, '']);
  }
});

test('threads one after the other take over each other\'s part of the region', async () => {
  const program = `
    const { Counter, Histogram, register } = require(${JSON.stringify(path.join(__dirname, '..'))});
    const counter = new Counter({ name: 'taken_over_total', help: 'h' });
    const histogram = new Histogram({ name: 'taken_over_seconds', help: 'h', buckets: [1] });
    for (let n = 0; n < 100; n++) {
      counter.inc();
      histogram.observe(2);
    }
    if (register._region.floats === undefined) throw new Error('it has no part');`;
  const threads = IS_LONG ? 200 : 40;
  for (let n = 0; n < threads; n++) {
    const worker = new Worker(program, { eval: true });
    const [code] = await once(worker, 'exit');
    assert.strictEqual(code, 0);
  }
  const page = samples((await talea.renderRegion()).body.toString());
  const { taken_over_total: counted, taken_over_seconds_count: count, taken_over_seconds_sum: sum } = page;
  assert.deepStrictEqual([counted, count, sum], [threads * 100, threads * 100, threads * 200]);
});
