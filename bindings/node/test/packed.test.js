'use strict';

// Claims about the packed packages, as npm installs them in a clean folder.

const assert = require('node:assert');
const { spawn, spawnSync } = require('node:child_process');
const { copyFileSync, existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const path = require('node:path');
const { after, before, test } = require('node:test');

const { get, samples, until } = require('./support');
const { pack } = require('../scripts/pack');

const root = path.join(__dirname, '..');
const { devDependencies } = require('../package.json');
const folder = mkdtempSync(path.join(realpathSync(tmpdir()), 'talea-node-packed-'));

/** The environment of somebody who has no Rust, and no addon but the package's. */
const withoutRust = process.env.PATH.split(':').filter((one) => !existsSync(path.join(one, 'cargo')));
const env = { ...process.env, PATH: withoutRust.join(':') };
delete env.TALEA_ADDON;

function run(command, args, cwd = folder) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8', env });
  assert.strictEqual(status, 0, `${command} ${args.join(' ')}: ${stdout}${stderr}`);
  return stdout;
}

before(() => {
  const addon = process.env.TALEA_ADDON ?? path.join(root, 'talea.node');
  const [main, platform] = pack(folder, addon, ['linux', process.arch, 'glibc']);
  const wanted = Object.keys(devDependencies).filter((one) => /^(express|fastify)|nest|^rxjs$|^reflect-metadata$/.test(one));
  const { name } = require(path.join(folder, 'stage', 'platform', 'package.json'));
  const manifest = {
    private: true,
    dependencies: {
      talea: `file:${main}`,
      [name]: `file:${platform}`,
      ...Object.fromEntries(wanted.map((one) => [one, devDependencies[one]])),
    },
    overrides: { 'prom-client': `file:${main}`, '@prometheus-io/client': `file:${main}` },
  };
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify(manifest));
  // The packages of other platforms are not published yet; they are optional.
  run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--omit=dev']);
});

after(() => rmSync(folder, { recursive: true, force: true }));

test('the packed package counts without Rust, as both kinds of modules', () => {
  const program = `const { Counter, register } = TALEA;
    new Counter({ name: 'packed_total', help: 'h' }).inc();
    register.metrics().then((page) => process.stdout.write(page));`;
  for (const [end, load] of [['cjs', "const TALEA = require('talea');"], ['mjs', "import TALEA from 'talea';"]]) {
    writeFileSync(path.join(folder, `program.${end}`), load + program);
    assert.deepStrictEqual(samples(run(process.execPath, [`program.${end}`])), { packed_total: 1 });
  }
});

test('publint finds nothing to correct', () => {
  const publint = path.join(root, 'node_modules', '.bin', 'publint');
  run(process.execPath, [realpathSync(publint), '--strict', path.join(folder, 'stage', 'main')]);
});

/** Middlewares that people have, which load `prom-client`; each program says its port. */
const programs = {
  'express-prom-bundle': `
    const express = require('express');
    const bundle = require('express-prom-bundle');
    const app = express();
    app.use((bundle.default ?? bundle)({ includeMethod: true, includePath: true, promClient: { collectDefaultMetrics: {} } }));
    app.get('/items', (_request, response) => response.send('items'));
    const server = app.listen(0, '127.0.0.1', () => console.log(server.address().port));`,
  'fastify-metrics': `
    const fastify = require('fastify');
    const metrics = require('fastify-metrics');
    const app = fastify();
    (async () => {
      await app.register(metrics.default ?? metrics, { endpoint: '/metrics' });
      app.get('/items', async () => 'items');
      await app.listen({ port: 0, host: '127.0.0.1' });
      console.log(app.server.address().port);
    })();`,
};

/** Starts a program of the clean folder, whose region is a file. */
async function start(t, file) {
  const region = path.join('/dev/shm', `${path.basename(folder)}-${file}.talea`);
  t.after(() => rmSync(region, { force: true }));
  const child = spawn(process.execPath, [file, '0'], {
    cwd: folder,
    env: { ...env, TALEA_REGION: region },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  let said = '';
  child.stdout.on('data', (data) => (said += data));
  return { region, port: await until('it says its port', () => /^\d+$/m.exec(said)?.[0]) };
}

/** What another process shows of a region. */
function samplesOf(region) {
  const program = "require('talea').renderRegion().then(({ body }) => process.stdout.write(body))";
  const { stdout } = spawnSync(process.execPath, ['-e', program], {
    cwd: folder,
    env: { ...env, TALEA_REGION: region },
    encoding: 'utf8',
  });
  return samples(stdout);
}

for (const [name, program] of Object.entries(programs)) {
  test(`${name} counts in talea by npm's overrides, unmodified`, async (t) => {
    const file = `${name}.cjs`;
    writeFileSync(path.join(folder, file), program);
    const { port, region } = await start(t, file);
    for (let n = 0; n < 5; n++) await get(port, '/items');
    const { body, headers } = await get(port, '/metrics');
    assert.match(headers['content-type'], /^text\/plain/);
    const page = samples(body);
    const counted = Object.entries(page).filter(([one]) => /_count\{.*\/items/.test(one));
    assert.ok(counted.length > 0 && counted.every(([, value]) => value === 5), JSON.stringify(counted));
    assert.ok(page.process_cpu_seconds_total > 0);
    // It is there for others too.
    assert.strictEqual(samplesOf(region)[counted[0][0]], 5);
  });
}

test("the example of NestJS counts in talea by npm's overrides, and meters its routes", async (t) => {
  copyFileSync(path.join(root, 'examples', 'nest.js'), path.join(folder, 'nest.js'));
  const { port, region } = await start(t, 'nest.js');
  for (let n = 0; n < 5; n++) assert.strictEqual((await get(port, `/items/${n}`)).body, `{"item":"${n}"}`);
  const page = samples((await get(port, '/metrics')).body);
  assert.strictEqual(page['shop_orders_total{country="pe"}'], 5);
  assert.ok(page.process_cpu_seconds_total > 0);
  const shown = await until('the requests are recorded', () => {
    const all = samplesOf(region);
    return all['http_request_outcomes_total{method="GET",route="/items/:item",outcome="complete"}'] === 5 && all;
  });
  assert.strictEqual(shown['shop_orders_total{country="pe"}'], 5);
});
