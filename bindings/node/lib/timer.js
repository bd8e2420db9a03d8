'use strict';

/** A function that records the seconds since now, with labels that are known only then, and returns them. */
function startTimer(record) {
  const start = process.hrtime();
  return (labels, exemplarLabels) => {
    // The clock that an application's tests replace, as the client reads this one.
    const [whole, nanoseconds] = process.hrtime(start);
    const seconds = whole + nanoseconds / 1e9;
    record(labels, seconds, exemplarLabels);
    return seconds;
  };
}

module.exports = { startTimer };
