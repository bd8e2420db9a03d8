'use strict';

const http = require('node:http');

const { ClientMeter, isOfClient } = require('./client-conventions');
const { HttpMeter } = require('./native');
const shared = require('./shared');

/** All methods of others, whose label is `_OTHER` too. */
const OTHER = '_OTHER';

const METHODS = new Set([...http.METHODS, 'ALL', '*', OTHER]);

/** The number of the route of requests that have no other. */
const UNMATCHED = 0;

/** What a request is recorded by, on the request object. */
const EXCHANGE = Symbol.for('talea.exchange');

/** The metrics of HTTP requests in the region of a registry. */
class Meter {
  #recorder;
  #kinds = new Map();
  /** By template and method. */
  #routes = new Map();

  constructor(options = {}) {
    const { registry = shared.register, convention = 'prometheus', prefix = '', detailed = false } = options;
    const { statusCodes = false, buckets, constantLabels = {} } = options;
    this.detailed = detailed;
    if (isOfClient(convention)) {
      this.#recorder = new ClientMeter({ ...options, registry, prefix, constantLabels });
      return;
    }
    this.#recorder = new HttpMeter(registry._region.native, {
      convention,
      prefix,
      detailed,
      statusCodes,
      buckets,
      constantLabels: Object.entries(constantLabels).map(([name, value]) => ({ name, value: String(value) })),
    });
  }

  /**
   * Begins to record a request of `node:http` or `node:http2`, until its response is closed. If a meter around
   * this one records it, returns that one's exchange.
   */
  begin(request, response) {
    if (request[EXCHANGE] !== undefined) return request[EXCHANGE];
    const length = Number(request.headers['content-length'] ?? 0) || 0;
    const isHttps = Boolean(request.socket?.encrypted);
    const kind = this.#kind(request.method, request.httpVersion, isHttps);
    const exchange = new Exchange(this.#recorder, this, this.#recorder.arrived(kind, length));
    request[EXCHANGE] = exchange;
    exchange.watch(response);
    return exchange;
  }

  /** A request that is not of Node's own servers, as those of Hono on other runtimes. */
  beginOther(method) {
    return new Exchange(this.#recorder, this, this.#recorder.arrived(this.#kind(method, '1.1', false), 0));
  }

  /** The number of requests of this method, version and scheme. */
  #kind(method, version, isHttps) {
    const key = version === '1.1' && !isHttps ? method : `${method} ${version} ${isHttps}`;
    return this.#kinds.get(key) ?? this.#newKind(key, method, version, isHttps);
  }

  #newKind(key, method, version, isHttps) {
    // A client of HTTP/2 may send any word.
    const known = METHODS.has(method) ? method : OTHER;
    if (known !== method) return this.#kind(known, version, isHttps);
    const number = this.#recorder.kind(method, version, isHttps);
    this.#kinds.set(key, number);
    return number;
  }

  /** The number of a route; declared when it is first met, or before by `declare`. */
  route(method, template) {
    let routes = this.#routes.get(template);
    if (routes === undefined) this.#routes.set(template, (routes = new Map()));
    return routes.get(method) ?? this.#newRoute(routes, method, template);
  }

  #newRoute(routes, method, template) {
    const known = METHODS.has(method) ? method : OTHER;
    if (known !== method && routes.has(known)) return routes.get(known);
    const number = this.#recorder.route(known === 'HEAD' ? 'GET' : known, template);
    routes.set(known, number);
    return number;
  }
}

/** A request from its arrival to its end. */
class Exchange {
  #recorder;
  #meter;
  #number;
  #hasHead = false;
  #bytes = 0;

  constructor(recorder, meter, number) {
    this.#recorder = recorder;
    this.#meter = meter;
    this.#number = number;
    this.findRoute = undefined;
  }

  /** The template of the route that takes the request. The first call counts. */
  enter(method, template) {
    this.#recorder.enter(this.#number, this.#meter.route(method, template));
  }

  /** The service's code failed. */
  failed() {
    this.#lookForRoute();
    this.#recorder.failed(this.#number);
  }

  head(status) {
    if (this.#hasHead) return;
    this.#hasHead = true;
    this.#recorder.head(this.#number, this.#foundRoute(), status);
  }

  end(isComplete) {
    // Of a request that is left before the head of its response.
    this.#lookForRoute();
    this.#recorder.end(this.#number, isComplete, this.#bytes);
  }

  /** Records the head, the bytes and the end of a response of Node. */
  watch(response) {
    const { writeHead } = response;
    response.writeHead = (...head) => {
      const result = writeHead.apply(response, head);
      this.head(response.statusCode);
      return result;
    };
    if (this.#meter.detailed) {
      for (const name of ['write', 'end']) {
        const write = response[name];
        response[name] = (...piece) => {
          this.#bytes += bytesOf(piece);
          return write.apply(response, piece);
        };
      }
    }
    response.once('close', () => {
      // Of http2, whose head may be sent without `writeHead`.
      if (response.headersSent) this.head(response.statusCode);
      this.end(response.writableFinished);
    });
  }

  #lookForRoute() {
    const route = this.#foundRoute();
    if (route !== UNMATCHED) this.#recorder.enter(this.#number, route);
  }

  /** The number of the route that is found now, or `UNMATCHED` at all later times. */
  #foundRoute() {
    const found = this.findRoute?.();
    this.findRoute = undefined;
    return found ? this.#meter.route(...found) : UNMATCHED;
  }
}

function bytesOf([piece, encoding]) {
  if (typeof piece === 'string') return Buffer.byteLength(piece, typeof encoding === 'string' ? encoding : 'utf8');
  return piece?.byteLength ?? 0;
}

module.exports = { EXCHANGE, Meter };
