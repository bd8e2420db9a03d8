'use strict';

// Middlewares around prom-client and those of this package, by the conventions of those: the same requests have the
// same pages, but for times.

const assert = require('node:assert');
const { test } = require('node:test');

const express = require('express');
const bundle = require('express-prom-bundle');
const fastify = require('fastify');
const metrics = require('fastify-metrics');
const client = require('prom-client');

const talea = require('..');
const { expressMeter, fastifyMeter } = require('../http');
const { get, leave, linesOf, until } = require('./support');

/** How many requests the handlers of `/silent` have. */
let kept = 0;
const keep = () => {
  kept++;
  return new Promise(() => {});
};
const broken = () => {
  throw new Error('broken');
};

async function expressService(t, middleware) {
  const app = express();
  app.set('env', 'test');
  app.use(middleware);
  app.get('/items/:id', (_request, response) => response.send('item'));
  app.post('/items/:id', (_request, response) => response.status(201).send('made'));
  app.get('/broken', broken);
  app.get('/silent', keep);
  const server = app.listen(0, '127.0.0.1');
  t.after(() => server.close());
  await until('it listens', () => server.address());
  return server.address().port;
}

async function fastifyService(t, plugin, options) {
  const app = fastify();
  t.after(() => app.close());
  await app.register(plugin, options);
  app.get('/items/:id', async () => 'item');
  app.post('/items/:id', async (_request, reply) => reply.code(201).send('made'));
  app.options('/items/:id', async () => '');
  app.get('/broken', async () => broken());
  app.get('/silent', keep);
  await app.listen({ port: 0, host: '127.0.0.1' });
  return app.server.address().port;
}

/** Sends requests that end in every way. */
async function visit(port) {
  for (let n = 0; n < 3; n++) await get(port, `/items/${n}`);
  await get(port, '/items/5', { method: 'POST' });
  await get(port, '/items/5', { method: 'HEAD' });
  await get(port, '/items/5', { method: 'OPTIONS' });
  await get(port, '/broken');
  await get(port, '/nothing/here');
  const before = kept;
  await leave(port, '/silent', () => until('its handler runs', () => kept > before));
}

/** The lines of a page without values that are times. */
async function withoutTimes(registry) {
  const lines = linesOf(await registry.metrics());
  return lines.map((line) => (/^#|_count|^up |le="\+Inf"/.test(line) ? line : line.replace(/ \S+$/, '')));
}

/** Both pages are equal once both show all requests. */
async function assertEqualPages(ours, theirs, requests) {
  const [found, expected] = await Promise.all(
    [ours, theirs].map((registry) =>
      until('all requests are recorded', async () => {
        const page = await withoutTimes(registry);
        const counts = page.filter((line) => line.startsWith('http_request_duration_seconds_count'));
        const sum = counts.reduce((all, line) => all + Number(line.slice(line.lastIndexOf(' '))), 0);
        return sum >= requests && page;
      }),
    ),
  );
  assert.deepStrictEqual(found, expected);
}

for (const [what, theirOptions, ourOptions] of [
  ['by default', {}, {}],
  [
    'with methods, paths and labels of its own',
    { includeMethod: true, includePath: true, customLabels: { shop: 'lima' } },
    { includeMethod: true, includePath: true, constantLabels: { shop: 'lima' } },
  ],
]) {
  test(`the page is that of express-prom-bundle ${what}`, async (t) => {
    const [ours, theirs] = [new talea.Registry(), new client.Registry()];
    // Otherwise its paths are those of requests, of which it guesses the variable parts.
    const normalizePath = (request) => request.route?.path ?? '_unmatched';
    const convention = 'express-prom-bundle';
    await visit(await expressService(t, expressMeter({ convention, registry: ours, ...ourOptions })));
    await visit(await expressService(t, bundle({ promRegistry: theirs, normalizePath, ...theirOptions })));
    await assertEqualPages(ours, theirs, 9);
  });
}

test('the page is that of fastify-metrics', async (t) => {
  const [ours, theirs] = [new talea.Registry(), new client.Registry()];
  await visit(await fastifyService(t, fastifyMeter, { convention: 'fastify-metrics', registry: ours }));
  const overrides = { histogram: { registers: [theirs] }, summary: { registers: [theirs] } };
  const options = { endpoint: null, defaultMetrics: { enabled: false }, routeMetrics: { overrides } };
  await visit(await fastifyService(t, metrics, options));
  await assertEqualPages(ours, theirs, 5);
});

test('any framework has the metrics of fastify-metrics by its convention', async (t) => {
  const registry = new talea.Registry();
  await visit(await expressService(t, expressMeter({ convention: 'fastify-metrics', registry })));
  const count = 'http_request_duration_seconds_count{method="GET",route="/items/:id",status_code="200"} 3';
  await until('all are recorded', async () => linesOf(await registry.metrics()).includes(count));
});

test('a convention that there is not is an error that names those that there are', () => {
  const expected = /"other".*prometheus, opentelemetry, express-prom-bundle or fastify-metrics/;
  assert.throws(() => expressMeter({ convention: 'other', registry: new talea.Registry() }), expected);
});
