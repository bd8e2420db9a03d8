'use strict';

// Counts in each of the ways that depend on the runtime: plain stores, threads that end and that are terminated, requests.

const { once } = require('node:events');
const http = require('node:http');
const { Worker, isMainThread } = require('node:worker_threads');

const { Counter, Gauge, Histogram, Summary, collectDefaultMetrics, register, renderRegion } = require('../..');
const { meterServer, serveMetrics } = require('../../http');

const counted = new Counter({ name: 'counted_total', help: 'h' });
counted.inc(3);

async function main() {
  new Gauge({ name: 'level', help: 'h' }).set(2);
  new Histogram({ name: 'took_seconds', help: 'h', buckets: [1, 2] }).observe(1.5);
  new Summary({ name: 'size_bytes', help: 'h', percentiles: [0.5] }).observe(7);
  await once(new Worker(__filename), 'exit');
  const endless = new Worker(`
    const { Counter } = require(${JSON.stringify(require.resolve('../..'))});
    new Counter({ name: 'counted_total', help: 'h' }).inc(3);
    require('node:worker_threads').parentPort.postMessage('counted');
    setInterval(() => {}, 1000);`, { eval: true });
  await once(endless, 'message');
  await endless.terminate();
  const page = await register.metrics();
  collectDefaultMetrics();
  const defaults = await register.metrics();
  const server = http.createServer((request, response) => {
    if (request.url === '/metrics') serveMetrics(request, response);
    else response.end('item');
  });
  meterServer(server, { route: (request) => request.url });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const base = `http://127.0.0.1:${server.address().port}`;
  await (await fetch(`${base}/items`)).text();
  const served = await (await fetch(`${base}/metrics`)).text();
  const whole = (await renderRegion()).body.toString();
  console.log(JSON.stringify({ hasPlainStores: register._region.floats !== undefined, page, defaults, served, whole }));
  process.exit();
}

if (isMainThread) main();
