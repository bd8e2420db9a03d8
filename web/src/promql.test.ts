import { expect, test } from 'vitest';

import { query, selector } from './promql.ts';

test('each kind has its query', () => {
  expect(query('http_requests_total', 'counter', [['status', '500']])).toBe(
    'rate(http_requests_total{status="500"}[1m])',
  );
  expect(query('d_seconds', 'histogram', [])).toBe(
    'histogram_quantile(0.99, sum by (le) (rate(d_seconds_bucket[5m])))',
  );
  expect(query('d_seconds', 'histogram', [['a', 'b']])).toBe(
    'histogram_quantile(0.99, sum by (le) (rate(d_seconds_bucket{a="b"}[5m])))',
  );
  expect(query('memory_bytes', 'gauge', [])).toBe('memory_bytes');
  expect(query('gc_seconds', 'summary', [])).toBe('gc_seconds');
  expect(
    query('x', 'untyped', [
      ['a', 'b'],
      ['c', 'd'],
    ]),
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
  expect(query('shop.latency', 'histogram', [])).toBe(
    'histogram_quantile(0.99, sum by (le) (rate({"shop.latency_bucket"}[5m])))',
  );
  expect(selector('job:rate5m', [])).toBe('job:rate5m');
  expect(selector('größe', [])).toBe('{"größe"}');
});

test('values are escaped', () => {
  expect(selector('m', [['a', 'say "hi"\\\n\r}']])).toBe('m{a="say \\"hi\\"\\\\\\n\\r}"}');
  expect(selector('m"} or vector(1) #', [])).toBe('{"m\\"} or vector(1) #"}');
  expect(selector('m', [['a"="b', 'c']])).toBe('m{"a\\"=\\"b"="c"}');
});
