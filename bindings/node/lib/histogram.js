'use strict';

const { Metric } = require('./metric');
const { validatedExemplar } = require('./exemplar');
const { startTimer } = require('./timer');
const { refuseNumber } = require('./validation');

const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

class Histogram extends Metric {
  constructor(config) {
    super('histogram', config, { buckets: BUCKETS });
    if (this.labelNames.includes('le')) throw new Error('le is a reserved label keyword');
    this.upperBounds = Object.freeze([...this.buckets]);
    if (this.enableExemplars) this.observe = this._observeWithExemplar;
    this._begin(this.upperBounds.filter((bound) => bound !== Infinity));
  }

  observe(labels, value) {
    this._observed(labels, value);
  }

  _observeWithExemplar({ labels = {}, value, exemplarLabels = {} } = {}) {
    const child = this._at(labels);
    if (Object.keys(exemplarLabels).length === 0) return child.observe(value);
    if (!Number.isFinite(value)) refuseNumber('Value', value);
    child._series().withExemplar(value, validatedExemplar(exemplarLabels));
  }

  startTimer(labels, exemplarLabels) {
    return startTimer((endLabels, value, endExemplarLabels) => {
      const all = { ...labels, ...endLabels };
      const exemplar = { ...exemplarLabels, ...endExemplarLabels };
      if (this.enableExemplars) this.observe({ labels: all, value, exemplarLabels: exemplar });
      else this.observe(all, value);
    });
  }

  reset() {
    super.reset();
    this._hide();
  }

  /** Shows the series of these labels with no observations. */
  zero(labels) {
    this._at(labels)._series();
    this._family.reset(this.labelNames.map((name) => String(labels[name] ?? '')));
  }

  _child(values) {
    const { floats, integers } = this._region;
    let series, thresholds, counts, zero, sum;
    const child = {
      observe(value) {
        if (typeof value !== 'number' || !Number.isFinite(value)) refuseNumber('Value', value);
        if (thresholds === undefined) return child._series().observe(value);
        let at = zero;
        if (value !== 0) {
          let n = 0;
          while (n < thresholds.length && value > thresholds[n]) n++;
          at = counts[n];
        }
        integers[at] += 1n;
        floats[sum] += value;
      },
      startTimer: () =>
        startTimer((endLabels, seconds) => this._ended(values, endLabels).observe(seconds)),
      _series: () => {
        if (series === undefined) {
          series = this._bind(values, child);
          ({ thresholds, counts, zero, sum } = (floats && series.places()) ?? {});
        }
        return series;
      },
      _forget() {
        series = thresholds = undefined;
      },
    };
    return child;
  }
}

module.exports = Histogram;
