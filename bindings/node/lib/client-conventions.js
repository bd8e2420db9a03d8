'use strict';

// HTTP metrics that are named and labelled as by two middlewares around `prom-client`, so that dashboards which were
// made for them stay. They are metrics of the registry, as a user's own.

const { performance } = require('node:perf_hooks');

const Gauge = require('./gauge');
const Histogram = require('./histogram');
const Summary = require('./summary');

const DURATION = 'http_request_duration_seconds';
const UNMATCHED = '_unmatched';

/** The status of a request whose client left before the head of the response. */
const CLIENT_LEFT = 499;

/** Methods that fastify-metrics does not record. */
const LEFT_OUT = new Set(['HEAD', 'OPTIONS', 'TRACE', 'CONNECT']);

/** Each registers its metrics: those of durations, and a function from a request to their labels. */
const conventions = {
  'express-prom-bundle': ({ registry, prefix, buckets, constantLabels, includeMethod = false, includePath = false }) => {
    const registers = [registry];
    const included = [...(includeMethod ? ['method'] : []), ...(includePath ? ['path'] : [])];
    const labelNames = ['status_code', ...included, ...Object.keys(constantLabels)];
    const durations = new Histogram({
      name: `${prefix}${DURATION}`,
      help: `duration histogram of http responses labeled with: ${labelNames.join(', ')}`,
      labelNames,
      buckets: buckets ?? [0.003, 0.03, 0.1, 0.3, 1.5, 10],
      registers,
    });
    new Gauge({ name: `${prefix}up`, help: '1 = up, 0 = not up', registers }).set(1);
    return {
      durations: [durations],
      labelsOf({ method, template, status }) {
        const labels = { status_code: status, ...constantLabels };
        if (includeMethod) labels.method = method;
        if (includePath) labels.path = template;
        return labels;
      },
    };
  },

  'fastify-metrics': ({ registry, prefix, buckets, constantLabels }) => {
    const registers = [registry];
    const labelNames = ['method', 'route', 'status_code', ...Object.keys(constantLabels)];
    const help = 'request duration in seconds';
    // Its types name other buckets and percentiles, which it does not use.
    const durations = [
      new Histogram({ name: `${prefix}${DURATION}`, help, labelNames, registers, ...(buckets && { buckets }) }),
      new Summary({ name: `${prefix}http_request_summary_seconds`, help: `${help} summary`, labelNames, registers }),
    ];
    return {
      durations,
      labelsOf({ method, template, status }, isComplete) {
        if (!isComplete || template === UNMATCHED || LEFT_OUT.has(method)) return undefined;
        return { method, route: template, status_code: status, ...constantLabels };
      },
    };
  },
};

function isOfClient(convention) {
  return Object.hasOwn(conventions, convention);
}

/** Records requests by one of these conventions; with the methods of the native `HttpMeter`. */
class ClientMeter {
  #durations;
  #labelsOf;

  constructor(options) {
    const { durations, labelsOf } = conventions[options.convention](options);
    this.#durations = durations;
    this.#labelsOf = labelsOf;
  }

  kind(method) {
    return method;
  }

  arrived(method) {
    return { method, template: undefined, status: CLIENT_LEFT, begun: performance.now() };
  }

  route(_method, template) {
    return template;
  }

  enter(request, template) {
    request.template ??= template;
  }

  head(request, route, status) {
    this.enter(request, route || UNMATCHED);
    request.status = status;
  }

  failed(request) {
    this.enter(request, UNMATCHED);
  }

  end(request, isComplete) {
    this.enter(request, UNMATCHED);
    const labels = this.#labelsOf(request, isComplete);
    if (labels === undefined) return;
    const seconds = (performance.now() - request.begun) / 1e3;
    for (const metric of this.#durations) metric.observe(labels, seconds);
  }
}

module.exports = { ClientMeter, isOfClient };
