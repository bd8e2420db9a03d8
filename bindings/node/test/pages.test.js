'use strict';

// Claims about pages that are sent.

const assert = require('node:assert');
const { once } = require('node:events');
const http = require('node:http');
const http2 = require('node:http2');
const net = require('node:net');
const { test } = require('node:test');

const talea = require('..');
const { serveMetrics } = require('../http');
const { get, until } = require('./support');

const PIECE = 64 * 1024;

/** A registry whose page has 26 MB, more than sockets hold. */
function largeRegistry() {
  const registry = new talea.Registry();
  const counter = new talea.Counter({ name: 'large_total', help: 'h', labelNames: ['n'], registers: [registry] });
  for (let n = 0; n < 400; n++) counter.inc({ n });
  registry.setDefaultLabels({ long: 'x'.repeat(PIECE) });
  return registry;
}

/** Serves the page of a registry; the responses, and the number of those that are over. */
async function serve(t, registry) {
  const served = { responses: [], over: 0 };
  const server = http.createServer(async (request, response) => {
    if (request.url === '/other') return response.end('other');
    served.responses.push(response);
    await serveMetrics(request, response, registry);
    served.over++;
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  served.port = server.address().port;
  return served;
}

/** A client that asks for the page and does not read. */
function ask(port) {
  const socket = net.connect(port, '127.0.0.1').pause();
  socket.write('GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  return socket;
}

/** The first response, once the system takes no more bytes of it. */
async function fullResponse(served) {
  const response = await until('the page is sent', () => served.responses[0]);
  await until('the sockets are full', () => response.socket.writableLength > 0);
  return response;
}

test('a page waits in pieces for a client that does not read, and then reaches it whole', async (t) => {
  const registry = largeRegistry();
  const page = await registry.metricsAsBuffer();
  const served = await serve(t, registry);
  const client = ask(served.port);
  const response = await fullResponse(served);
  for (let n = 0; n < 20; n++) {
    assert.strictEqual((await get(served.port, '/other')).body, 'other');
    assert.ok(response.writableLength <= 2 * PIECE, `${response.writableLength} bytes wait`);
  }
  assert.strictEqual(served.over, 0);
  const received = await client.toArray();
  const bytes = Buffer.concat(received);
  assert.ok(bytes.subarray(bytes.indexOf('\r\n\r\n') + 4).equals(page));
  await until('it is over', () => served.over === 1);
});

test('serving ends when the client leaves in the middle of a page', async (t) => {
  const served = await serve(t, largeRegistry());
  const client = ask(served.port);
  await fullResponse(served);
  client.destroy();
  await until('it is over', () => served.over === 1);
});

test('serving ends when the client leaves before the page is made', async (t) => {
  const registry = new talea.Registry();
  const served = await serve(t, registry);
  const client = ask(served.port);
  const collect = () => once(served.responses[0], 'close');
  new talea.Gauge({ name: 'late', help: 'h', registers: [registry], collect });
  await until('the page is made', () => served.responses[0]);
  client.destroy();
  await until('it is over', () => served.over === 1);
});

test('HEAD has the length of the page, and no body', async (t) => {
  const registry = new talea.Registry();
  new talea.Counter({ name: 'one_total', help: 'h', registers: [registry] });
  const { port } = await serve(t, registry);
  const page = await get(port, '/metrics');
  const { status, headers, body } = await get(port, '/metrics', { method: 'HEAD' });
  assert.deepStrictEqual([status, Number(headers['content-length']), body], [200, page.body.length, '']);
});

test('node:http2 gets a page whole, or may leave in the middle of it', async (t) => {
  const registry = largeRegistry();
  const page = await registry.metricsAsBuffer();
  let over = 0;
  const server = http2.createServer(async (request, response) => {
    await serveMetrics(request, response, registry);
    over++;
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const client = http2.connect(`http://127.0.0.1:${server.address().port}`);
  t.after(() => {
    client.close();
    server.close();
  });
  const received = Buffer.concat(await client.request({ ':path': '/metrics' }).toArray());
  assert.ok(received.equals(page));
  const stream = client.request({ ':path': '/metrics' });
  await once(stream, 'response');
  stream.close(http2.constants.NGHTTP2_CANCEL);
  await until('both are over', () => over === 2);
});
