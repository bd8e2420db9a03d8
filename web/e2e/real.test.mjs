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
    // Endpoints come before the table of seconds, and charts are side by side without one that stands alone.
    const headings = await postmortem.locator('h2').allInnerTexts();
    assert.deepEqual(headings.slice(0, 3), ['The last seconds', 'By endpoint', 'Second by second']);
    await postmortem.locator('figcaption', { hasText: 'Memory' }).waitFor();
    for (const width of [1280, 900, 390]) {
      await postmortem.setViewportSize({ width, height: 800 });
      const [wide, alone] = await postmortem.evaluate(() => {
        const rights = [...document.querySelectorAll('.grid > *')].map((card) => card.getBoundingClientRect().right);
        const right = document.querySelector('.grid').getBoundingClientRect().right;
        return [document.documentElement.scrollWidth, Math.abs(rights.at(-1) - right) > 2];
      });
      assert.deepEqual([wide, alone], [width, false], `at ${width}`);
    }
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

  test('one of two services has its own requests alone, and the link says which', async () => {
    const directory = mkdtempSync('/dev/shm/talea-page-');
    const services = [];
    for (const name of ['shop', 'shop b & c']) {
      services.push(
        await started(
          'items-api',
          ['--listen', '127.0.0.1:0', '--metrics-listen', '127.0.0.1:0'],
          { TALEA_REGION: `${directory}/${name}.talea`, DATABASE_URL: '' },
          /items on http:\/\/([^/]+)/,
        ),
      );
    }
    const both = await started('talea', ['serve', '--dir', directory, '--listen', '127.0.0.1:0'], {}, /page is at (\S+)/);
    const view = await browser.context.newPage();
    view.setDefaultTimeout(SOON);
    try {
      const names = () => view.locator('table.endpoints tbody tr').allInnerTexts();
      await view.goto(both.found);
      await view.locator('.state.good').waitFor();
      // The first page of a region has no increase.
      await until('both regions', async () => (await view.getByLabel('Service').locator('option').count()) === 3);
      const clients = services.map(({ found }) => load(found));
      await until('rows of both', async () => (await names()).length >= 2);
      await until('some requests', () => clients.every(({ answered }) => answered > 50));
      await view.getByLabel('Service').selectOption('2');
      await until('one service', async () => (await names()).length > 0 && !(await names()).join().includes('shop\n'));
      assert.equal(new URLSearchParams(new URL(view.url()).hash.split('?')[1]).get('service'), 'shop b & c');
      for (const client of clients) client.over = true;
      for (const client of clients) await client.done;
      const counted = async () =>
        view.evaluate(async () => {
          const past = await (await fetch('live/range?from=0&bins=1')).json();
          const of = new Map(past.endpoints.map(([id, , , region]) => [id, region]));
          const sums = { shop: 0, 'shop b & c': 0 };
          for (const [id, count] of past.points.flatMap(({ e }) => e)) sums[of.get(id)] += count;
          return Object.values(sums);
        });
      const expected = String(clients.map(({ answered }) => answered));
      await until('each has its own', async () => String(await counted()) === expected);
      // Its families, and the quantiles of its histogram.
      await view.goto(`${both.found}#explorer?${new URLSearchParams({ service: 'shop b & c', family: 'http_request_duration_seconds' })}`);
      await view.getByRole('img', { name: /^Quantiles of http_request_duration_seconds, of late: p50 / }).waitFor();
      await view.getByText('histogram_quantile(0.99, sum by (le) (rate(http_request_duration_seconds_bucket{region="shop b & c"}[1m])))').waitFor();
      assert.deepEqual(faults.filter((fault) => !/ERR_/.test(fault)), []);
    } finally {
      await view.close();
      for (const { child } of [both, ...services]) await ended(child, 'SIGKILL');
      rmSync(directory, { recursive: true });
    }
  });
});
