'use strict';

/** The labels of an exemplar for the addon. */
function validatedExemplar(labels) {
  const pairs = Object.entries(labels).map(([name, value]) => ({ name, value: String(value) }));
  if (pairs.reduce((sum, { name, value }) => sum + name.length + value.length, 0) > 128) {
    throw new RangeError('Label set size must be smaller than 128 UTF-8 chars');
  }
  return pairs;
}

module.exports = { validatedExemplar };
