'use strict';

// Fastify with worker threads, which count in the metrics of their process:
//
//     node examples/threads.js 8080
//     curl localhost:8080/metrics

const { Worker, isMainThread, parentPort } = require('node:worker_threads');

const fastify = require('fastify');
const { Counter, Histogram } = require('talea');
const { fastifyMeter, serveMetrics } = require('talea/http');

const jobs = new Counter({ name: 'shop_jobs_total', help: 'Jobs done.' });
const durations = new Histogram({ name: 'shop_job_seconds', help: 'Time of a job.' });

async function main() {
  const workers = [1, 2, 3].map(() => new Worker(__filename));
  const app = fastify();
  await app.register(fastifyMeter);
  app.get('/jobs/:count', async (request) => {
    const count = Number(request.params.count);
    const done = workers.map(
      (worker) => new Promise((resolve) => worker.once('message', resolve)),
    );
    for (const worker of workers) worker.postMessage(count);
    await Promise.all(done);
    return { jobs: count * workers.length };
  });
  app.get('/metrics', (request, reply) => {
    reply.hijack();
    return serveMetrics(request.raw, reply.raw);
  });
  await app.listen({ port: Number(process.argv[2] ?? 8080), host: '127.0.0.1' });
  console.log(JSON.stringify({ port: app.server.address().port }));
}

if (isMainThread) {
  main();
} else {
  parentPort.on('message', (count) => {
    for (let n = 0; n < count; n++) {
      jobs.inc();
      durations.observe(n / 1000);
    }
    parentPort.postMessage('done');
  });
}
