'use strict';

// The time of calls beside prom-client and @prometheus-io/client, in turns in one run: `make bench-node`.

const assert = require('node:assert');

const ROUNDS = Number(process.env.ROUNDS ?? 9);
const CALLS = Number(process.env.CALLS ?? 1e6);

const talea = require('..');
const libraries = {
  talea,
  'prom-client': require('prom-client'),
  '@prometheus-io/client': require('@prometheus-io/client'),
};

/** What each library does, by name: what is made of it, and the call. */
const subjects = {
  'kept inc()': [
    ({ Counter }) => new Counter({ name: 'kept_total', help: 'h', labelNames: ['a', 'b'] }).labels('x', 'y'),
    'made.inc()',
  ],
  'labels({…}).inc()': [
    ({ Counter }) => new Counter({ name: 'labels_total', help: 'h', labelNames: ['method', 'route', 'code'] }),
    "made.labels({ method: 'GET', route: routes[n & 3], code: 200 }).inc()",
  ],
  'inc({…})': [
    ({ Counter }) => new Counter({ name: 'inc_total', help: 'h', labelNames: ['method', 'route', 'code'] }),
    "made.inc({ method: 'GET', route: routes[n & 3], code: 200 })",
  ],
  'kept observe()': [
    ({ Histogram }) => new Histogram({ name: 'observed_seconds', help: 'h', labelNames: ['a'] }).labels('x'),
    'made.observe((n & 1023) / 500)',
  ],
  'kept observe() of a summary': [
    ({ Summary }) => new Summary({ name: 'summarized_seconds', help: 'h', labelNames: ['a'] }).labels('x'),
    'made.observe((n & 1023) / 500)',
  ],
  'kept set()': [
    ({ Gauge }) => new Gauge({ name: 'set_value', help: 'h', labelNames: ['a'] }).labels('x'),
    'made.set(n)',
  ],
  'startTimer()()': [({ Histogram }) => new Histogram({ name: 'timed_seconds', help: 'h' }), 'made.startTimer()()'],
};

const ROUTES = ['/a', '/b', '/c', '/d'];

/** A loop of its own: the engine optimizes a loop that several libraries share for all of them. */
function loopOf(made, call) {
  const loop = new Function('made', 'routes', `return (calls) => { for (let n = 0; n < calls; n++) ${call}; };`);
  return loop(made, ROUTES);
}

/** A counter over an array of the heap, with the same checks. */
function heapCounter() {
  const cells = new Float64Array(1024);
  return {
    inc(value) {
      const added = value === undefined ? 1 : value;
      if (!(added >= 0 && added < Infinity)) throw new TypeError('no number');
      cells[7] += added;
    },
  };
}

function median(numbers) {
  return numbers.toSorted((a, b) => a - b)[numbers.length >> 1];
}

function nanosecondsACall(loop) {
  const start = process.hrtime.bigint();
  loop(CALLS);
  return Number(process.hrtime.bigint() - start) / CALLS;
}

function measure(loops) {
  const times = Object.fromEntries(Object.keys(loops).map((name) => [name, []]));
  for (const loop of Object.values(loops)) loop(CALLS);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, loop] of Object.entries(loops)) times[name].push(nanosecondsACall(loop));
  }
  return Object.fromEntries(Object.entries(times).map(([name, all]) => [name, median(all)]));
}

assert(talea.register._region.floats, 'this environment has borrowed no plane');
console.log(`Node ${process.version}, ns a call, medians of ${ROUNDS} rounds of ${CALLS} calls\n`);
console.log(`| | ${Object.keys(libraries).join(' | ')} | share of the better |\n|---|--:|--:|--:|--:|`);
for (const [what, [make, call]] of Object.entries(subjects)) {
  const loops = Object.fromEntries(Object.entries(libraries).map(([name, library]) => [name, loopOf(make(library), call)]));
  if (what === 'kept inc()') loops.heap = loopOf(heapCounter(), call);
  const { heap, ...found } = measure(loops);
  const [own, ...theirs] = Object.values(found);
  const cells = Object.values(found).map((time) => time.toFixed(1));
  const ofHeap = heap === undefined ? '' : `; ${(own / heap).toFixed(2)} of a heap array's ${heap.toFixed(1)}`;
  console.log(`| ${what} | ${cells.join(' | ')} | ${(own / Math.min(...theirs)).toFixed(2)}${ofHeap} |`);
}
process.exit();
