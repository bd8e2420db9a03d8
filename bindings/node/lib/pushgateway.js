'use strict';

// By the names of the modules that tests of applications replace.
const http = require('http');
const https = require('https');
const { gzipSync } = require('node:zlib');

const shared = require('./shared');

/** Sends the page of a registry to a Pushgateway. */
class Pushgateway {
  constructor(url, options, registry = shared.register) {
    if (typeof options?.getSingleMetric === 'function') {
      registry = options;
      options = {};
    }
    const { requireJobName = true, ...request } = options ?? {};
    this.gatewayUrl = url;
    this.requestOptions = request;
    this.requireJobName = requireJobName;
    this.registry = registry;
  }

  pushAdd(params = {}) {
    return this.#push('POST', params, this.requestOptions.headers);
  }

  push(params = {}) {
    return this.#push('PUT', params, this.requestOptions.headers);
  }

  delete(params = {}) {
    const { 'Content-Encoding': _, ...headers } = this.requestOptions.headers ?? {};
    return this.#push('DELETE', params, this.requestOptions.headers && headers);
  }

  #push(method, params, headers) {
    if (this.requireJobName && !params.jobName) throw new Error('Missing jobName parameter');
    const options = { ...this.requestOptions, ...(headers && { headers }), method };
    return this.#send(this.#url(params), options);
  }

  #url({ jobName, groupings = {} }) {
    const url = new URL(this.gatewayUrl);
    const parts = Object.entries(groupings).flat().map(encodeURIComponent);
    const job = jobName ? ['/job', encodeURIComponent(jobName), ...parts].join('/') : '';
    url.pathname = `${url.pathname.replace(/\/$/, '')}/metrics${job}`;
    return url;
  }

  /** The request begins before the page is made. */
  async #send(url, options) {
    const library = url.protocol === 'https:' ? https : http;
    let request;
    const response = new Promise((resolve, reject) => {
      request = library.request(url, options, (resp) => {
        const pieces = [];
        resp.on('data', (piece) => pieces.push(piece));
        resp.on('end', () => {
          const body = Buffer.concat(pieces).toString();
          if (resp.statusCode >= 400) reject(new Error(`push failed with status ${resp.statusCode}, ${body}`));
          else resolve({ resp, body });
        });
      });
      request.on('error', reject);
      request.on('timeout', () => request.destroy(new Error('Pushgateway request timed out')));
    });
    this.#body(options).then((body) => request.end(body), (error) => request.destroy(error));
    return response;
  }

  async #body({ method, headers }) {
    if (method === 'DELETE') return undefined;
    const page = await this.registry.metricsAsBuffer();
    return headers?.['Content-Encoding'] === 'gzip' ? gzipSync(page) : page;
  }
}

module.exports = Pushgateway;
