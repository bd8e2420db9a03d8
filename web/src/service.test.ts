import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { START } from './address.ts';
import type { Endpoint, Hello, Point, Range } from './protocol.ts';
import { Service, binsOf, widthOf } from './service.ts';

class Events {
  static all: Events[] = [];
  isClosed = false;
  onerror: (() => void) | null = null;
  private readonly listeners = new Map<string, (event: { data: string }) => void>();

  constructor(readonly url: string) {
    Events.all.push(this);
  }

  addEventListener(name: string, listener: (event: { data: string }) => void): void {
    this.listeners.set(name, listener);
  }

  close(): void {
    this.isClosed = true;
  }

  send(name: string, data: unknown): void {
    this.listeners.get(name)?.({ data: JSON.stringify(data) });
  }

  static get last(): Events {
    return Events.all.at(-1)!;
  }
}

const NOW = 1_764_036_000_000;
let asked: URLSearchParams[];
let answers: ((fields: URLSearchParams) => Partial<Range> | number | Promise<Partial<Range>>)[];

beforeEach(() => {
  vi.useFakeTimers({ now: NOW });
  [Events.all, asked, answers] = [[], [], []];
  vi.stubGlobal('EventSource', Events);
  vi.stubGlobal('addEventListener', () => undefined);
  vi.stubGlobal('fetch', async (url: string) => {
    const fields = new URLSearchParams(url.split('?')[1]);
    asked.push(fields);
    const found = await (answers.shift()?.(fields) ?? {});
    if (typeof found === 'number') return new Response('busy', { status: found, headers: { 'Retry-After': '2' } });
    return Response.json({
      run: 'one',
      from: 0,
      to: 0,
      bin: 1,
      points: [],
      endpoints: [],
      buckets: [],
      marks: [],
      ...found,
    });
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const step = (id: number, count: number): Endpoint => [id, count, count, 0, {}, [], {}];

function point(second: number, count = 1, id = 0): Point {
  return { t: NOW + second * 1000, s: 1, u: 0, n: 1, e: [step(id, count)] };
}

function hello(run: string, second: number, more: Partial<Hello> = {}): Hello {
  return {
    version: 1,
    run,
    program: 'talea',
    title: 'shop',
    step: 1,
    seconds: 3600,
    minutes: 86400,
    oldest: null,
    now: NOW + second * 1000,
    endpoints: [[0, 'GET /a', 'f']],
    buckets: [],
    processes: [],
    marks: [],
    study: null,
    history: true,
    ...more,
  };
}

function start(): Service {
  const service = new Service(() => undefined);
  service.start(START);
  return service;
}

const settle = (): Promise<void> => vi.advanceTimersByTimeAsync(0).then(() => undefined);
const ends = (service: Service): number[] => service.live.bins.map(({ end }) => (end - NOW) / 1000);

test('points that come while the range is loaded follow it, each once', async () => {
  let answer = (_: Partial<Range>): void => undefined;
  answers.push(() => new Promise((resolve) => (answer = resolve)));
  const service = start();
  Events.last.send('hello', hello('one', 0));
  Events.last.send('point', point(0));
  Events.last.send('point', point(1));
  expect(service.live.bins).toEqual([]);
  await settle();
  answer({ points: [point(-2), point(-1), point(0)] });
  await settle();
  expect(ends(service)).toEqual([-2, -1, 0, 1]);
  expect([service.connection, service.isLoading]).toEqual(['live', false]);
});

test('a connection that was lost is made again, and what was missed is asked for', async () => {
  answers.push(
    () => ({ points: [point(-1), point(0)] }),
    () => ({ points: [point(1), point(2), point(3)] }),
  );
  const service = start();
  Events.last.send('hello', hello('one', 0));
  await settle();
  Events.last.onerror!();
  expect([service.connection, Events.last.isClosed]).toEqual(['reconnecting', true]);
  await vi.advanceTimersByTimeAsync(3000);
  expect(Events.all).toHaveLength(2);
  Events.last.send('hello', hello('one', 3));
  Events.last.send('point', point(4));
  await settle();
  expect(asked[1]!.get('from')).toBe(String(NOW));
  expect(ends(service)).toEqual([-1, 0, 1, 2, 3, 4]);
  expect(service.missed(START)).toEqual([]);
});

test('a page that nobody sees gives its connection back, and catches up when it is seen', async () => {
  answers.push(
    () => ({ points: [point(-1), point(0)] }),
    () => ({ points: [point(1), point(40)] }),
  );
  const service = start();
  Events.last.send('hello', hello('one', 0));
  await settle();
  service.see(false);
  await vi.advanceTimersByTimeAsync(5000);
  service.see(true);
  await vi.advanceTimersByTimeAsync(5000);
  expect([service.connection, Events.last.isClosed]).toEqual(['live', false]);
  Events.last.send('processes', []);
  service.see(false);
  await vi.advanceTimersByTimeAsync(30_000);
  expect([service.connection, Events.last.isClosed, Events.all.length]).toEqual(['resting', true, 1]);
  service.see(true);
  expect([service.connection, Events.all.length]).toEqual(['reconnecting', 2]);
  Events.last.send('hello', hello('one', 40));
  await settle();
  expect([service.connection, ends(service)]).toEqual(['live', [-1, 0, 1, 40]]);
});

test('a page that loses its server while nobody sees it rests too', async () => {
  const service = start();
  Events.last.send('hello', hello('one', 0));
  service.see(false);
  Events.last.onerror!();
  await vi.advanceTimersByTimeAsync(60_000);
  const tried = Events.all.length;
  expect(service.connection).toBe('resting');
  await vi.advanceTimersByTimeAsync(60_000);
  expect(Events.all).toHaveLength(tried);
  service.see(true);
  Events.last.onerror!();
  await vi.advanceTimersByTimeAsync(30_000);
  expect(service.connection).toBe('stopped');
});

test('the page of a study stays connected, since its server ends with the study', async () => {
  const service = start();
  Events.last.send('hello', hello('one', 0, { study: { state: 'running' } as Hello['study'] }));
  service.see(false);
  await vi.advanceTimersByTimeAsync(5000);
  Events.last.send('point', point(5));
  await vi.advanceTimersByTimeAsync(9000);
  expect([service.connection, Events.last.isClosed]).toEqual(['live', false]);
});

test('what the server does not have either is reported as missed', async () => {
  answers.push(
    () => ({ points: [point(-1), point(0)] }),
    () => ({ points: [point(61), point(62)] }),
  );
  const service = start();
  Events.last.send('hello', hello('one', 0));
  await settle();
  Events.last.onerror!();
  await vi.advanceTimersByTimeAsync(62_000);
  Events.last.send('hello', hello('one', 62));
  await settle();
  expect(service.missed(START)).toEqual([{ from: NOW, to: NOW + 60_000 }]);
});

test.each([
  [60, 60],
  [-60, 0],
])('nothing was missed when clocks are set: that of the server by %i s, of the page by %i s', async (seconds, ours) => {
  answers.push(
    () => ({ points: [point(-1), point(0)] }),
    () => ({ points: [] }),
  );
  const service = start();
  Events.last.send('hello', hello('one', 0));
  await settle();
  for (let second = 1; second <= 20; second += 1) {
    await vi.advanceTimersByTimeAsync(1000);
    Events.last.send('point', point(second));
  }
  vi.setSystemTime(Date.now() + ours * 1000);
  for (let second = 21; second <= 30; second += 1) {
    await vi.advanceTimersByTimeAsync(1000);
    Events.last.send('point', point(second + seconds));
  }
  await settle();
  expect(ends(service).at(-1)).toBe(30 + seconds);
  expect(service.missed(START)).toEqual([]);
});

test('another run begins anew: its numbers mean other endpoints', async () => {
  answers.push(
    () => ({ points: [point(0, 5)] }),
    () => ({ run: 'two', points: [point(3, 7, 1)] }),
  );
  const service = start();
  const renewed = vi.fn();
  service.renewed = renewed;
  Events.last.send('hello', hello('one', 0));
  await settle();
  Events.last.send('hello', hello('two', 3, { endpoints: [[1, 'GET /a', 'f']] }));
  expect(service.live.bins).toEqual([]);
  await settle();
  expect([...service.names.keys()]).toEqual([1]);
  expect([...service.live.sums.keys()]).toEqual([1]);
  expect(service.live.all.count).toBe(7);
  expect(renewed).toHaveBeenCalledTimes(2);
});

test('an answer of the run before is thrown away', async () => {
  let answer = (_: Partial<Range>): void => undefined;
  answers.push(
    () => new Promise((resolve) => (answer = resolve)),
    () => ({ run: 'two', points: [point(2, 7)] }),
  );
  const service = start();
  Events.last.send('hello', hello('one', 0));
  await settle();
  Events.last.send('hello', hello('two', 2));
  await settle();
  answer({ points: [point(0, 100)] });
  await settle();
  expect(service.live.all.count).toBe(7);
});

test('a server that is busy is asked again when it says', async () => {
  answers.push(
    () => 503,
    () => ({ points: [point(0)] }),
  );
  const service = start();
  Events.last.send('hello', hello('one', 0));
  await settle();
  expect(asked).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(2000);
  expect(asked).toHaveLength(2);
  expect(ends(service)).toEqual([0]);
});

test('a range that cannot be loaded is reported, and the page goes on', async () => {
  answers.push(() => 400);
  const service = start();
  Events.last.send('hello', hello('one', 0));
  Events.last.send('point', point(1));
  await settle();
  expect(service.trouble).toBe('The range could not be loaded: busy');
  expect(ends(service)).toEqual([1]);
});

test('after sleep the connection is made anew', async () => {
  answers.push(() => ({ points: [point(0)] }));
  const service = start();
  Events.last.send('hello', hello('one', 0));
  await settle();
  vi.setSystemTime(NOW + 3_600_000);
  await vi.advanceTimersByTimeAsync(1000);
  expect(service.connection).toBe('reconnecting');
  await vi.advanceTimersByTimeAsync(10);
  expect(Events.all).toHaveLength(2);
});

test('a server that stays away has stopped', async () => {
  const service = start();
  Events.last.send('hello', hello('one', 0));
  await settle();
  for (let second = 0; second < 25; second += 1) {
    Events.last.onerror!();
    await vi.advanceTimersByTimeAsync(5000);
  }
  expect(service.connection).toBe('stopped');
  Events.last.send('hello', hello('one', 130));
  expect(service.connection).toBe('live');
});

test('a paused page keeps what it shows and receives what comes', async () => {
  answers.push(() => ({ points: [point(-1), point(0)] }));
  const service = start();
  Events.last.send('hello', hello('one', 0, { oldest: NOW - 86_400_000 }));
  await settle();
  const paused = { ...START, span: service.freeze(START) };
  service.show(paused);
  Events.last.send('point', point(1));
  expect(service.shown(paused).all.count).toBe(2);
  expect(service.live.all.count).toBe(3);
  expect(service.window(paused)).toEqual({ from: NOW - 300_000, to: NOW });
  service.show(START);
  expect(service.shown(START).all.count).toBe(3);
  expect(asked).toHaveLength(1);
});

test('a point that is left out is asked for, once', async () => {
  answers.push(
    () => ({ points: [point(0)] }),
    () => ({ points: [point(1), point(2)] }),
    () => ({}),
  );
  const service = start();
  Events.last.send('hello', hello('one', 0));
  await settle();
  Events.last.send('point', point(3));
  Events.last.send('point', point(4));
  await settle();
  expect(ends(service)).toEqual([0, 1, 2, 3, 4]);
  // The server did not read for a while: it is asked, has nothing, and is not asked again.
  Events.last.send('point', point(9));
  await settle();
  Events.last.send('point', point(10));
  await settle();
  expect(ends(service)).toEqual([0, 1, 2, 3, 4, 9, 10]);
  expect(asked.map((fields) => fields.get('from'))).toEqual([NOW - 300_000, NOW, NOW + 4000].map(String));
});

test('a point that is left out while the range is loaded is asked for too', async () => {
  let answer = (_: Partial<Range>): void => undefined;
  answers.push(
    () => new Promise((resolve) => (answer = resolve)),
    () => ({ points: [point(1), point(2)] }),
  );
  const service = start();
  Events.last.send('hello', hello('one', 0));
  Events.last.send('point', point(3));
  Events.last.send('point', point(4));
  await settle();
  answer({ points: [point(0)] });
  await settle();
  expect(ends(service)).toEqual([0, 1, 2, 3, 4]);
  expect(service.isLoading).toBe(false);
});

test('a server whose clock is set back is shown by its new clock', async () => {
  answers.push(
    () => ({ points: [point(-1)] }),
    () => ({ points: [point(-3602), point(-3601)] }),
  );
  const service = start();
  Events.last.send('hello', hello('one', 0));
  await settle();
  Events.last.send('point', point(0));
  expect(ends(service)).toEqual([-1, 0]);
  Events.last.send('point', point(-3600));
  await settle();
  Events.last.send('point', point(-3599));
  expect(ends(service)).toEqual([-3602, -3601, -3600, -3599]);
  expect(service.now()).toBeLessThan(NOW - 3_590_000);
});

test('marks are known once', async () => {
  const mark = { t: NOW, kind: 'died' as const, of: 'shop', text: 'x' };
  const service = start();
  Events.last.send('hello', hello('one', 0, { marks: [mark] }));
  Events.last.send('point', { ...point(1), marks: [mark, { ...mark, t: NOW - 5 }] });
  expect(service.marks.map(({ t }) => t)).toEqual([NOW - 5, NOW]);
});

test('a span is asked for in bins that cover it', () => {
  expect(binsOf({ from: 1000, to: 61_000 })).toEqual({ from: '1000', to: '61000', bins: '480' });
  expect(binsOf({ from: 1_003_500, to: 1_903_500 })).toEqual({ from: '1002000', to: '1904000', bins: '451' });
  const { from, to, bins } = binsOf({ from: 12_345, to: 12_345 + 960_000 });
  expect([Number(from) <= 12_345, Number(to) - Number(from), bins]).toEqual([true, 960_000, '480']);
});

test('a range has 480 bins at most', () => {
  expect([60, 300, 480, 900, 3600, 21_600, 86_400, 1e7].map(widthOf)).toEqual([0, 0, 0, 2, 10, 60, 180, 86_400]);
});

test('a death is one mark, with how the process ended if that is known', () => {
  const service = new Service(() => undefined);
  service.start(START);
  const died = (text: string) => ({ t: NOW - 1000, kind: 'died' as const, of: 'shop', text });
  const changed = (text: string) => ({ t: NOW - 1000, kind: 'changed' as const, of: 'GET /a', text });
  const [short, long] = [died('1 gone'), died('1 gone; process 7 was killed by SIGKILL')];
  for (const marks of [[short], [long], [short], [changed('slower')], [changed('errors')]]) {
    Events.last.send('point', { ...point(0), marks });
  }
  expect(service.marks).toEqual([long, changed('slower'), changed('errors')]);
});

test('of a young agent, what it has is seen, and a minute at least', async () => {
  for (const [age, seen] of [
    [0, 60],
    [90, 90],
    [299, 299],
    [4000, 300],
  ] as const) {
    answers.push(() => ({ points: [point(0)] }));
    const service = start();
    Events.last.send('hello', hello('one', 0, { oldest: NOW - age * 1000 }));
    await settle();
    expect(service.window(START)).toEqual({ from: NOW - seen * 1000, to: NOW });
  }
});

test('one service is seen alone, with its requests, its health, its changes and no others', async () => {
  const both = (second: number, count: number): Point => ({
    ...point(second),
    e: [step(0, count), step(1, 10 * count)],
    h: { open_fds: 9 },
    hr: { shop: { open_fds: 4 }, 'b <i>': { open_fds: 5 } },
  });
  const endpoints: Hello['endpoints'] = [
    [0, 'GET /a shop', 'f', 'shop'],
    [1, 'GET /a b <i>', 'f', 'b <i>'],
  ];
  const changes: Hello['changes'] = [{ endpoint: 'GET /a shop', quantity: 'slower', since: NOW, text: '' }];
  const range = () => ({ points: [both(-1, 1), both(0, 2)], endpoints });
  answers.push(...Array.from({ length: 9 }, () => range));
  const service = start();
  Events.last.send('hello', hello('one', 0, { endpoints, changes }));
  await settle();
  expect(service.live.all.count).toBe(33);
  expect(service.services()).toEqual(['b <i>', 'shop']);
  const seen = (): unknown[] => [
    service.live.all.count,
    service.live.bins.at(-1)?.health['open_fds'],
    service.changesIn(START).length,
    service.shownNames().size,
  ];
  for (const [only, count, files, changed] of [
    ['shop', 3, 4, 1],
    ['b <i>', 30, 5, 0],
  ] as const) {
    const address = { ...START, service: only };
    service.show(address);
    // Nothing of another service is shown meanwhile.
    expect(service.live.all.count).toBe(0);
    await settle();
    expect(seen()).toEqual([count, files, changed, 1]);
    Events.last.send('point', both(1 + files, 1));
    await settle();
  }
  // Paused, it is the same.
  const paused = { ...START, service: 'shop', span: { from: NOW - 2000, to: NOW } };
  service.show(paused);
  await settle();
  expect(service.shown(paused).all.count).toBe(3);
  // A service of yesterday has nothing.
  service.show({ ...START, service: 'gone' });
  await settle();
  expect([service.live.all.count, service.shownNames().size]).toEqual([0, 0]);
});

test('the only service of an agent is seen by its name too, though no series names it', async () => {
  const processes = [{ region: 'shop', pid: 1, started: NOW, alive: true, died: null }];
  const seen = (): Point => ({ ...point(0, 5), h: { open_fds: 4 } });
  answers.push(...Array.from({ length: 3 }, () => () => ({ points: [seen()] })));
  const service = start();
  Events.last.send('hello', hello('one', 0, { processes, regionLabel: null }));
  await settle();
  service.show({ ...START, service: 'shop' });
  await settle();
  expect([service.live.all.count, service.live.bins[0]?.health['open_fds']]).toEqual([5, 4]);
  expect([service.shownNames().size, service.isOf('GET /a', 'shop'), service.region()]).toEqual([1, true, {}]);
  service.show({ ...START, service: 'gone' });
  await settle();
  expect([service.live.all.count, service.shownNames().size]).toEqual([0, 0]);
});
