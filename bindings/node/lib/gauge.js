'use strict';

const { Metric } = require('./metric');
const { startTimer } = require('./timer');
const { isObject, refuseNumber } = require('./validation');

class Gauge extends Metric {
  constructor(config) {
    super('gauge', config);
    this._begin();
  }

  set(labels, value) {
    if (!isObject(labels)) return this._only().set(labels);
    checkNumber('Value', value);
    this._at(labels).set(value);
  }

  inc(labels, value = 1) {
    if (!isObject(labels)) return this._only().inc(labels);
    checkNumber('Delta', value);
    this._at(labels).inc(value);
  }

  dec(labels, value = 1) {
    if (!isObject(labels)) return this._only().dec(labels);
    this._at(labels).dec(value);
  }

  setToCurrentTime(labels = {}) {
    this._at(labels).setToCurrentTime();
  }

  startTimer(labels) {
    return startTimer((endLabels, seconds) => this.set({ ...labels, ...endLabels }, seconds));
  }

  /** Removes series with labels, and sets the one without labels to 0. */
  reset() {
    super.reset();
    this._none?.set(0);
  }

  _child(values) {
    let series;
    const child = {
      set(value) {
        checkNumber('Value', value);
        child._series().set(value);
      },
      inc(value = 1) {
        checkNumber('Delta', value);
        child._series().add(value);
      },
      dec(value = 1) {
        child._series().add(-value);
      },
      setToCurrentTime: () => child.set(Date.now() / 1000),
      startTimer: () => startTimer((endLabels, seconds) => this._ended(values, endLabels).set(seconds)),
      _series: () => (series ??= this._bind(values, child)),
      _forget() {
        series = undefined;
      },
    };
    return child;
  }
}

function checkNumber(what, value) {
  if (typeof value !== 'number') refuseNumber(what, value);
}

module.exports = Gauge;
