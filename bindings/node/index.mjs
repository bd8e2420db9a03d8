import talea from './index.js';

export default talea;
export const {
  register,
  Registry,
  contentType,
  prometheusContentType,
  openMetricsContentType,
  validateMetricName,
  Counter,
  Gauge,
  Histogram,
  Summary,
  Pushgateway,
  linearBuckets,
  exponentialBuckets,
  collectDefaultMetrics,
  aggregators,
  ClusterRegistry,
  WorkerRegistry,
  AggregatorRegistry,
  renderRegion,
} = talea;
