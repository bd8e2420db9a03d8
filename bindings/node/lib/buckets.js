'use strict';

function linearBuckets(start, width, count) {
  if (count < 1) throw new Error('Linear buckets needs a positive count');
  return Array.from({ length: count }, (_, n) => start + n * width);
}

function exponentialBuckets(start, factor, count) {
  if (start <= 0) throw new Error('Exponential buckets needs a positive start');
  if (count < 1) throw new Error('Exponential buckets needs a positive count');
  if (factor <= 1) throw new Error('Exponential buckets needs a factor greater than 1');
  const buckets = [];
  for (let bound = start; buckets.length < count; bound *= factor) buckets.push(bound);
  return buckets;
}

module.exports = { exponentialBuckets, linearBuckets };
