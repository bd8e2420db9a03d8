'use strict';

// Claims about middleware: each framework with its own routes, requests that end in every way.

const assert = require('node:assert');
const { once } = require('node:events');
const http = require('node:http');
const http2 = require('node:http2');
const { test } = require('node:test');

const { serve } = require('@hono/node-server');
const Router = require('@koa/router');
const express = require('express');
const fastify = require('fastify');
const { Hono } = require('hono');
const Koa = require('koa');

const talea = require('..');
const { expressErrors, expressMeter, fastifyMeter, honoMeter, koaMeter, meterServer } = require('../http');
const { Meter } = require('../lib/meter');
const { get, leave, samples, until } = require('./support');

const broken = () => {
  throw new Error('broken');
};

/** How many requests handlers keep without a response. */
let kept = 0;
const keep = () => {
  kept++;
  return new Promise(() => {});
};

/** Services of each framework: `/items/{id}`, `/broken`, `/slow`, whose response does not end, `/silent` without one. */
const services = {
  async Express(registry) {
    const app = express();
    app.set('env', 'test');
    app.use(expressMeter({ registry }));
    app.get('/items/:id', (_request, response) => response.send('item'));
    app.get('/broken', broken);
    app.get('/slow', (_request, response) => response.write('…'));
    app.get('/silent', keep);
    const inner = express.Router({ mergeParams: true });
    inner.get('/', (_request, response) => response.send('all'));
    app.use('/shops/:shop/items', inner);
    app.use(expressErrors());
    return { server: app.listen(0, '127.0.0.1'), item: '/items/:id', nested: '/shops/:shop/items' };
  },

  async Fastify(registry) {
    const app = fastify();
    await app.register(fastifyMeter, { registry });
    app.get('/items/:id', async () => 'item');
    app.get('/broken', async () => broken());
    app.get('/slow', (_request, reply) => {
      reply.hijack();
      reply.raw.write('…');
    });
    app.get('/silent', keep);
    await app.register(async (inner) => inner.get('/items', async () => 'all'), { prefix: '/shops/:shop' });
    await app.listen({ port: 0, host: '127.0.0.1' });
    return { server: app.server, item: '/items/:id', nested: '/shops/:shop/items' };
  },

  async Koa(registry) {
    const app = new Koa();
    app.silent = true;
    app.use(koaMeter({ registry }));
    const router = new Router();
    router.get('/items/:id', (context) => (context.body = 'item'));
    router.get('/broken', broken);
    router.get('/slow', (context) => {
      context.respond = false;
      context.res.write('…');
    });
    router.get('/silent', keep);
    const inner = new Router();
    inner.get('/items', (context) => (context.body = 'all'));
    router.use('/shops/:shop', inner.routes());
    app.use(router.routes());
    return { server: app.listen(0, '127.0.0.1'), item: '/items/:id', nested: '/shops/:shop/items' };
  },

  async Hono(registry) {
    const app = new Hono();
    app.use(honoMeter({ registry }));
    app.get('/items/:id', (context) => context.text('item'));
    app.get('/broken', broken);
    app.onError((_error, context) => context.text('failed', 500));
    app.get('/slow', () => new Response(new ReadableStream({ start: (one) => one.enqueue(new TextEncoder().encode('…')) })));
    app.get('/silent', keep);
    const inner = new Hono();
    inner.get('/items', (context) => context.text('all'));
    app.route('/shops/:shop', inner);
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' });
    return { server, item: '/items/:id', nested: '/shops/:shop/items' };
  },

  async 'node:http'(registry) {
    const server = http.createServer((request, response) => {
      if (request.url === '/slow') return response.write('…');
      if (request.url === '/silent') return keep();
      if (request.url.startsWith('/items/') || request.url.startsWith('/shops/')) return response.end('item');
      response.writeHead(request.url === '/broken' ? 500 : 404).end();
    });
    meterServer(server, {
      registry,
      route: ({ url }) =>
        ({ items: '/items/:id', shops: '/shops/:shop/items', broken: '/broken', slow: '/slow', silent: '/silent' })[url.split('/')[1]],
    });
    return { server: server.listen(0, '127.0.0.1'), item: '/items/:id', nested: '/shops/:shop/items', hasNoErrors: true };
  },
};

for (const [framework, make] of Object.entries(services)) {
  test(`${framework}: each request is recorded once, at its template`, async (t) => {
    const registry = new talea.Registry();
    const { server, item, nested, hasNoErrors } = await make(registry);
    t.after(() => {
      server.close();
      server.closeAllConnections();
    });
    await until('it listens', () => server.address());
    const { port } = server.address();
    for (let n = 0; n < 3; n++) await get(port, `/items/${n}`);
    await get(port, '/shops/lima/items');
    await get(port, '/shops/items/items');
    assert.strictEqual((await get(port, '/broken')).status, 500);
    assert.strictEqual((await get(port, '/nothing/here')).status, 404);
    await leave(port, '/slow', (socket) => once(socket, 'data'));
    const before = kept;
    await leave(port, '/silent', () => until('its handler runs', () => kept > before));
    const outcomes = async () => {
      const page = samples((await registry._region.native.renderAll('')).toString());
      const found = Object.entries(page).filter(([name, value]) => name.startsWith('http_request_outcomes_total') && value > 0);
      const of = (name) => /route="([^"]*)",outcome="([^"]*)"/.exec(name).slice(1).join(' ');
      return { page, found: Object.fromEntries(found.map(([name, value]) => [of(name), value])) };
    };
    const expected = {
      [`${item} complete`]: 3,
      [`${nested} complete`]: 2,
      [`/broken ${hasNoErrors ? 'complete' : 'panicked'}`]: 1,
      '_unmatched complete': 1,
      '/slow aborted': 1,
      '/silent aborted': 1,
    };
    const { page, found } = await until('all have ended', async () => {
      const now = await outcomes();
      return Object.values(now.found).reduce((sum, one) => sum + one, 0) >= 9 && now;
    });
    assert.deepStrictEqual(found, expected);
    const inFlight = Object.entries(page).filter(([name]) => name.startsWith('http_requests_in_flight'));
    assert.ok(inFlight.length > 0);
    for (const [name, value] of inFlight) assert.strictEqual(value, 0, name);
    const errors = Object.entries(page).filter(([name]) => /^http_requests_total.*route="\/broken".*5xx/.test(name));
    assert.deepStrictEqual(errors.map(([, value]) => value), [1]);
  });
}

test('node:http2: a request is recorded at its template', async (t) => {
  const registry = new talea.Registry();
  const server = http2.createServer((_request, response) => response.end('item'));
  meterServer(server, { registry, route: () => '/items/:id' });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const client = http2.connect(`http://127.0.0.1:${server.address().port}`);
  t.after(() => {
    client.close();
    server.close();
  });
  const stream = client.request({ ':path': '/items/5' });
  stream.resume();
  await new Promise((resolve) => stream.once('close', resolve));
  await until('it is recorded', async () => {
    const page = samples((await registry._region.native.renderAll('')).toString());
    return page['http_request_outcomes_total{method="GET",route="/items/:id",outcome="complete"}'] === 1;
  });
});

test('words that clients send as methods make one route', () => {
  const meter = new Meter({ registry: new talea.Registry() });
  const routes = new Set(Array.from({ length: 1000 }, (_, n) => meter.route(`METHOD${n}`, '/items')));
  assert.strictEqual(routes.size, 1);
  assert.notStrictEqual(meter.route('GET', '/items'), meter.route('OTHER', '/items'));
});
