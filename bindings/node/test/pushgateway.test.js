'use strict';

// Claims about pages that are pushed.

const assert = require('node:assert');
const { once } = require('node:events');
const http = require('node:http');
const { test } = require('node:test');
const { gunzipSync } = require('node:zlib');

const talea = require('..');

const PAGE = '# HELP pushed h\n# TYPE pushed gauge\npushed 3\n';

/** A gateway that keeps its requests, and answers with a status, or with null never. */
async function gateway(t, status = 200) {
  const requests = [];
  const server = http.createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray());
    requests.push({ method: request.method, url: request.url, headers: request.headers, body });
    if (status !== null) response.writeHead(status).end('why');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const registry = new talea.Registry();
  new talea.Gauge({ name: 'pushed', help: 'h', registers: [registry] }).set(3);
  return { requests, registry, address: `127.0.0.1:${server.address().port}` };
}

const cases = {
  'push replaces a group': { call: 'push', params: { jobName: 'a&b', groupings: { key: 'v/1' } }, is: 'PUT /metrics/job/a%26b/key/v%2F1' },
  'pushAdd adds to a group': { call: 'pushAdd', params: { jobName: 'a' }, is: 'POST /metrics/job/a' },
  'delete has no body': { call: 'delete', params: { jobName: 'a' }, is: 'DELETE /metrics/job/a', body: '' },
  'the address may have a path': { path: '/path/', call: 'push', params: { jobName: 'a' }, is: 'PUT /path/metrics/job/a' },
  'options may be null': { options: null, call: 'push', params: { jobName: 'a' }, is: 'PUT /metrics/job/a' },
  'no job is needed if so configured': { options: { requireJobName: false }, call: 'pushAdd', is: 'POST /metrics' },
  'the address may have a user': {
    user: 'me:secret@',
    call: 'push',
    params: { jobName: 'a' },
    is: 'PUT /metrics/job/a',
    headers: { authorization: `Basic ${btoa('me:secret')}` },
  },
  'a page is compressed if its header says so': {
    options: { headers: { 'Content-Encoding': 'gzip', other: '1' } },
    call: 'push',
    params: { jobName: 'a' },
    is: 'PUT /metrics/job/a',
    headers: { 'content-encoding': 'gzip', other: '1' },
  },
  'delete says nothing of compression': {
    options: { headers: { 'Content-Encoding': 'gzip', other: '1' } },
    call: 'delete',
    params: { jobName: 'a' },
    is: 'DELETE /metrics/job/a',
    headers: { 'content-encoding': undefined, other: '1' },
    body: '',
  },
};

for (const [what, { user = '', path = '', options, call, params, is, headers = {}, body = PAGE }] of Object.entries(cases)) {
  test(what, async (t) => {
    const { requests, registry, address } = await gateway(t);
    const pushgateway = new talea.Pushgateway(`http://${user}${address}${path}`, options, registry);
    assert.strictEqual((await pushgateway[call](params)).body, 'why');
    const [request] = requests;
    assert.strictEqual(`${request.method} ${request.url}`, is);
    for (const [name, value] of Object.entries(headers)) assert.strictEqual(request.headers[name], value);
    const isCompressed = request.headers['content-encoding'] === 'gzip';
    assert.strictEqual((isCompressed ? gunzipSync(request.body) : request.body).toString(), body);
  });
}

test('a registry may stand in the place of options', async (t) => {
  const { requests, registry, address } = await gateway(t);
  await new talea.Pushgateway(`http://${address}`, registry).push({ jobName: 'a' });
  assert.strictEqual(requests[0].body.toString(), PAGE);
});

test('a push without the name of a job throws', () => {
  for (const call of ['push', 'pushAdd', 'delete']) {
    assert.throws(() => new talea.Pushgateway('http://127.0.0.1:9')[call](), /Missing jobName parameter/);
  }
});

test('a push that fails, or is not answered, rejects', async (t) => {
  const refused = await gateway(t, 400);
  const options = { timeout: 10 };
  await assert.rejects(new talea.Pushgateway(`http://${refused.address}`, refused.registry).push({ jobName: 'a' }), {
    message: 'push failed with status 400, why',
  });
  const silent = await gateway(t, null);
  await assert.rejects(new talea.Pushgateway(`http://${silent.address}`, options, silent.registry).push({ jobName: 'a' }), {
    message: 'Pushgateway request timed out',
  });
  const registry = { metricsAsBuffer: async () => Promise.reject(new Error('no page')) };
  await assert.rejects(new talea.Pushgateway(`http://${silent.address}`, {}, registry).push({ jobName: 'a' }), {
    message: 'no page',
  });
});
