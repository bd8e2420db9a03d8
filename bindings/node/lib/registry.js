'use strict';

const { isDeepStrictEqual } = require('node:util');

const { aggregators } = require('./aggregators');
const { Region } = require('./native');
const regions = require('./regions');
const { writeMetric } = require('./samples');
const shared = require('./shared');

const PROMETHEUS = 'text/plain; version=0.0.4; charset=utf-8';
const OPENMETRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

class Registry {
  static get PROMETHEUS_CONTENT_TYPE() {
    return PROMETHEUS;
  }

  static get OPENMETRICS_CONTENT_TYPE() {
    return OPENMETRICS;
  }

  #metrics = new Map();
  #defaultLabels = {};
  #contentType;
  #openRegion;

  constructor(contentType = PROMETHEUS) {
    if (contentType !== PROMETHEUS && contentType !== OPENMETRICS) {
      throw new TypeError(`Content type ${contentType} is unsupported`);
    }
    this.#contentType = contentType;
  }

  /** Where metrics that are made for this registry count. */
  get _region() {
    return (this.#openRegion ??= this === shared.register ? regions.ofProcess() : regions.ofRegistry());
  }

  get contentType() {
    return this.#contentType;
  }

  setContentType(contentType) {
    if (contentType !== PROMETHEUS && contentType !== OPENMETRICS) {
      throw new Error(`Content type ${contentType} is unsupported`);
    }
    this.#contentType = contentType;
  }

  _isOpenMetrics() {
    return this.#contentType === OPENMETRICS;
  }

  registerMetric(metric) {
    this._check(metric);
    const replaced = this.#metrics.get(metric.name);
    this.#metrics.set(metric.name, metric);
    replaced?._in?.delete(this);
    metric._in?.add(this);
    if (metric._isEnded) metric._open();
  }

  /** Throws if another metric has the name. While a service is developed, its modules may be loaded again. */
  _check(metric) {
    const other = this.#metrics.get(metric.name);
    if (other === undefined || other === metric) return;
    if (process.env.NODE_ENV === 'development' && isSameDefinition(other, metric)) return;
    throw new Error(`A metric with the name ${metric.name} has already been registered.`);
  }

  getSingleMetric(name) {
    return this.#metrics.get(name);
  }

  removeSingleMetric(name) {
    const metric = this.#metrics.get(name);
    this.#metrics.delete(name);
    this.#leave(metric);
  }

  clear() {
    const metrics = [...this.#metrics.values()];
    this.#metrics.clear();
    this.#defaultLabels = {};
    for (const metric of metrics) this.#leave(metric);
  }

  #leave(metric) {
    if (metric?._in === undefined) return;
    metric._in.delete(this);
    if (metric._in.size === 0) metric._end();
  }

  resetMetrics() {
    for (const metric of this.#metrics.values()) metric.reset();
  }

  setDefaultLabels(labels) {
    this.#defaultLabels = labels;
  }

  getMetricsAsArray(aggregator) {
    const all = [...this.#metrics.values()];
    return aggregator === undefined ? all : all.filter((metric) => (metric.aggregator ?? 'sum') === aggregator);
  }

  async getMetricsAsJSON(aggregator) {
    const metrics = await Promise.all(this.getMetricsAsArray(aggregator).map((metric) => metric.get()));
    for (const metric of metrics) {
      for (const sample of metric.values ?? []) {
        sample.labels = { ...this.#defaultLabels, ...sample.labels };
      }
    }
    return metrics;
  }

  async metrics() {
    const page = (await this.metricsAsBuffer()).toString();
    return page;
  }

  /** The page as bytes, which are made off the event loop. */
  async metricsAsBuffer() {
    const parts = await this.#parts(this.getMetricsAsArray());
    if (this._isOpenMetrics()) parts.push(Buffer.from('# EOF\n'));
    return parts.length === 1 ? parts[0] : Buffer.concat(parts);
  }

  async getMetricsAsString(metric) {
    const parts = await this.#parts([metric]);
    return Buffer.concat(parts).toString().trimEnd();
  }

  getSingleMetricAsString(name) {
    return this.getMetricsAsString(this.getSingleMetric(name));
  }

  /** A page for each run of metrics of one region, and for each metric that is not of this package. */
  async #parts(metrics) {
    await Promise.all(metrics.map((metric) => metric._collected?.()));
    const runs = [];
    for (const metric of metrics) {
      const region = metric._region;
      if (region === undefined || runs.at(-1)?.region !== region) runs.push({ region, metrics: [] });
      runs.at(-1).metrics.push(metric);
    }
    const pages = await Promise.all(runs.map((run) => this.#page(run)));
    if (this._isOpenMetrics()) return pages;
    // Between metrics there is an empty line.
    return pages.flatMap((page, n) => (n === 0 ? [page] : [Buffer.from('\n'), page]));
  }

  async #page({ region, metrics }) {
    const isOpenMetrics = this._isOpenMetrics();
    if (region === undefined) {
      return Buffer.from(writeMetric(await metrics[0].get(), this.#defaultLabels, isOpenMetrics));
    }
    const labels = Object.entries(this.#defaultLabels).map(([name, value]) => ({ name, value: String(value) }));
    return region.native.render(metrics.map((metric) => metric._wanted()), isOpenMetrics, labels);
  }

  static merge(registries) {
    const [{ contentType }] = registries;
    if (registries.some((registry) => registry.contentType !== contentType)) {
      throw new Error('Registers can only be merged if they have the same content type');
    }
    const merged = new Registry(contentType);
    for (const metric of registries.flatMap((registry) => registry.getMetricsAsArray())) {
      merged.registerMetric(metric);
    }
    return merged;
  }

  /** A registry of what `getMetricsAsJSON` returned elsewhere. */
  static aggregate(all, contentType = Registry.PROMETHEUS_CONTENT_TYPE) {
    const aggregated = new Registry(contentType);
    const byName = new Map();
    for (const metric of all.flat()) {
      byName.set(metric.name, [...(byName.get(metric.name) ?? []), metric]);
    }
    for (const metrics of byName.values()) {
      const aggregator = metrics[0].aggregator ?? 'sum';
      const aggregate = aggregators[aggregator];
      if (typeof aggregate !== 'function') {
        throw new Error(`'${aggregator}' is not a defined aggregator.`);
      }
      const result = aggregate(metrics);
      if (result) aggregated.registerMetric({ ...result, get: () => result });
    }
    return aggregated;
  }
}

function isSameDefinition(one, other) {
  const of = ({ type, help, labelNames, buckets, percentiles }) => [type, help, labelNames, buckets, percentiles];
  return isDeepStrictEqual(of(one), of(other));
}

/**
 * A page of all that is in this process's region, also what other processes and languages count there, in the
 * format that an Accept header asks for. Resolves with `{ contentType, body }`.
 */
async function renderRegion(accept = '') {
  await Promise.all(shared.register.getMetricsAsArray().map((metric) => metric._collected?.()));
  const body = await regions.ofProcess().native.renderAll(accept);
  return { contentType: Region.contentType(accept), body };
}

shared.register ??= new Registry();
Registry.globalRegistry = shared.register;

module.exports = { Registry, renderRegion };
