'use strict';

const { setImmediate: turn } = require('node:timers/promises');

const { renderRegion } = require('./lib/registry');
const { EXCHANGE, Meter } = require('./lib/meter');
const { expressTemplate, noteParameters } = require('./lib/express-route');

/** Bytes of a page that are written at once. */
const PIECE = 64 * 1024;

/**
 * Meters a server of `node:http` or `node:http2`, before its other listeners. `route` is a function from a request to
 * the template of its route, or undefined: then the request is unmatched.
 */
function meterServer(server, { route = () => undefined, ...options } = {}) {
  const meter = new Meter(options);
  server.prependListener('request', (request, response) => {
    const exchange = meter.begin(request, response);
    const template = route(request);
    if (template !== undefined) exchange.enter(request.method, template);
  });
  return server;
}

/** Middleware for Express: add it before all others. Also for NestJS on Express. */
function expressMeter(options) {
  const meter = new Meter(options);
  return (request, response, next) => {
    const exchange = meter.begin(request, response);
    noteParameters(request);
    exchange.findRoute = () => {
      const template = expressTemplate(request);
      return template === undefined ? undefined : [request.method, template];
    };
    next();
  };
}

/** Middleware for Express that counts exceptions as failures of the service: add it after all others. */
function expressErrors() {
  return (error, request, _response, next) => {
    if (!(error?.status < 500 || error?.statusCode < 500)) request[EXCHANGE]?.failed();
    next(error);
  };
}

/** A plugin for Fastify: `await app.register(fastifyMeter, options)`. Also for NestJS on Fastify. */
async function fastifyMeter(app, options) {
  const meter = new Meter(options);
  app.addHook('onRoute', ({ method, url }) => {
    for (const one of [method].flat()) meter.route(one, url);
  });
  app.addHook('onRequest', (request, reply, done) => {
    const exchange = meter.begin(request.raw, reply.raw);
    const { url } = request.routeOptions ?? {};
    if (!request.is404 && url !== undefined) exchange.enter(request.method, url);
    done();
  });
  app.addHook('onError', (request, _reply, error, done) => {
    if (!(error.statusCode < 500)) request.raw[EXCHANGE]?.failed();
    done();
  });
}

// Fastify: its hooks are for the whole application, not for routes of the plugin.
fastifyMeter[Symbol.for('skip-override')] = true;
fastifyMeter[Symbol.for('fastify.display-name')] = 'talea';

/** Middleware for Koa: add it before all others. */
function koaMeter(options) {
  const meter = new Meter(options);
  return async (context, next) => {
    const exchange = meter.begin(context.req, context.res);
    exchange.findRoute = () => {
      const template = context._matchedRoute;
      return template === undefined ? undefined : [context.method, String(template)];
    };
    try {
      await next();
    } catch (error) {
      if (!(error.status < 500)) exchange.failed();
      throw error;
    }
  };
}

/** Middleware for Hono: `app.use(honoMeter())` before all others. */
function honoMeter(options) {
  const meter = new Meter(options);
  return async (context, next) => {
    const { incoming, outgoing } = context.env ?? {};
    const isOfNode = incoming !== undefined && outgoing !== undefined;
    const { method } = context.req;
    const exchange = isOfNode ? meter.begin(incoming, outgoing) : meter.beginOther(method);
    exchange.findRoute = () => {
      // The last one that is no middleware took the request.
      const handler = context.req.matchedRoutes.findLast((route) => route.method !== 'ALL' || !route.path.endsWith('*'));
      return handler === undefined ? undefined : [method, handler.path];
    };
    await next();
    if (context.error) exchange.failed();
    if (isOfNode) return;
    exchange.head(context.res.status);
    exchange.end(true);
  };
}

/**
 * Answers a request of Node with the page of a registry, or without one with that of the whole region, in the
 * format that the request accepts. It is sent in pieces, as the client reads. Resolves when it is sent or the client left.
 */
async function serveMetrics(request, response, registry) {
  const { contentType, body } =
    registry === undefined
      ? await renderRegion(request.headers.accept ?? '')
      : { contentType: registry.contentType, body: await registry.metricsAsBuffer() };
  response.writeHead(200, { 'Content-Type': contentType, 'Content-Length': body.length });
  if (request.method !== 'HEAD') await send(body, response);
  response.end();
}

/** Sends a page in pieces, between which other requests have their turn, until it is sent or the client has left. */
async function send(page, response) {
  // Of http2 the stream is destroyed.
  let isClosed = response.destroyed || response.stream?.destroyed;
  const closed = new Promise((resolve) => response.once('close', resolve)).then(() => (isClosed = true));
  for (let at = 0; at < page.length && !isClosed; at += PIECE) {
    const hasRoom = response.write(page.subarray(at, at + PIECE));
    if (!hasRoom) await Promise.race([closed, new Promise((resolve) => response.once('drain', resolve))]);
    await turn();
  }
}

module.exports = {
  expressErrors,
  expressMeter,
  fastifyMeter,
  honoMeter,
  koaMeter,
  meterServer,
  serveMetrics,
};
