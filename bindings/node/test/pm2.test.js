'use strict';

// Claims about a service under PM2, by the files of contrib/pm2.

const assert = require('node:assert');
const { spawnSync } = require('node:child_process');
const path = require('node:path');
const { test } = require('node:test');

const { folder, freePort, get, samples, until } = require('./support');

const root = path.join(__dirname, '..', '..', '..', 'contrib', 'pm2');
const modules = path.join(__dirname, '..', 'node_modules');

test('reloads, scaling and kills lose nothing, and every process shows all', async (t) => {
  const own = folder(t);
  const port = await freePort();
  const env = {
    ...process.env,
    PM2_HOME: path.join(own, 'pm2'),
    NODE_PATH: modules,
    NODE_OPTIONS: '',
    SHOP_REGION: path.join(own, 'shop.talea'),
    SHOP_PORT: String(port),
  };
  const pm2 = (...args) => {
    const program = path.join(modules, 'pm2', 'bin', 'pm2');
    const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], {
      cwd: root,
      env,
      encoding: 'utf8',
      timeout: 60_000,
    });
    assert.strictEqual(status, 0, `pm2 ${args.join(' ')}: ${stdout}${stderr}`);
    return stdout;
  };
  try {
    pm2('start', 'ecosystem.config.js');
    await holds(pm2, port);
  } finally {
    // While its folder is there.
    pm2('kill');
  }
});

/** Orders are placed all the time while processes come and go. */
async function holds(pm2, port) {
  let [answered, failed, isOver] = [0, 0, false];
  const pids = new Set();
  const order = async () => {
    try {
      // PM2 hands connections to processes that are dead; such a request may have counted, or not.
      pids.add(Number((await get(port, '/', { agent: false, timeout: 2_000 })).body));
      answered++;
    } catch {
      failed++;
    }
  };
  await until('it answers', async () => {
    await order();
    return answered > 0;
  });
  const clients = [0, 1].map(async () => {
    while (!isOver) await order();
  });
  const afterOrders = (count) => {
    const before = answered;
    return until('orders are answered', () => answered >= before + count);
  };
  await afterOrders(50);
  pm2('reload', 'shop');
  await afterOrders(50);
  pm2('scale', 'shop', '6');
  await afterOrders(50);
  pm2('scale', 'shop', '3');
  const [{ pid }] = JSON.parse(pm2('jlist'));
  process.kill(pid, 'SIGKILL');
  await afterOrders(50);
  isOver = true;
  await Promise.all(clients);

  assert.ok(pids.size > 4, `${pids.size} processes answered`);
  const shown = new Set();
  for (let n = 0; n < 12; n++) {
    shown.add(samples((await get(port, '/metrics', { agent: false })).body).shop_orders_total);
  }
  assert.strictEqual(shown.size, 1);
  const [orders] = shown;
  assert.ok(orders >= answered && orders <= answered + failed, `${orders}, where ${answered} were answered, ${failed} not`);
}
