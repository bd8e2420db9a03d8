import { expect, test } from 'vitest';

import { queries, selector } from './promql.ts';

test('each kind has its query', () => {
  expect(queries('http_requests_total', 'counter', [['status', '500']])[0]![1]).toBe(
    'rate(http_requests_total{status="500"}[1m])',
  );
  expect(queries('d_seconds', 'histogram', [['a', 'b']])).toEqual([
    ['p50', 'histogram_quantile(0.5, sum by (le) (rate(d_seconds_bucket{a="b"}[1m])))'],
    ['p90', 'histogram_quantile(0.9, sum by (le) (rate(d_seconds_bucket{a="b"}[1m])))'],
    ['p99', 'histogram_quantile(0.99, sum by (le) (rate(d_seconds_bucket{a="b"}[1m])))'],
    ['Observations a second', 'rate(d_seconds_count{a="b"}[1m])'],
  ]);
  expect(queries('d_seconds', 'histogram', [], true).slice(2)).toEqual([
    ['p99', 'histogram_quantile(0.99, sum(rate(d_seconds[1m])))'],
    ['Observations a second', 'histogram_count(rate(d_seconds[1m]))'],
  ]);
  expect(queries('memory_bytes', 'gauge', [])[0]![1]).toBe('memory_bytes');
  expect(queries('gc_seconds', 'summary', [])[0]![1]).toBe('gc_seconds');
  expect(
    queries('x', 'untyped', [
      ['a', 'b'],
      ['c', 'd'],
    ])[0]![1],
  ).toBe('x{a="b", c="d"}');
});

test('names that PromQL does not know are quoted', () => {
  expect(selector('na.me', [])).toBe('{"na.me"}');
  expect(selector('na.me', [['label', 'v']])).toBe('{"na.me", label="v"}');
  expect(
    selector('1st', [
      ['la.bel', 'v'],
      ['a:b', 'v'],
    ]),
  ).toBe('{"1st", "la.bel"="v", "a:b"="v"}');
  expect(queries('shop.latency', 'histogram', [])[2]![1]).toBe(
    'histogram_quantile(0.99, sum by (le) (rate({"shop.latency_bucket"}[1m])))',
  );
  expect(selector('job:rate5m', [])).toBe('job:rate5m');
  expect(selector('größe', [])).toBe('{"größe"}');
});

test('values are escaped', () => {
  expect(selector('m', [['a', 'say "hi"\\\n\r}']])).toBe('m{a="say \\"hi\\"\\\\\\n\\r}"}');
  expect(selector('m"} or vector(1) #', [])).toBe('{"m\\"} or vector(1) #"}');
  expect(selector('m', [['a"="b', 'c']])).toBe('m{"a\\"=\\"b"="c"}');
});
