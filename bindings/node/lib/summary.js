'use strict';

const { Metric } = require('./metric');
const { startTimer } = require('./timer');
const { refuseNumber } = require('./validation');

const PERCENTILES = [0.01, 0.05, 0.5, 0.9, 0.95, 0.99, 0.999];
const WINDOW = 600;

class Summary extends Metric {
  constructor(config) {
    super('summary', config, { percentiles: PERCENTILES });
    if (this.labelNames.includes('quantile')) {
      throw new Error('quantile is a reserved label keyword');
    }
    this.window = this.maxAgeSeconds || WINDOW;
    this._begin([...this.percentiles]);
  }

  observe(labels, value) {
    this._observed(labels, value);
  }

  startTimer(labels) {
    return startTimer((endLabels, seconds) => this.observe({ ...labels, ...endLabels }, seconds));
  }

  _child(values) {
    let series;
    const child = {
      observe(value) {
        if (typeof value !== 'number' || !Number.isFinite(value)) refuseNumber('Value', value);
        child._series().observe(value);
      },
      startTimer: () =>
        startTimer((endLabels, seconds) => this._ended(values, endLabels).observe(seconds)),
      _series: () => (series ??= this._bind(values, child)),
      _forget() {
        series = undefined;
      },
    };
    return child;
  }
}

module.exports = Summary;
