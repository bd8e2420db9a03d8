import { expect, test } from 'vitest';

import { type Address, START, read, write } from './address.ts';

test('an address and its fragment say the same', () => {
  const addresses: Partial<Address>[] = [
    {},
    { range: 3600 },
    { span: { from: 1764036000123, to: 1764036060456 }, range: 60 },
    { endpoint: 'GET /a?b=c&d#e%20+f ü "<script>"', of: 'http_server_request_duration_seconds' },
    { filter: 'POST /x & y', sort: 'p99', isDescending: true },
    { sort: 'name', isDescending: false },
    { sort: 'rate', isDescending: false },
    { view: 'explorer', search: 'queue jobs' },
    {
      view: 'explorer',
      family: 'na.me',
      labels: [
        ['a b', '"\\\n'],
        ['label.x', ''],
        ['__proto__', 'v'],
      ],
    },
    { view: 'processes', service: 'shop & <b>\u202e' },
    { service: 'shop', endpoint: 'GET /a shop' },
    { view: 'study', range: 60 },
  ];
  for (const change of addresses) {
    const address = { ...START, ...change };
    expect(read(write(address))).toEqual(address);
  }
});

test('a fragment without anything shows the endpoints', () => {
  for (const fragment of ['', '#', '#?', '#endpoints', '#nothing-known']) expect(read(fragment)).toEqual(START);
});

test('hostile fragments are read as far as they make sense', () => {
  const fragments = [
    '#%E0%A4%A',
    '#endpoints?%',
    '#endpoints?range=%E0%A4%A',
    '#explorer?label.=&label',
    '#__proto__?__proto__=1',
    '#endpoints?from=1e9&to=2e9',
    '#endpoints?from=-5&to=5',
    '#endpoints?from=5&to=5',
    '#endpoints?from=9&to=1',
    '#endpoints?from=NaN&to=Infinity',
    '#endpoints?from=0&to=99999999999999999999',
    '#endpoints?range=7m&sort=constructor',
    '#endpoints?from=1&to=9999999999999999',
    '#?????',
    `#${'a'.repeat(100_000)}`,
  ];
  for (const fragment of fragments) {
    const found = read(fragment);
    expect(found.span).toBeNull();
    expect(found.range).toBe(300);
    expect(found.sort).toBe('rate');
  }
});

test('texts and labels are bounded', () => {
  const labels = Array.from({ length: 200 }, (_, n) => `label.l${n}=v`).join('&');
  const found = read(`#explorer?family=x&search=${'y'.repeat(9000)}&${labels}`);
  expect(found.search).toHaveLength(2000);
  expect(found.labels).toHaveLength(50);
});
