'use strict';

const { Metric } = require('./metric');
const { validatedExemplar } = require('./exemplar');
const { isObject, refuseNumber } = require('./validation');

/** From here on a float does not count by one. */
const INEXACT = 2 ** 53;

class Counter extends Metric {
  constructor(config) {
    super('counter', config);
    if (this.enableExemplars) this.inc = this._incWithExemplar;
    this._begin();
  }

  inc(labels, value) {
    if (isObject(labels)) this._at(labels).inc(value);
    else this._only().inc(labels);
  }

  _incWithExemplar({ labels = {}, value = 1, exemplarLabels } = {}) {
    const child = this._at(labels);
    if (exemplarLabels === undefined) child.inc(value);
    else child._series().withExemplar(amount(value), validatedExemplar(exemplarLabels));
  }

  _child(values) {
    const { floats } = this._region;
    let series;
    let index = -1;
    const child = {
      inc(value) {
        const added = value === undefined ? 1 : amount(value);
        if (index >= 0) {
          const sum = floats[index] + added;
          if (sum < INEXACT) {
            floats[index] = sum;
            return;
          }
        }
        child._series().add(added);
      },
      _series: () => {
        if (series === undefined) {
          series = this._bind(values, child);
          index = floats ? series.index() : -1;
        }
        return series;
      },
      _forget() {
        series = undefined;
        index = -1;
      },
    };
    return child;
  }
}

/** What a counter adds for an argument. */
function amount(value) {
  if (value === null || value === undefined) return 1;
  if (!Number.isFinite(value)) refuseNumber('Value', value);
  if (value < 0) throw new Error('It is not possible to decrease a counter');
  return value;
}

module.exports = Counter;
