import { expect, test } from 'vitest';

import { traceLink } from './trace.ts';

test('a trace is linked by the template, and nothing that its number says changes where the link leads', () => {
  const template = 'https://traces.example/trace/{trace_id}?from={trace_id}';
  for (const [name, value, link] of [
    ['trace_id', '4bf9', 'https://traces.example/trace/4bf9?from=4bf9'],
    ['TraceID', '$&', 'https://traces.example/trace/%24%26?from=%24%26'],
    ['trace_id', '../../x?y#z', 'https://traces.example/trace/..%2F..%2Fx%3Fy%23z?from=..%2F..%2Fx%3Fy%23z'],
    ['trace_id', '', null],
    ['span_id', '4bf9', null],
  ] as const) {
    expect(traceLink(template, name, value)).toBe(link);
  }
  for (const hostile of [null, undefined, '', 'javascript:alert({trace_id})', 'data:text/html,{trace_id}']) {
    expect(traceLink(hostile, 'trace_id', '1')).toBeNull();
  }
});
