'use strict';

// Requests a second of Express and Fastify: bare, with Talea, and with the middleware that people have. In turns, so that
// all meet the same machine: `make bench-node`.

const { fork } = require('node:child_process');
const { once } = require('node:events');
const net = require('node:net');

const ROUNDS = Number(process.env.ROUNDS ?? 9);
const SECONDS = Number(process.env.SECONDS ?? 1);
const CONNECTIONS = 16;

const frameworks = {
  express: {
    bare: () => {},
    talea: (app) => app.use(require('../http').expressMeter()),
    'express-prom-bundle': (app) => app.use(require('express-prom-bundle')({ includeMethod: true, includePath: true })),
  },
  fastify: {
    bare: () => {},
    talea: (app) => app.register(require('../http').fastifyMeter),
    'fastify-metrics': (app) => {
      const metrics = require('fastify-metrics');
      return app.register(metrics.default ?? metrics, { endpoint: '/metrics' });
    },
  },
};

const listen = {
  express(add) {
    const app = require('express')();
    add(app);
    app.get('/items/:item', (request, response) => response.json({ item: request.params.item }));
    return app.listen(0, '127.0.0.1', function () {
      process.send({ port: this.address().port });
    });
  },
  async fastify(add) {
    const app = require('fastify')();
    await add(app);
    app.get('/items/:item', async (request) => ({ item: request.params.item }));
    await app.listen({ port: 0, host: '127.0.0.1' });
    process.send({ port: app.server.address().port });
  },
};

/** Sends requests over one connection until the time is over, each after the last response; their number. */
function load(port, until) {
  const socket = net.connect(port, '127.0.0.1').setNoDelay();
  const requests = ['1', '2', '3', '4'].map((item) => `GET /items/${item} HTTP/1.1\r\nHost: x\r\n\r\n`);
  return new Promise((resolve, reject) => {
    let count = 0;
    let text = '';
    socket.on('connect', () => socket.write(requests[0]));
    socket.on('data', (data) => {
      text += data.latin1Slice();
      // The body is an object, and the last thing of a response.
      if (!text.endsWith('}')) return;
      if (!text.startsWith('HTTP/1.1 200')) return reject(new Error(text));
      text = '';
      count++;
      if (performance.now() >= until) return resolve(socket.destroy() && count);
      socket.write(requests[count & 3]);
    });
    socket.on('error', reject);
  });
}

/** Requests a second, and the server's microseconds of CPU for a request. */
async function run({ child, port }) {
  const cpu = await cpuOf(child);
  const start = performance.now();
  const counts = await Promise.all(Array.from({ length: CONNECTIONS }, () => load(port, start + SECONDS * 1e3)));
  const seconds = (performance.now() - start) / 1e3;
  const count = counts.reduce((sum, one) => sum + one);
  return { rate: count / seconds, cpu: ((await cpuOf(child)) - cpu) / count };
}

/** The microseconds that a server has computed. */
async function cpuOf(child) {
  child.send('cpu');
  const [{ cpu }] = await once(child, 'message');
  return cpu;
}

/** The mean and half of its interval of 95 %. */
function estimate(numbers) {
  const mean = numbers.reduce((sum, number) => sum + number) / numbers.length;
  const squares = numbers.reduce((sum, number) => sum + (number - mean) ** 2, 0);
  return { mean, half: 2.2 * Math.sqrt(squares / (numbers.length - 1) / numbers.length) };
}

function text({ mean, half }, digits) {
  return `${mean.toFixed(digits)} ± ${half.toFixed(digits)}`;
}

async function measure(framework) {
  const servers = [];
  for (const name of Object.keys(frameworks[framework])) {
    const child = fork(__filename, [framework, name], { env: { ...process.env, NODE_ENV: 'production' } });
    const [{ port }] = await once(child, 'message');
    servers.push({ name, child, port, found: [] });
  }
  for (const server of servers) await run(server);
  for (let round = 0; round < ROUNDS; round++) {
    // Each is the first in turn.
    for (let n = 0; n < servers.length; n++) {
      const server = servers[(n + round) % servers.length];
      server.found.push(await run(server));
    }
  }
  const [bare] = servers;
  for (const { name, child, found } of servers) {
    const rate = estimate(found.map((one) => one.rate));
    const share = estimate(found.map((one, round) => one.rate / bare.found[round].rate));
    const cpu = estimate(found.map((one) => one.cpu));
    const more = estimate(found.map((one, round) => one.cpu - bare.found[round].cpu));
    const cells = [framework, name, rate.mean.toFixed(0), text(share, 3), cpu.mean.toFixed(1), text(more, 1)];
    console.log(`| ${cells.join(' | ')} |`);
    child.kill();
  }
}

async function main() {
  console.log(`Node ${process.version}, ${CONNECTIONS} connections, ${ROUNDS} rounds of ${SECONDS} s in turns, ± of 95 %\n`);
  console.log('| framework | with | requests/s | share of bare | CPU of a request, µs | more than bare |\n|---|---|--:|--:|--:|--:|');
  for (const framework of Object.keys(frameworks)) await measure(framework);
}

const [framework, name] = process.argv.slice(2);
process.on('message', () => process.send({ cpu: process.cpuUsage().user + process.cpuUsage().system }));
if (framework === undefined) main();
else listen[framework](frameworks[framework][name]);
