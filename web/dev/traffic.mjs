// Made-up traffic: what happens in a second follows from the second alone, so that a range and the
// events agree, and a server that starts again goes on with the same history.

const SECOND = 1000;
export const FAMILY = 'http_request_duration_seconds';

const ROUTES = [
  ['GET /api/items', 420, 0.004],
  ['GET /api/items/{id}', 310, 0.0022],
  ['POST /api/items', 96, 0.011],
  ['PUT /api/items/{id}', 48, 0.013],
  ['DELETE /api/items/{id}', 31, 0.008],
  ['GET /api/search', 64, 0.045],
  ['POST /api/baskets', 27, 0.019],
  ['POST /api/baskets/{id}/orders', 9, 0.12],
  ['GET /api/users/{id}', 74, 0.003],
  ['POST /api/login', 6, 0.21],
  ['GET /api/reports/monthly', 0.4, 1.9],
  ['GET /healthz', 2, 0.0003],
  ['GET /\u202eturned\u0007', 0.6, 0.004],
  ['GET /<script>alert(1)</script>', 1.5, 0.005],
  [`GET /long/${'segment-of-a-route/'.repeat(16)}end`.slice(0, 300), 0.8, 0.007],
];
const CLASSIC = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, null];

/** A generator of random numbers with a seed (mulberry32). */
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

const normal = (next) => Math.sqrt(-2 * Math.log(next() + 1e-12)) * Math.cos(2 * Math.PI * next());

function poisson(mean, next) {
  if (mean > 40) return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal(next)));
  const limit = Math.exp(-mean);
  let product = next();
  let count = 0;
  while (product > limit) {
    product *= next();
    count += 1;
  }
  return count;
}

export class Traffic {
  /** `born` is the time that everything is measured from: the spike, the death, the gap lie before it. */
  constructor({ endpoints = 15, born = Date.now(), empty = false, services = [] } = {}) {
    /** The services that have the endpoints by turns; none if there is one only. */
    this.services = services;
    this.born = Math.floor(born / SECOND) * SECOND;
    this.bounds = [];
    this.ids = new Map();
    this.gaps = [[this.born - 215 * SECOND, this.born - 195 * SECOND]];
    this.deaths = [[this.born - 62 * SECOND, this.born - 59 * SECOND]];
    this.spikes = [[this.born - 150 * SECOND, this.born - 95 * SECOND]];
    for (let hour = 1; hour < 24; hour += 1) {
      const at = this.born - hour * 3300 * SECOND;
      this.spikes.push([at, at + 240 * SECOND]);
    }
    this.gaps.push([this.born - 9 * 3600 * SECOND, this.born - 8.5 * 3600 * SECOND]);
    this.endpoints = empty ? [] : ROUTES.slice(0, Math.min(endpoints, ROUTES.length));
    for (let n = this.endpoints.length; !empty && n < endpoints; n += 1) {
      const method = ['GET', 'GET', 'GET', 'POST', 'PUT'][n % 5];
      const route = `${method} /api/v2/tenants/{tenant}/resource-${n}/{id}`;
      this.endpoints.push([route, 300 / (n - 8), 0.001 * (1 + ((n * 7) % 40))]);
    }
  }

  table() {
    return this.endpoints.map(([name], id) => [id, this.nameOf(name, id), FAMILY, this.serviceOf(id)]);
  }

  serviceOf(id) {
    return this.services.length ? this.services[id % this.services.length] : '';
  }

  nameOf(name, id) {
    return this.services.length ? `${name} ${this.serviceOf(id)}` : name;
  }

  buckets() {
    return this.bounds.map(([low, high], id) => [id, low, high]);
  }

  isWithin(spans, t) {
    return spans.some(([from, to]) => t > from && t <= to);
  }

  isGap(t) {
    return this.isWithin(this.gaps, t);
  }

  bucket(endpoint, seconds) {
    // The fifth of every five has classic buckets, the others native ones of two resolutions.
    if (endpoint % 5 === 4) {
      const at = CLASSIC.findIndex((bound) => bound === null || seconds <= bound);
      return this.bucketId(at === 0 ? 0 : CLASSIC[at - 1], CLASSIC[at]);
    }
    const perOctave = endpoint % 2 === 0 ? 8 : 32;
    const index = Math.ceil(Math.log2(seconds) * perOctave);
    return this.bucketId(2 ** ((index - 1) / perOctave), 2 ** (index / perOctave));
  }

  bucketId(low, high) {
    const key = `${low} ${high}`;
    let id = this.ids.get(key);
    if (id === undefined) {
      id = this.bounds.length;
      this.ids.set(key, id);
      this.bounds.push([low, high]);
    }
    return id;
  }

  endpoint(id, t, factor) {
    const [, mean, median] = this.endpoints[id];
    const next = random(id * 7919 + Math.floor(t / SECOND) * 104729);
    const isSpike = this.isWithin(this.spikes, t);
    const isDown = this.isWithin(this.deaths, t);
    const wave = 1 + 0.25 * Math.sin((t / SECOND / 97) * Math.PI + id) + 0.1 * Math.sin(t / SECOND / 7);
    const count = isDown ? 0 : poisson(mean * wave, next) * factor;
    const slow = isSpike && id % 7 === 0 ? 18 : isSpike ? 1.6 : 1;
    const statuses = {};
    const outcomes = {};
    const counts = new Map();
    let sum = 0;
    const draws = Math.min(count, this.endpoints.length > 50 ? 40 : 400);
    for (let n = 0; n < draws; n += 1) {
      const tail = next() < 0.02 ? 6 : 1;
      const seconds = median * slow * tail * Math.exp(0.42 * normal(next));
      const weight = count / draws;
      sum += seconds * weight;
      const bucket = this.bucket(id, seconds);
      counts.set(bucket, (counts.get(bucket) ?? 0) + weight);
      const share = next();
      const errors = isSpike && id % 7 === 0 ? 0.12 : 0.0015;
      const status = share < errors ? (share < errors / 3 ? '503' : '500') : share < errors + 0.02 ? '404' : '200';
      statuses[status] = (statuses[status] ?? 0) + weight;
      const outcome = share > 0.9985 ? 'aborted' : status === '500' && share < errors * 0.5 ? 'panicked' : 'complete';
      outcomes[outcome] = (outcomes[outcome] ?? 0) + weight;
    }
    // Weights are fractions; counts are whole. The largest bucket takes the remainder.
    const flat = [];
    let left = count;
    for (const [bucket, weight] of [...counts].sort((a, b) => a[1] - b[1])) {
      const whole = Math.min(left, Math.round(weight));
      left -= whole;
      flat.push(bucket, whole);
    }
    if (flat.length) flat[flat.length - 1] += left;
    for (const of of [statuses, outcomes]) for (const key of Object.keys(of)) of[key] = Math.round(of[key]);
    const inFlight = isDown ? 0 : poisson(mean * median * slow * 1.5, next);
    return [id, count, sum, inFlight, statuses, flat, outcomes];
  }

  health(t) {
    const next = random(Math.floor(t / SECOND));
    const isDown = this.isWithin(this.deaths, t);
    if (isDown) return {};
    const wave = Math.sin(t / SECOND / 60);
    return {
      cpu_cores: 1.1 + 0.4 * wave + 0.1 * next(),
      memory_bytes: 1.2e8 + 2e7 * wave + ((t / 60) % 3e7),
      open_fds: Math.round(60 + 20 * wave),
      threads: 6,
      tasks_alive: Math.round(220 + 60 * wave + 20 * next()),
      tokio_busy_cores: 0.8 + 0.3 * wave + 0.05 * next(),
      scheduling_delay_seconds: 0.0002 + 0.0001 * next(),
    };
  }

  /** The events of `steps` seconds up to `t`, drawn from the last of them. */
  point(t, steps = 1) {
    const ended = Math.floor(t / SECOND) * SECOND;
    const e = this.endpoints
      .map((_, id) => this.endpoint(id, ended, steps))
      .filter(([, count, , inFlight]) => count > 0 || inFlight > 0);
    const point = { t: ended, s: steps, u: 0.004, n: steps, e, h: this.health(ended) };
    if (this.services.length) point.hr = Object.fromEntries(this.services.map((name) => [name, this.health(ended)]));
    return point;
  }

  range(from, to, bins, until = to) {
    const bin = (to - from) / bins / SECOND;
    const points = [];
    for (let n = 0; n < bins; n += 1) {
      const begin = from + n * bin * SECOND;
      const first = Math.floor(begin / SECOND) + 1;
      const last = Math.floor(Math.min(until, begin + bin * SECOND) / SECOND);
      const seconds = [];
      for (let second = first; second <= last; second += 1) {
        if (!this.isGap(second * SECOND)) seconds.push(second);
      }
      if (!seconds.length) continue;
      points.push(this.point(seconds.at(-1) * SECOND, seconds.length));
    }
    return points;
  }

  marks() {
    const marks = [{ t: this.born - 3000 * SECOND, kind: 'started', of: 'shop', text: 'Process 4711 started.' }];
    for (const [from, to] of this.deaths) {
      marks.push({ t: from, kind: 'died', of: 'shop', text: 'Process 4711 died (SIGKILL).' });
      marks.push({ t: to, kind: 'replaced', of: 'shop', text: 'Process 4811 took the place of 4711.' });
    }
    for (const [from, to] of this.gaps) {
      marks.push({ t: to, kind: 'missed', of: '', text: `The agent read nothing for ${(to - from) / SECOND} s.` });
    }
    return marks.sort((a, b) => a.t - b.t);
  }

  processes() {
    const [died] = this.deaths[0];
    if (this.services.length) {
      return this.services.map((region, n) => ({ region, pid: 100 + n, started: this.born - 1e6, alive: true, died: null }));
    }
    return [
      { region: 'shop', pid: 4711, started: this.born - 3000 * SECOND, alive: false, died },
      { region: 'shop', pid: 4811, started: died + 3 * SECOND, alive: true, died: null },
      { region: 'shop', pid: 4712, started: this.born - 2999 * SECOND, alive: true, died: null },
      { region: '<b>hostile</b>', pid: 1, started: this.born - 86400 * SECOND, alive: true, died: null },
    ];
  }
}

const pick = (t, n) => random(Math.floor(t / SECOND) * 31 + n)();

/** Families besides those of HTTP. */
export const FAMILIES = [
  {
    name: FAMILY,
    kind: 'histogram',
    help: 'Time from the arrival of a request to the head of its response.',
    labels: ['method', 'route'],
    series: [
      ['GET', '/api/items'],
      ['POST', '/api/items'],
      ['GET', '/<script>alert(1)</script>'],
    ].map(([method, route]) => [
      ['method', method],
      ['route', route],
    ]),
    value: (t, n) => Math.round(40 + 30 * Math.sin(t / 9e3 + n) + 10 * pick(t, n)),
  },
  {
    name: 'http_requests_total',
    kind: 'counter',
    help: 'Requests by status.',
    labels: ['method', 'route', 'status'],
    series: ['200', '404', '503'].flatMap((status) =>
      ['/api/items', '/api/items/{id}', '/api/search'].map((route) => [
        ['method', 'GET'],
        ['route', route],
        ['status', status],
      ]),
    ),
    value: (t, n) =>
      n < 3 ? Math.round(100 + 60 * Math.sin(t / 2e4 + n) + 9 * pick(t, n)) : Math.round(3 * pick(t, n)),
  },
  {
    name: 'shop.orders',
    kind: 'counter',
    help: 'Orders, under a name that needs quotes. "\\" and \n in a help text.\u202e',
    labels: ['pay.method', 'country'],
    series: [
      ['card', 'pe'],
      ['"quoted" \\ back', 'new\nline'],
      ['<img src=x onerror=alert(1)>', 'de'],
    ].map(([method, country]) => [
      ['pay.method', method],
      ['country', country],
    ]),
    value: (t, n) => Math.round(4 * pick(t, n)),
  },
  {
    name: 'db_pool_connections',
    kind: 'gauge',
    help: 'Connections of the database pool by state.',
    labels: ['state'],
    series: [[['state', 'used']], [['state', 'idle']]],
    value: (t, n) => Math.round(10 + 6 * Math.sin(t / 3e4 + n * Math.PI)),
  },
  {
    name: 'process_resident_memory_bytes',
    kind: 'gauge',
    help: 'Resident memory.',
    labels: [],
    series: [[]],
    value: (t) => 1.2e8 + 2e7 * Math.sin(t / 6e4),
  },
  {
    name: 'gc_pause_seconds',
    kind: 'summary',
    help: '',
    labels: ['generation'],
    series: [[['generation', '0']], [['generation', '1']]],
    value: (t, n) => Math.round(3 * pick(t, n)),
  },
  ...Array.from({ length: 60 }, (_, n) => ({
    name: `queue_${String(n).padStart(2, '0')}_jobs_total`,
    kind: 'counter',
    help: `Jobs of queue ${n}.`,
    labels: ['worker'],
    series: Array.from({ length: 1 + ((n * 13) % 40) }, (_, worker) => [['worker', `worker-${worker}`]]),
    value: (t, at) => Math.round(10 * pick(t, at + n)),
  })),
];
