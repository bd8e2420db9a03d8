'use strict';

/** A function from metrics of one name, of several processes, to one metric. */
function aggregatorOf(combine) {
  return (metrics) => {
    if (metrics.length === 0) return undefined;
    const byLabels = new Map();
    for (const sample of metrics.flatMap((metric) => metric.values)) {
      const key = JSON.stringify([sample.metricName, Object.entries(sample.labels).sort()]);
      byLabels.set(key, [...(byLabels.get(key) ?? []), sample]);
    }
    const { help, name, type, aggregator } = metrics[0];
    const values = [...byLabels.values()].map((samples) => {
      const { labels, metricName } = samples[0];
      const value = combine(samples.map((sample) => sample.value));
      return metricName === undefined ? { value, labels } : { value, labels, metricName };
    });
    return { help, name, type, values, aggregator };
  };
}

const sum = (values) => values.reduce((all, value) => all + value, 0);

const aggregators = {
  sum: aggregatorOf(sum),
  first: aggregatorOf(([first]) => first),
  omit: () => {},
  average: aggregatorOf((values) => sum(values) / values.length),
  min: aggregatorOf((values) => Math.min(...values)),
  max: aggregatorOf((values) => Math.max(...values)),
};

module.exports = { aggregators };
