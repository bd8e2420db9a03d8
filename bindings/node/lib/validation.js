'use strict';

const { format, inspect } = require('node:util');

function isObject(value) {
  return value !== null && typeof value === 'object';
}

function validateMetricName(name) {
  return /^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name);
}

function invalidLabelNames(names) {
  return names.filter((name) => !/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(name));
}

function refuseLabel(label, names) {
  throw new Error(`Added label "${label}" is not included in initial labelset: ${inspect(names)}`);
}

function refuseNumber(what, value) {
  throw new TypeError(`${what} is not a valid number: ${format(value)}`);
}

module.exports = { invalidLabelNames, isObject, refuseLabel, refuseNumber, validateMetricName };
