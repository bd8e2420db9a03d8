// The page of a real agent, beside the real items API, as both were built by `cargo build`: what it shows is what
// a scrape counts, also after the service was killed and the agent started anew. Without the programs it says so.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { launch } from './browser.mjs';

const target = process.env.CARGO_TARGET_DIR ?? fileURLToPath(new URL('../../target', import.meta.url));
const programs = `${target}/${process.env.PROFILE ?? 'debug'}`;
const SOON = 60_000;

/** The first line of a program's output that has a match, and the program. */
async function started(program, args, env, pattern) {
  const child = spawn(`${programs}/${program}`, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines = [];
  const found = new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        lines.push(line);
        const match = pattern.exec(line);
        if (match) resolve(match[1]);
      });
    }
    child.once('exit', () => reject(new Error(`${program} ended: ${lines.join('\n')}`)));
  });
  return { child, found: await found };
}

async function ended(child, signal) {
  if (child.exitCode === null && child.signalCode === null) {
    child.kill(signal);
    await once(child, 'exit');
  }
}

/** Asks the service until it is stopped; what was answered with 200. */
function load(address) {
  const state = { over: false, answered: 0 };
  state.done = (async () => {
    while (!state.over) {
      const answer = await fetch(`http://${address}/api/items`).catch(() => null);
      const read = await answer?.text().catch(() => null);
      if (answer?.status === 200 && read !== null) state.answered += 1;
    }
  })();
  return state;
}

describe('the page of a real agent', { skip: !existsSync(`${programs}/items-api`) && 'no target/debug/items-api' }, () => {
  const folder = mkdtempSync('/dev/shm/talea-page-');
  const region = `${folder}/shop.talea`;
  let browser, page, service, agent, port;
  const faults = [];

  const startService = async () => {
    service = await started(
      'items-api',
      ['--listen', '127.0.0.1:0', '--metrics-listen', '127.0.0.1:0'],
      { TALEA_REGION: region, DATABASE_URL: '' },
      /items on http:\/\/([^/]+)/,
    );
  };
  const startAgent = async (listen) => {
    const args = ['serve', region, '--history', `${folder}/history`, '--listen', listen];
    agent = await started('talea', args, {}, /listening on http:\/\/([^/]+)/);
    port = agent.found.split(':')[1];
  };
  /** The requests that a scrape counts: of their durations, as the page. A kill can come between two metrics. */
  const scraped = async () => {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const counts = text.matchAll(/^http_request_duration_seconds_count\{.*\} (\d+)$/gm);
    return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
  };
  /** The requests that the page has of all the time that it shows. */
  const shown = () =>
    page.evaluate(async () => {
      const past = await (await fetch('live/range?from=0&bins=1')).json();
      return past.points.flatMap((point) => point.e).reduce((sum, endpoint) => sum + endpoint[1], 0);
    });
  const until = async (what, holds) => {
    const began = Date.now();
    while (!(await holds())) {
      assert.ok(Date.now() - began < SOON, `waited for: ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };

  before(async () => {
    await startService();
    await startAgent('127.0.0.1:0');
    browser = await launch();
    page = await browser.context.newPage();
    page.setDefaultTimeout(SOON);
    page.on('pageerror', (error) => faults.push(error.message));
    page.on('console', (message) => faults.push(message.text()));
    page.on('request', (request) => {
      if (new URL(request.url()).hostname !== '127.0.0.1') faults.push(request.url());
    });
  });
  after(async () => {
    await browser?.close();
    await ended(agent.child, 'SIGKILL');
    await ended(service.child, 'SIGKILL');
    rmSync(folder, { recursive: true });
  });

  test('the requests that it shows are those that a scrape counts', async () => {
    await page.goto(`http://127.0.0.1:${port}/#endpoints`);
    await page.locator('.state.good').waitFor();
    const clients = load(service.found);
    await page.locator('table.endpoints tbody tr', { hasText: 'GET /api/items' }).first().waitFor();
    await until('some requests', () => clients.answered > 100);
    clients.over = true;
    await clients.done;
    assert.equal(await scraped(), clients.answered);
    await until('the last reading', async () => (await shown()) === clients.answered);
    assert.deepEqual(faults, []);
  });

  test('a service that is killed under load is marked, and its last second is there', async () => {
    const clients = load(service.found);
    const before = clients.answered;
    await until('some requests', () => clients.answered > before + 100);
    await ended(service.child, 'SIGKILL');
    clients.over = true;
    await clients.done;
    await page.getByText('found gone').first().waitFor();
    const counted = await scraped();
    await until('the last reading', async () => (await shown()) === counted);
    const postmortem = await browser.context.newPage();
    postmortem.on('console', (message) => faults.push(message.text()));
    await postmortem.goto(`http://127.0.0.1:${port}/postmortem`);
    await postmortem.getByText('A process was found dead at').waitFor();
    // A long name leaves room for the numbers, and paper has no columns to scroll to.
    await postmortem.emulateMedia({ media: 'print' });
    const [share, overflow] = await postmortem.evaluate(() => {
      const name = document.querySelector('h2 ~ .scroll tbody th');
      name.textContent = '/long'.repeat(60);
      const box = name.closest('.scroll');
      return [name.offsetWidth / box.clientWidth, getComputedStyle(box).overflowX];
    });
    assert.ok(share < 0.5 && overflow === 'visible', `${share} ${overflow}`);
    await postmortem.close();
    assert.deepEqual(faults, []);
  });

  test('an agent and a service that are started anew are followed', async () => {
    const counted = await scraped();
    const address = `127.0.0.1:${port}`;
    await ended(agent.child, 'SIGTERM');
    await page.getByText(/^(reconnecting|stopped)/).first().waitFor();
    await startService();
    await startAgent(address);
    await page.locator('.state.good').waitFor();
    assert.equal(await shown(), counted, 'the history outlives the agent');
    const clients = load(service.found);
    await until('more requests', async () => (await shown()) > counted);
    clients.over = true;
    await clients.done;
    const all = await scraped();
    await until('the last reading', async () => (await shown()) === all);
    // The browser itself says that it was refused while there was no agent.
    const own = faults.filter((fault) => !/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET/.test(fault));
    assert.deepEqual(own, []);
  });

  test('a region that is replaced by another is followed', async () => {
    const counted = await shown();
    await ended(service.child, 'SIGKILL');
    rmSync(region);
    await startService();
    await until('the new region', async () => (await scraped()) === 0);
    // A reading has it before it counts: one that counted more than the old one by then would look like that.
    const read = async () => (await (await fetch(`http://127.0.0.1:${port}/live/families`)).json()).t;
    const before = await read();
    await until('a reading', async () => (await read()) > before);
    const clients = load(service.found);
    await until('some requests', () => clients.answered > 100);
    clients.over = true;
    await clients.done;
    // The new region counts from 0, the page goes on.
    assert.equal(await scraped(), clients.answered);
    await until('the last reading', async () => (await shown()) === counted + clients.answered);
    await page.locator('.state.good').waitFor();
  });
});
