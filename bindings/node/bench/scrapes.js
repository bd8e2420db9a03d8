'use strict';

// The time of a scrape of 4,400 series over 1, 4 and 16 workers, and what it does to the event loop of a worker, beside
// the ClusterRegistry of @prometheus-io/client: `make bench-node`.

const cluster = require('node:cluster');
const { monitorEventLoopDelay } = require('node:perf_hooks');

const LIBRARIES = { talea: '..', '@prometheus-io/client': '@prometheus-io/client' };
const SCRAPES = Number(process.env.SCRAPES ?? 15);

function fill({ Counter, Histogram }) {
  const counters = Array.from({ length: 20 }, (_, n) =>
    new Counter({ name: `bench_${n}_total`, help: 'h', labelNames: ['route', 'code'] }));
  for (const counter of counters) for (let n = 0; n < 100; n++) counter.inc({ route: `/${n % 20}`, code: n });
  const histogram = new Histogram({ name: 'bench_seconds', help: 'h', labelNames: ['route'] });
  // Of 14 series each, about 2,400.
  for (let n = 0; n < 171; n++) histogram.observe({ route: `/${n}` }, n / 100);
}

function worker() {
  const library = require(LIBRARIES[process.env.BENCH_LIBRARY]);
  if (process.env.BENCH_LIBRARY !== 'talea') new library.ClusterRegistry();
  fill(library);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  process.on('message', (message) => {
    if (message === 'begin') {
      delay.enable();
      process.send({ begun: true });
    } else if (message === 'end') {
      process.send({ delay: delay.percentile(99) / 1e6 });
    }
  });
  process.send({ ready: true });
}

function heard(workers, key) {
  return Promise.all(workers.map((one) => new Promise((resolve) => {
    one.on('message', function listen(message) {
      if (!(key in message)) return;
      one.off('message', listen);
      resolve(message[key]);
    });
  })));
}

function median(numbers) {
  return numbers.toSorted((a, b) => a - b)[numbers.length >> 1];
}

async function measure(name, count) {
  const library = require(LIBRARIES[name]);
  const registry = new library.ClusterRegistry();
  const workers = Array.from({ length: count }, () => cluster.fork({ BENCH_LIBRARY: name }));
  await heard(workers, 'ready');
  const begun = heard(workers, 'begun');
  for (const one of workers) one.send('begin');
  await begun;
  const times = [];
  let bytes = 0;
  for (let n = 0; n < SCRAPES; n++) {
    const start = process.hrtime.bigint();
    bytes = (await registry.clusterMetrics()).length;
    times.push(Number(process.hrtime.bigint() - start) / 1e6);
  }
  const ended = heard(workers, 'delay');
  for (const one of workers) one.send('end');
  const delays = await ended;
  const gone = workers.map((one) => new Promise((resolve) => one.once('exit', resolve)));
  for (const one of workers) one.process.kill('SIGKILL');
  await Promise.all(gone);
  return { ms: median(times), delay: Math.max(...delays), bytes };
}

async function main() {
  console.log(`Node ${process.version}, medians of ${SCRAPES} scrapes\n`);
  console.log('| workers | talea, ms | ClusterRegistry, ms | share | p99 of a worker\'s loop delay, ms: talea | ClusterRegistry |');
  console.log('|--:|--:|--:|--:|--:|--:|');
  for (const count of [1, 4, 16]) {
    const own = await measure('talea', count);
    const theirs = await measure('@prometheus-io/client', count);
    const share = own.ms / theirs.ms;
    console.log(`| ${count} | ${own.ms.toFixed(2)} | ${theirs.ms.toFixed(1)} | ${share.toFixed(3)} | ${own.delay.toFixed(1)} | ${theirs.delay.toFixed(1)} |`);
  }
  process.exit();
}

if (cluster.isPrimary) main();
else worker();
