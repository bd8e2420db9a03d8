'use strict';

// Fills the region, with metrics or with series of one.

const { MetricFamily, Region } = require('../../lib/native');

const region = Region.ofProcess();
const register = (name, labelNames) =>
  MetricFamily.register(region, { kind: 'counter', name, help: 'h', labelNames, limit: 1e9 });

if (process.argv[2] === 'series') {
  const filled = register('filled_total', ['n']);
  for (let n = 0; filled.dropped() === 0; n++) filled.series(region, [String(n)]);
} else {
  try {
    for (let n = 0; ; n++) register(`filled_${n}_total`, []);
  } catch {
    // It is full.
  }
}
