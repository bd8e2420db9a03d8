'use strict';

// Counts in a worker of a cluster or in a process of its own until it is killed; each line that it says acknowledges
// as many.

const { writeSync } = require('node:fs');

const { Counter, Histogram } = require('../..');

const counter = new Counter({ name: 'written_total', help: 'h' });
const labelled = new Counter({ name: 'labelled_total', help: 'h', labelNames: ['n'] });
const observed = new Histogram({ name: 'observed_seconds', help: 'h' });

for (let n = 0; ; n++) {
  counter.inc();
  labelled.inc({ n: n % 7 });
  observed.observe(1);
  writeSync(1, '{"done":1}\n');
}
