'use strict';

const { performance } = require('node:perf_hooks');

/** A function that records the seconds since now, with labels that are known only then, and returns them. */
function startTimer(record) {
  const start = performance.now();
  return (labels, exemplarLabels) => {
    const seconds = (performance.now() - start) / 1e3;
    record(labels, seconds, exemplarLabels);
    return seconds;
  };
}

module.exports = { startTimer };
