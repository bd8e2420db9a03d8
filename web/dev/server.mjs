// A server that speaks the protocol of the live page with made-up traffic: for development, and for the
// tests in a browser.

import { readFile } from 'node:fs/promises';
import { createServer, request as ask } from 'node:http';
import { fileURLToPath } from 'node:url';

import { FAMILIES, Traffic } from './traffic.mjs';

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
};
export const PAGE = fileURLToPath(new URL('../../crates/talea-agent/page/', import.meta.url));

/**
 * Options: `port`, `page` (the folder of the built page), `upstream` (a server that has the data), `run`, `title`, `study` (a Study, or a function
 * of the time that gives one), `agentFaults`, and those of `Traffic`.
 */
export class Server {
  constructor(options = {}) {
    this.options = options;
    this.traffic = options.traffic ?? new Traffic(options);
    this.run = options.run ?? Math.random().toString(16).slice(2);
    this.page = options.page ?? PAGE;
    this.marks = this.traffic.marks();
    this.changes = [];
    this.processes = options.processes ?? this.traffic.processes();
    this.connections = new Set();
    this.watchers = new Set();
    this.requests = [];
    this.refusals = 0;
  }

  async start() {
    this.http = createServer((request, response) => {
      this.answer(request, response).catch((error) => {
        response.statusCode = 500;
        response.end(String(error));
      });
    });
    await new Promise((resolve, reject) => {
      this.http.once('error', reject);
      this.http.listen(this.port ?? this.options.port ?? 0, '127.0.0.1', resolve);
    });
    this.port = this.http.address().port;
    this.url = `http://127.0.0.1:${this.port}/`;
    this.timer = setInterval(() => this.tick(Date.now()), 1000);
    return this;
  }

  /** Ends all connections; `start` listens at the same port again. */
  async stop() {
    clearInterval(this.timer);
    for (const response of [...this.connections, ...this.watchers.keys()]) response.destroy?.();
    this.connections.clear();
    this.watchers.clear();
    this.http.closeAllConnections();
    await new Promise((resolve) => this.http.close(resolve));
  }

  tick(now) {
    if (this.traffic.isGap(Math.floor(now / 1000) * 1000) || this.isSilent) return;
    const known = this.traffic.bounds.length;
    const point = this.traffic.point(now);
    const fresh = this.traffic.buckets().slice(known);
    if (fresh.length) point.nb = fresh;
    const study = this.study(now);
    if (study) addClients(point);
    this.send('point', point);
    if (study) this.send('study', study);
    for (const [response, family] of this.watchers) {
      const v = family.series.map((_, id) => [id, family.value(point.t, id)]);
      write(response, 'values', { t: point.t, s: 1, v: v.filter(([, value]) => value !== 0) });
    }
  }

  /** An endpoint is otherwise than usual from now on, or as usual if there is no text. */
  change(endpoint, quantity, text) {
    const now = Date.now();
    this.changes = this.changes.filter((it) => it.endpoint !== endpoint);
    if (text) this.changes.push({ endpoint, quantity, since: now, text });
    const mark = { t: now, kind: text ? 'changed' : 'back', of: endpoint, text: text ?? 'is as usual again' };
    this.marks.push(mark);
    this.send('point', { ...this.traffic.point(now), marks: [mark] });
    this.send('changes', this.changes);
  }

  /** A process dies now, and another one takes its place. */
  kill(pid = 4712, kind = 'died') {
    const now = Date.now();
    const process = this.processes.find((it) => it.pid === pid);
    Object.assign(process, { alive: false, died: now });
    const marks = [{ t: now, kind, of: 'shop', text: `Process ${pid} died (SIGKILL).` }];
    this.marks.push(...marks);
    this.send('point', { ...this.traffic.point(now), marks });
    this.send('processes', this.processes);
  }

  send(event, data) {
    for (const response of this.connections) write(response, event, data);
  }

  study(now) {
    const { study } = this.options;
    return typeof study === 'function' ? study(now, this.traffic.born) : (study ?? null);
  }

  hello() {
    const now = Date.now();
    return {
      version: 1,
      run: this.run,
      program: 'talea 0.1.0',
      title: this.options.title ?? 'shop',
      step: 1,
      seconds: 3600,
      minutes: 86400,
      oldest: now - 86400e3,
      now,
      endpoints: this.traffic.table(),
      buckets: this.traffic.buckets(),
      processes: this.processes,
      marks: this.marks,
      changes: this.changes,
      faults: this.options.faults ?? [],
      agentFaults: this.options.agentFaults ?? [],
      regionLabel: this.traffic.services.length ? 'region' : null,
      traceUrl: this.options.traceUrl ?? null,
      study: this.study(now),
      history: !this.options.study,
    };
  }

  async answer(request, response) {
    const url = new URL(request.url, this.url);
    const path = url.pathname.slice(1);
    this.requests.push(url.pathname + url.search);
    if (this.options.upstream && path.startsWith('live/')) return this.forward(request, response);
    if (path === 'live/events') return this.events(request, response);
    if (path === 'live/series/events') return this.watch(url, request, response);
    if (path === 'live/range') return this.range(url, response);
    if (path === 'live/families') {
      const families = (this.options.families ?? FAMILIES).map(({ name, kind, help, labels, series }) => ({
        name,
        kind,
        help,
        labels,
        series: series.length,
      }));
      return json(response, { t: Date.now(), families: families.sort((a, b) => (a.name < b.name ? -1 : 1)) });
    }
    if (path === 'live/series') return this.series(url, response);
    if (path === 'live/exemplars') return json(response, { t: Date.now(), exemplars: this.options.exemplars ?? [] });
    if (path === 'postmortem') {
      response.setHeader('Content-Type', TYPES.html);
      return response.end(
        '<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>Postmortem</title><h1>Postmortem</h1>',
      );
    }
    const file = path || 'index.html';
    if (!/^(index\.html|page\.(js|css))$/.test(file)) {
      response.statusCode = 404;
      return response.end('There is no such page.\n');
    }
    const bytes = await readFile(`${this.page}/${file}`);
    response.setHeader('Content-Type', TYPES[file.split('.').pop()]);
    response.setHeader('Content-Security-Policy', POLICY);
    response.setHeader('Cache-Control', 'no-cache');
    response.setHeader('X-Content-Type-Options', 'nosniff');
    return response.end(bytes);
  }

  /** Lets a real server answer, whose page is another one. */
  forward(request, response) {
    const asked = ask(new URL(request.url, this.options.upstream), (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    asked.on('error', () => response.destroy());
    response.on('close', () => asked.destroy());
    asked.end();
  }

  events(request, response) {
    if (this.refusals > 0) {
      this.refusals -= 1;
      response.writeHead(503, { 'Retry-After': '1' });
      return response.end('Too many connections.\n');
    }
    stream(response);
    write(response, 'hello', this.hello());
    this.connections.add(response);
    request.on('close', () => this.connections.delete(response));
    return undefined;
  }

  watch(url, request, response) {
    const family = FAMILIES.find(({ name }) => name === url.searchParams.get('family'));
    if (!family) return refuse(response, 'There is no such family.');
    stream(response);
    write(
      response,
      'series',
      family.series.map((labels, id) => ({ id, labels })),
    );
    this.watchers = new Map(this.watchers).set(response, family);
    request.on('close', () => this.watchers.delete(response));
    return undefined;
  }

  span(url) {
    const from = Number(url.searchParams.get('from'));
    const to = Number(url.searchParams.get('to') ?? Date.now());
    const bins = Number(url.searchParams.get('bins') ?? 240);
    const isFit = Number.isFinite(from) && to > from && bins >= 1 && bins <= 480;
    return isFit ? { from, to: Math.min(to, Math.floor(Date.now() / 1000) * 1000), wanted: to, bins } : null;
  }

  range(url, response) {
    const span = this.span(url);
    if (!span) return refuse(response, 'The range cannot be read: from, to and bins are numbers.');
    const { from, to, wanted, bins } = span;
    const bin = (wanted - from) / bins / 1000;
    const points = this.traffic.range(from, wanted, bins, to);
    if (this.options.study || url.searchParams.has('family')) points.forEach(addClients);
    return json(response, {
      run: this.run,
      from,
      to: wanted,
      bin,
      points,
      endpoints: this.traffic.table(),
      buckets: this.traffic.buckets(),
      marks: this.marks.filter(({ t }) => t >= from && t <= wanted),
    });
  }

  series(url, response) {
    const family = FAMILIES.find(({ name }) => name === url.searchParams.get('family'));
    const span = this.span(url);
    if (!family || !span) return refuse(response, 'There is no such family.');
    const bin = (span.wanted - span.from) / span.bins / 1000;
    const times = [];
    for (let n = 1; n <= span.bins; n += 1) {
      const t = Math.floor((span.from + n * bin * 1000) / 1000) * 1000;
      if (t <= span.to && !this.traffic.isGap(t) && t !== times.at(-1)) times.push(t);
    }
    const factor = family.kind === 'gauge' ? 1 : Math.max(1, Math.round(bin));
    const shown = family.series.slice(0, 100);
    return json(response, {
      family: family.name,
      kind: family.kind,
      bin,
      times,
      lengths: times.map(() => Math.max(1, Math.round(bin))),
      more: family.series.length - shown.length,
      series: shown.map((labels, id) => ({ id, labels, values: times.map((t) => family.value(t, id) * factor) })),
    });
  }
}

/** Adds the clients of a study: the requests to the first endpoint. */
function addClients(point) {
  if (!point.e.length) return;
  const [, count, sum, , statuses, buckets, outcomes] = point.e[0];
  point.c = [-1, count, sum * 1.2, 10, statuses, buckets, outcomes];
}

function stream(response) {
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
}

function write(response, event, data) {
  response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

function json(response, data) {
  response.setHeader('Content-Type', 'application/json');
  response.setHeader('Cache-Control', 'no-store');
  response.end(JSON.stringify(data));
}

function refuse(response, text) {
  response.statusCode = 400;
  response.setHeader('Content-Type', 'text/plain; charset=utf-8');
  response.end(`${text}\n`);
}
