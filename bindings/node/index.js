'use strict';

const shared = require('./lib/shared');

/** The package, as its first copy in this environment has it. */
function load() {
  const { Registry, renderRegion } = require('./lib/registry');
  const { ClusterRegistry, WorkerRegistry } = require('./lib/cluster');
  require('./lib/regions').prepareCluster();
  return {
    register: shared.register,
    Registry,
    get contentType() {
      return shared.register.contentType;
    },
    set contentType(value) {
      shared.register.setContentType(value);
    },
    prometheusContentType: Registry.PROMETHEUS_CONTENT_TYPE,
    openMetricsContentType: Registry.OPENMETRICS_CONTENT_TYPE,
    validateMetricName: require('./lib/validation').validateMetricName,
    Counter: require('./lib/counter'),
    Gauge: require('./lib/gauge'),
    Histogram: require('./lib/histogram'),
    Summary: require('./lib/summary'),
    Pushgateway: require('./lib/pushgateway'),
    ...require('./lib/buckets'),
    collectDefaultMetrics: require('./lib/default-metrics'),
    aggregators: require('./lib/aggregators').aggregators,
    ClusterRegistry,
    WorkerRegistry,
    AggregatorRegistry: ClusterRegistry,
    renderRegion,
  };
}

module.exports = shared.api ??= load();
