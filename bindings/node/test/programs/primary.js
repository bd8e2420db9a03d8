'use strict';

const cluster = require('node:cluster');
const { Worker } = require('node:worker_threads');

const { ClusterRegistry, Counter } = require('../..');

if (cluster.isPrimary) {
  const registry = new ClusterRegistry();
  const workers = [0, 1, 2].map(() => cluster.fork());
  const ended = workers.map((worker) => new Promise((resolve) => worker.once('exit', resolve)));
  Promise.all(ended)
    .then(() => registry.clusterMetrics())
    .then((page) => {
      console.log(JSON.stringify({ page }));
      console.log(JSON.stringify({ file: process.env.TALEA_CLUSTER_REGION.split(':')[1] }));
      process.exitCode = 0;
    });
} else {
  const counter = new Counter({ name: 'counted_total', help: 'h' });
  for (let n = 0; n < 10; n++) counter.inc();
  // A thread of a worker counts there too.
  const program = `const { Counter } = require(${JSON.stringify(require.resolve('../..'))});
    new Counter({ name: 'counted_total', help: 'h' }).inc(100);`;
  new Worker(program, { eval: true }).once('exit', () => process.exit());
}
