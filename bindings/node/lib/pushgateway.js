'use strict';

const http = require('node:http');
const https = require('node:https');

const shared = require('./shared');

/** Sends the page of a registry to a Pushgateway. */
class Pushgateway {
  constructor(url, options = {}, registry = shared.register) {
    if (typeof options.getSingleMetric === 'function') {
      registry = options;
      options = {};
    }
    const { requireJobName = true, ...request } = options;
    this.gatewayUrl = url;
    this.requestOptions = request;
    this.requireJobName = requireJobName;
    this.registry = registry;
  }

  pushAdd(params = {}) {
    return this.#send('POST', params);
  }

  push(params = {}) {
    return this.#send('PUT', params);
  }

  delete(params = {}) {
    return this.#send('DELETE', params);
  }

  async #send(method, { jobName, groupings = {} }) {
    if (this.requireJobName && !jobName) throw new Error('Missing jobName parameter');
    const body = method === 'DELETE' ? undefined : await this.registry.metricsAsBuffer();
    const job = jobName ? `/job/${encodeURIComponent(jobName)}` : '';
    const groups = Object.entries(groupings).map(
      ([name, value]) => `/${encodeURIComponent(name)}/${encodeURIComponent(value)}`,
    );
    const base = new URL(this.gatewayUrl);
    const url = new URL(`${base.pathname.replace(/\/$/, '')}/metrics${job}${groups.join('')}`, base);
    return new Promise((resolve, reject) => {
      const library = url.protocol === 'https:' ? https : http;
      const request = library.request(url, { ...this.requestOptions, method }, (resp) => {
        const pieces = [];
        resp.on('data', (piece) => pieces.push(piece));
        resp.on('end', () => {
          const text = Buffer.concat(pieces).toString();
          if (resp.statusCode >= 400) reject(new Error(`push failed with status ${resp.statusCode}, ${text}`));
          else resolve({ resp, body: text });
        });
      });
      request.on('error', reject);
      request.on('timeout', () => request.destroy(new Error('Pushgateway request timed out')));
      request.end(body);
    });
  }
}

module.exports = Pushgateway;
