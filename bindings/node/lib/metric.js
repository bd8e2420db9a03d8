'use strict';

const { MetricFamily } = require('./native');
const { readSamples } = require('./samples');
const regions = require('./regions');
const shared = require('./shared');
const { invalidLabelNames, isObject, refuseLabel, validateMetricName } = require('./validation');
const { warn } = require('./warning');

const SERIES = 20_000;

/** What counters, gauges, histograms and summaries have in common. */
class Metric {
  constructor(type, config, defaults) {
    if (!isObject(config)) throw new TypeError('constructor expected a config object');
    const options = { labelNames: [], aggregator: 'sum', enableExemplars: false, ...defaults };
    Object.assign(this, options, config);
    this.type = type;
    this.labelNames ??= [];
    this.registers ??= [shared.register];
    if (!this.help) throw new Error('Missing mandatory help parameter');
    if (!this.name) throw new Error('Missing mandatory name parameter');
    if (!validateMetricName(this.name)) throw new Error(`Invalid metric name: ${this.name}`);
    const invalid = invalidLabelNames(this.labelNames);
    if (invalid.length > 0) throw new Error(`At least one label name is invalid: ${invalid.join(',')}`);
    if (this.collect && typeof this.collect !== 'function') {
      throw new Error('Optional "collect" parameter must be a function');
    }
  }

  /** Joins its registries, and finds or makes its series in their region. */
  _begin(numbers) {
    for (const registry of this.registers) {
      if (this.enableExemplars && !registry._isOpenMetrics()) {
        throw new TypeError('Exemplars are supported only on OpenMetrics registries');
      }
      registry._check(this);
    }
    const [registry] = this.registers;
    hidden(this, '_region', registry ? registry._region : regions.ofEnvironment());
    hidden(this, '_in', new Set());
    hidden(this, '_numbers', numbers);
    this._open();
    for (const each of this.registers) each.registerMetric(this);
  }

  _open() {
    const definition = {
      kind: this.type,
      name: this.name,
      help: String(this.help),
      labelNames: [...this.labelNames],
      numbers: this._numbers,
      isNative: Boolean(this.nativeBuckets),
      window: this.window,
      combine: COMBINE[this.aggregator],
      limit: this.limit ?? SERIES,
    };
    hidden(this, '_family', this._register(definition));
    hidden(this, '_children', new Map());
    hidden(this, '_byKey', new Map());
    hidden(this, '_none', undefined);
    hidden(this, '_beyond', undefined);
    hidden(this, '_hasOtherValues', false);
    hidden(this, '_isHidden', false);
    hidden(this, '_isEnded', false);
    if (this.labelNames.length === 0) {
      this._none = this._child([]);
      this._none._series();
    }
  }

  /** The series of a child that is about to count, perhaps again after it was removed. */
  _bind(values, child) {
    this._isHidden = false;
    if (values.length > 0 && child !== this._beyond) this._byKey.set(JSON.stringify(values), child);
    return this._family.series(this._region.native, values);
  }

  /** A region that is full or has another definition of the name keeps no application from starting. */
  _register(definition) {
    try {
      return this._registerIn(this._region, definition);
    } catch ({ message }) {
      // A full region has no room for further metrics either.
      const isFull = message.includes('the region is full');
      const shown = isFull ? 'the metrics that found no room' : 'the metric';
      warn('TALEA_METRIC', `${message}. Until then this process alone shows ${shown}`, isFull ? 'full' : message);
    }
    try {
      return this._registerIn(regions.ofEnvironment(), definition);
    } catch {
      return this._registerIn(regions.nextOfEnvironment(), definition);
    }
  }

  _registerIn(region, definition) {
    this._region = region;
    return MetricFamily.register(region.native, definition);
  }

  /** The name of its family in the region. */
  get _shown() {
    return this.type === 'counter' && !this.name.endsWith('_total') ? `${this.name}_total` : this.name;
  }

  /** The child of a call without labels. */
  _only() {
    return this._none ?? this._at({});
  }

  /** The child of these labels, made at the first time. */
  _at(labels) {
    const names = this.labelNames;
    // Labels that are not the metric's are as many more than those that are. A map for each label costs less than a
    // text of all values.
    let left = 0;
    for (const _ in labels) left++;
    let found = this._children;
    for (let n = 0; n < names.length; n++) {
      const value = labels[names[n]];
      if (value !== undefined) left--;
      found = found?.get(value);
    }
    if (left !== 0) this._check(labels);
    if (names.length === 0) return this._none;
    return found ?? this._make(names.map((name) => labels[name]));
  }

  _check(labels) {
    for (const label in labels) {
      if (!this.labelNames.includes(label)) refuseLabel(label, this.labelNames);
    }
  }

  _make(given) {
    if (given.length === 0) return this._none;
    const values = given.map((value) => (value === undefined ? '' : String(value)));
    const key = JSON.stringify(values);
    let child = this._byKey.get(key);
    if (child === undefined) {
      if (this._byKey.size >= (this.limit ?? SERIES)) return (this._beyond ??= this._child(values));
      child = this._child(values);
      if (given.some((value) => value !== undefined && typeof value !== 'string')) {
        this._hasOtherValues = true;
        child.given = Object.fromEntries(this.labelNames.map((name, n) => [name, given[n]]));
      }
      this._byKey.set(key, child);
    }
    // Not by objects: each would be one more entry.
    if (!given.some(isObject)) {
      let map = this._children;
      for (const value of given.slice(0, -1)) {
        if (!map.has(value)) map.set(value, new Map());
        map = map.get(value);
      }
      map.set(given.at(-1), child);
    }
    return child;
  }

  /** The child of a timer that ends, with labels beside those that it began with. */
  _ended(values, labels) {
    if (labels === undefined) return this._make(values);
    const begun = Object.fromEntries(this.labelNames.map((name, n) => [name, values[n]]));
    return this._at({ ...begun, ...labels });
  }

  /** The labels that arguments of `labels` or `remove` give: an object, or values in the order of the names. */
  _given(args) {
    if (typeof args[0] === 'object') return args[0] ?? {};
    const names = this.labelNames;
    if (names.length !== args.length) {
      throw new Error(
        `Invalid number of arguments (${args.length}): "${args.join(', ')}" for label names ` +
          `(${names.length}): "${names.join(', ')}".`,
      );
    }
    return Object.fromEntries(names.map((name, n) => [name, args[n]]));
  }

  /** Observes, by labels and a value or by a value alone. */
  _observed(labels, value) {
    const given = labels === 0 ? 0 : labels || {};
    if (isObject(given)) this._at(given).observe(value);
    else this._only().observe(given);
  }

  labels(first, ...others) {
    if (others.length === 0 && isObject(first)) return this._at(first);
    return this._at(this._given([first, ...others].slice(0, arguments.length)));
  }

  remove(...args) {
    const labels = this._given(args);
    const names = this.labelNames;
    this._check(labels);
    const values = names.map((name) => (labels[name] === undefined ? '' : String(labels[name])));
    if (names.length === 0) {
      this.reset();
      return this._hide();
    }
    const key = JSON.stringify(values);
    this._byKey.get(key)?._forget();
    this._byKey.delete(key);
    this._children = new Map();
    this._family.remove(values);
  }

  /** Counts from 0 again; series with labels are removed. In all processes. */
  reset() {
    for (const child of this._byKey.values()) child._forget();
    this._byKey.clear();
    this._children = new Map();
    if (this.labelNames.length > 0) this._family.removeAll();
    this._family.wipe();
    this._isHidden = false;
  }

  /** Leaves the series without labels out of this environment's pages, until it counts again. */
  _hide() {
    this._none?._forget();
    this._isHidden = true;
  }

  async get() {
    await this._collected();
    const page = this._region.native.renderNow([this._wanted()], this.enableExemplars, []).toString();
    const { help, name, type, aggregator } = this;
    const values = readSamples(page, this);
    if (this._hasOtherValues) for (const { labels } of values) Object.assign(labels, this._givenAs(labels));
    return { help, name, type, values, aggregator };
  }

  /** The labels as the first call gave them, whose values need not be texts. */
  _givenAs(labels) {
    const values = this.labelNames.map((name) => labels[name] ?? '');
    return this._byKey.get(JSON.stringify(values))?.given;
  }

  /** Its values after its function `collect` ran. */
  _collected() {
    return this.collect ? this.collect() : undefined;
  }

  _wanted() {
    const isHidden = this._isHidden && this.labelNames.length === 0;
    return { name: this.name, shown: this._shown, help: String(this.help), kind: this.type, isHidden };
  }

  /** It is in no registry any more. What other processes count stays. */
  _end() {
    if (regions.isShared()) return;
    this.reset();
    this._isEnded = true;
    this._region.native.unregister(this._shown);
  }
}

/** How the values of several processes become one. There is no mean; the latest value is shown. */
const COMBINE = {
  sum: 'sum',
  min: 'min',
  max: 'max',
  first: 'latest',
  average: 'latest',
  omit: 'latest',
};

/** A property that `Object.keys` leaves out. */
function hidden(of, name, value) {
  Object.defineProperty(of, name, { value, writable: true, configurable: true, enumerable: false });
}

module.exports = { Metric, hidden };
