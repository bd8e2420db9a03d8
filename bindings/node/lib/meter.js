'use strict';

const { ClientMeter, isOfClient } = require('./client-conventions');
const { HttpMeter } = require('./native');
const shared = require('./shared');

/** What a request is recorded by, on the request object. */
const EXCHANGE = Symbol.for('talea.exchange');

/** The metrics of HTTP requests in the region of a registry. */
class Meter {
  #recorder;
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
    const number = this.#recorder.arrived(request.method, request.httpVersion, isHttps, length);
    const exchange = new Exchange(this.#recorder, this, number);
    request[EXCHANGE] = exchange;
    exchange.watch(response);
    return exchange;
  }

  /** A request that is not of Node's own servers, as those of Hono on other runtimes. */
  beginOther(method) {
    return new Exchange(this.#recorder, this, this.#recorder.arrived(method, '1.1', false, 0));
  }

  /** The number of a route; declared when it is first met, or before by `declare`. */
  route(method, template) {
    const key = `${method} ${template}`;
    let number = this.#routes.get(key);
    if (number === undefined) {
      number = this.#recorder.route(method === 'HEAD' ? 'GET' : method, template);
      this.#routes.set(key, number);
    }
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
    this.#lookForRoute();
    this.#recorder.head(this.#number, status);
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
    const found = this.findRoute?.();
    if (found) this.enter(...found);
    this.findRoute = undefined;
  }
}

function bytesOf([piece, encoding]) {
  if (typeof piece === 'string') return Buffer.byteLength(piece, typeof encoding === 'string' ? encoding : 'utf8');
  return piece?.byteLength ?? 0;
}

module.exports = { EXCHANGE, Meter };
