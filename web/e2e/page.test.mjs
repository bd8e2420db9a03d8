// The page in Chromium. With TALEA_PAGE_URL the tests that can do so run against that server, which is to
// have at least one endpoint that is requested all the time; the others, and all of them without it, run
// against the development server. The URL may have a user and a password, and a certificate that nobody signed.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { after, before, describe, test } from 'node:test';

import { Server } from '../dev/server.mjs';
import { study } from '../dev/study.mjs';
import { launch } from './browser.mjs';

const { url: outside, credentials } = parted(process.env.TALEA_PAGE_URL);
const folder = process.env.PAGE_FOLDER;
const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let browser;
const servers = [];

function parted(text) {
  if (!text) return {};
  const url = new URL(text);
  const credentials = url.username && {
    username: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
  };
  url.username = url.password = '';
  if (url.protocol === 'https:') process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
  return { url: url.href, credentials: credentials || undefined };
}

/** Asks the server as the page does. */
function ask(url) {
  const { username, password } = credentials ?? {};
  const headers = credentials && {
    Authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
  };
  return fetch(url, { headers });
}

async function serve(options = {}) {
  const server = await new Server({ ...(folder && { page: folder }), ...options }).start();
  servers.push(server);
  return server;
}

before(async () => {
  browser = await launch({ httpCredentials: credentials, ignoreHTTPSErrors: true });
});
after(async () => {
  await browser?.close();
  for (const server of servers) await server.stop();
});

/** Waits until something is so; it fails with the latest value, after more time than a busy machine needs. */
async function until(what, isSo, found) {
  const end = Date.now() + 60_000;
  let latest;
  for (;;) {
    latest = await found();
    if (isSo(latest)) return latest;
    assert.ok(Date.now() < end, `${what}: ${JSON.stringify(latest)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Opens a page that fails the test if it says anything to the console or asks another host. */
async function open(url, { size = { width: 1280, height: 900 }, theme = 'light', allowed = [], clock = false, script } = {}) {
  const page = await browser.context.newPage();
  // Its time goes on as usual, and can be set forward.
  if (clock) await page.clock.install();
  if (script) await page.addInitScript(script);
  page.setDefaultTimeout(60_000);
  page.faults = [];
  const { origin } = new URL(url);
  page.on('console', (message) => {
    if (!allowed.some((pattern) => pattern.test(message.text()))) page.faults.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => page.faults.push(`error: ${error}`));
  page.on('dialog', (dialog) => {
    page.faults.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on('request', (request) => {
    if (!request.url().startsWith('data:') && new URL(request.url()).origin !== origin)
      page.faults.push(`request: ${request.url()}`);
  });
  await page.emulateMedia({ colorScheme: theme });
  await page.setViewportSize(size);
  await page.goto(url);
  return page;
}

async function close(page) {
  assert.deepEqual(page.faults, []);
  await page.close();
}

const state = (page) => page.locator('.states').innerText();
const isLive = (page) =>
  until(
    'the page is live',
    (text) => text.startsWith('live'),
    () => state(page),
  );
const tile = (page, name) =>
  page
    .locator('.tile', { has: page.getByText(name, { exact: true }) })
    .locator('.figure')
    .innerText();
const names = (page) => page.locator('table.endpoints a.row-link').allInnerTexts();
const hash = (page) => decodeURIComponent(new URL(page.url()).hash.replaceAll('+', ' '));

async function hasRows(page) {
  await until(
    'rows are shown',
    (rows) => rows.length > 0,
    () => names(page),
  );
  await until(
    'numbers are shown',
    (text) => !text.startsWith('–'),
    () => tile(page, 'requests/s'),
  );
}

describe('any server', () => {
  let url;
  before(async () => {
    url = outside ?? (await serve()).url;
  });

  test('the frame of the page is seen without its script', async () => {
    const html = await (await ask(url)).text();
    assert.match(html, /<header class="top">/);
    assert.doesNotMatch(html, / style=|<script>|<script [^>]*>[^<]| on[a-z]+=/);
    const policy = (await ask(url)).headers.get('Content-Security-Policy');
    assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/);
    assert.doesNotMatch(policy, /unsafe/);
  });

  test('views are opened by links, and the browser goes back', async () => {
    const page = await open(url);
    await isLive(page);
    await hasRows(page);
    await page.locator('nav').getByRole('link', { name: 'Explorer' }).click();
    await page.getByRole('heading', { name: 'Families' }).waitFor();
    await page.locator('nav').getByRole('link', { name: 'Processes' }).click();
    await page.getByRole('heading', { name: 'Health' }).waitFor();
    assert.equal(hash(page), '#processes');
    assert.equal(await page.locator('nav [aria-current]').innerText(), 'Processes');
    await page.goBack();
    await page.getByRole('heading', { name: 'Families' }).waitFor();
    await page.goBack();
    await hasRows(page);
    await page.goForward();
    await page.getByRole('heading', { name: 'Families' }).waitFor();
    await close(page);
  });

  test('the numbers are those of the range', async () => {
    const page = await open(url);
    await isLive(page);
    await hasRows(page);
    await page.keyboard.press(' ');
    await until(
      'the page is paused',
      (text) => text === 'paused',
      () => state(page),
    );
    const [, from, to] = /from=(\d+)&to=(\d+)/.exec(page.url());
    const range = await (await ask(new URL(`live/range?from=${from}&to=${to}&bins=480`, url))).json();
    const points = range.points.filter(({ t }) => t > from && t <= to);
    const seconds = points.reduce((sum, { s }) => sum + s, 0);
    const requests = points.flatMap(({ e }) => e).reduce((sum, [, count]) => sum + count, 0);
    const shown = Number((await tile(page, 'requests/s')).split('\n')[0].replaceAll(',', ''));
    const expected = requests / seconds;
    // The server adds up what ends within a second, so that the first point may be another one.
    assert.ok(Math.abs(shown - expected) <= expected * 0.01 + 0.01, `${shown} ${expected}`);
    // The same range, loaded from the server, shows the same.
    const [before, rows] = [await tile(page, 'p99'), await names(page)];
    const colleague = await open(page.url());
    await hasRows(colleague);
    assert.deepEqual([await tile(colleague, 'p99'), (await names(colleague)).length], [before, rows.length]);
    await close(colleague);
    await close(page);
  });

  test('an endpoint is opened by a click and by Enter, and left by Escape', async () => {
    const page = await open(url);
    await isLive(page);
    await hasRows(page);
    const [first] = await names(page);
    await page.locator('table.endpoints tbody tr td').first().click();
    await page.getByRole('heading', { name: first, exact: true }).waitFor();
    await page.getByRole('heading', { name: 'Statuses' }).waitFor();
    await page.getByRole('heading', { name: 'Outcomes' }).waitFor();
    assert.ok(hash(page).includes(`endpoint=${first}`), page.url());
    await page.keyboard.press('Escape');
    await hasRows(page);
    await page.locator('body').press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'All endpoints' }).click();
    await hasRows(page);
    await close(page);
  });

  test('a drag over a chart zooms and pauses, and a button goes back', async () => {
    const page = await open(url);
    await isLive(page);
    await hasRows(page);
    const chart = page.locator('.charts .plot .u-over').first();
    const box = await chart.boundingBox();
    await page.mouse.move(box.x + box.width * 0.7, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.8, box.y + 40, { steps: 5 });
    await page.mouse.move(box.x + box.width * 0.9, box.y + 40, { steps: 5 });
    await page.mouse.up();
    await page.locator('.showing').waitFor();
    assert.equal(await state(page), 'paused');
    const [, from, to] = /from=(\d+)&to=(\d+)/.exec(page.url());
    assert.ok(to - from > 50_000 && to - from < 70_000, `${to - from}`);
    const zoomed = page.url();
    await page.getByRole('button', { name: 'Back to now' }).click();
    await isLive(page);
    await page.goBack();
    await page.locator('.showing').waitFor();
    assert.equal(page.url(), zoomed);
    await close(page);
  });

  test('a paused page stays as it is while another goes on', async () => {
    const [paused, live] = [await open(url), await open(url)];
    await hasRows(paused);
    await isLive(live);
    await paused.getByRole('button', { name: 'Pause' }).click();
    await until(
      'it is paused',
      (text) => text === 'paused',
      () => state(paused),
    );
    const sentences = async (page) => page.locator('.plot').evaluateAll((plots) => plots.map((plot) => plot.ariaLabel));
    const before = JSON.stringify(await sentences(paused));
    for (let times = 0; times < 2; times += 1) {
      const now = JSON.stringify(await sentences(live));
      await until(
        'the other goes on',
        (later) => later !== now,
        async () => JSON.stringify(await sentences(live)),
      );
    }
    assert.equal(JSON.stringify(await sentences(paused)), before);
    await paused.keyboard.press('Escape');
    await isLive(paused);
    await close(paused);
    await close(live);
  });

  test('filter and order are kept in the link', async () => {
    const page = await open(url);
    await isLive(page);
    await hasRows(page);
    const all = await names(page);
    await page.keyboard.press('/');
    await page.keyboard.type('GET ');
    await until(
      'only some are left',
      (found) => found.length > 0 && found.every((name) => name.includes('GET ')),
      () => names(page),
    );
    const sort = page.locator('th.name button');
    await page.locator('th[scope=col].name button').click();
    await until(
      'names ascend',
      (found) => found.join('\n') === [...found].sort().join('\n'),
      () => names(page),
    );
    assert.equal(await page.locator('th[scope=col].name').getAttribute('aria-sort'), 'ascending');
    await sort.click();
    await until(
      'names descend',
      (found) => found.join('\n') === [...found].sort().reverse().join('\n'),
      () => names(page),
    );
    const colleague = await open(page.url());
    await hasRows(colleague);
    assert.deepEqual(await names(colleague), await names(page));
    assert.equal(await colleague.getByRole('searchbox').inputValue(), 'GET ');
    await page.keyboard.press('/');
    await page.keyboard.press('Escape');
    await until(
      'all are back',
      (found) => found.length === all.length,
      () => names(page),
    );
    await close(page);
    await close(colleague);
  });

  test('every range can be chosen', async () => {
    const page = await open(url);
    await isLive(page);
    for (const name of ['1 min', '15 min', '1 h', '6 h', '24 h', '5 min']) {
      await page.getByRole('button', { name, exact: true }).click();
      await page.locator('[aria-busy=false]').first().waitFor();
      await hasRows(page);
      assert.equal(await page.locator('.ranges [aria-pressed=true]').innerText(), name);
    }
    await close(page);
  });

  test('the theme is chosen and remembered', async () => {
    const page = await open(url);
    const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await paper();
    await page.getByLabel('Theme').selectOption('dark');
    const dark = await until('it is dark', (colour) => colour !== light, paper);
    await page.reload();
    await isLive(page);
    assert.equal(await paper(), dark);
    await page.getByLabel('Theme').selectOption('system');
    await until('it is light', (colour) => colour === light, paper);
    await page.emulateMedia({ colorScheme: 'dark' });
    await until('it follows the system', (colour) => colour === dark, paper);
    await close(page);
  });

  test('a narrow screen scrolls tables alone, and shows latencies first', async () => {
    const page = await open(url, { size: { width: 375, height: 800 } });
    await isLive(page);
    await hasRows(page);
    for (const fragment of ['#endpoints', '#explorer', '#processes']) {
      await page.evaluate((hash) => (location.hash = hash), fragment);
      await page.locator('table.rows tbody tr').first().waitFor();
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.equal(width, 375, fragment);
    }
    await page.evaluate(() => (location.hash = '#endpoints'));
    await hasRows(page);
    assert.deepEqual((await page.locator('.charts figcaption b').allInnerTexts())[0], 'Latency');
    // Names are whole, and the numbers of each row are on the screen.
    const cut = await page.locator('table.endpoints tbody tr').evaluateAll((rows) =>
      rows.flatMap((row) => {
        const name = row.querySelector('a');
        const cells = [...row.querySelectorAll('td')].filter((cell) => cell.offsetParent);
        const isWhole = name.scrollWidth <= name.clientWidth && name.scrollHeight <= name.clientHeight + 2;
        const isSeen = cells.length >= 3 && cells.every((cell) => cell.getBoundingClientRect().right <= innerWidth);
        return isWhole && isSeen ? [] : [row.innerText];
      }),
    );
    assert.deepEqual(cut, []);
    await close(page);
  });

  test('all of it can be done by keyboard', async () => {
    const page = await open(url);
    await isLive(page);
    await hasRows(page);
    await page.keyboard.press('2');
    await page.getByRole('heading', { name: 'Families' }).waitFor();
    await page.keyboard.press('1');
    await hasRows(page);
    await page.keyboard.press('?');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    const slider = page.getByRole('slider', { name: 'Time in the charts' });
    await slider.focus();
    for (let times = 0; times < 3; times += 1) await page.keyboard.press('ArrowLeft');
    await until(
      'the slider says the time and the numbers',
      (text) => /\d+:\d+:\d+: .*(requests a second|no data)/.test(text),
      () => slider.getAttribute('aria-valuetext'),
    );
    await page.keyboard.press('+');
    await page.locator('.showing').waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    await isLive(page);
    // Every link, button and field is reached by Tab, and the focus is seen.
    await page.locator('h1').click();
    const reached = new Set();
    for (let presses = 0; presses < 30; presses += 1) {
      await page.keyboard.press('Tab');
      const [what, outline] = await page.evaluate(() => {
        const { activeElement: element } = document;
        return [
          `${element.tagName} ${element.textContent.trim().slice(0, 20)}`,
          getComputedStyle(element).outlineStyle,
        ];
      });
      reached.add(what);
      if (!what.startsWith('BODY')) assert.notEqual(outline, 'none', what);
    }
    for (const what of ['A Explorer', 'BUTTON 1 min', 'BUTTON Pause', 'BUTTON ?', 'BUTTON p99']) {
      assert.ok(
        [...reached].some((it) => it.startsWith(what)),
        `${what}: ${[...reached].join(', ')}`,
      );
    }
    await close(page);
  });

  test('families are searched and opened, and their PromQL copied', async () => {
    const page = await open(`${url}#explorer`);
    const families = () => page.locator('table.families a.row-link').allInnerTexts();
    const all = await until('families are shown', (found) => found.length > 0, families);
    const counter = all.find((name) => name.endsWith('_total'));
    await page.getByRole('searchbox').fill(counter);
    await until(
      'one is found',
      (found) => found.length >= 1 && found.every((name) => name.includes(counter)),
      families,
    );
    await page.locator('table.families a.row-link').first().click();
    await page.getByRole('heading', { name: counter, exact: true }).waitFor();
    await page.locator('table.values tbody tr').first().waitFor();
    await page.getByRole('button', { name: 'Copy PromQL' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `rate(${counter}[1m])`);
    await close(page);
  });

  for (const theme of ['light', 'dark']) {
    test(`axe finds nothing serious in the ${theme} theme`, async () => {
      const page = await open(url, { theme });
      await isLive(page);
      await hasRows(page);
      const [endpoint] = await names(page);
      const fragments = ['#endpoints', `#endpoints?${new URLSearchParams({ endpoint })}`, '#explorer', '#processes'];
      for (const fragment of fragments) {
        await page.evaluate((hash) => (location.hash = hash), fragment);
        await page.locator('main table, main figure').first().waitFor();
        await check(page, fragment);
        await page.setViewportSize({ width: 375, height: 800 });
        await check(page, `${fragment}, narrow`);
        await page.setViewportSize({ width: 1280, height: 900 });
      }
      await page.keyboard.press('?');
      await page.getByRole('dialog').waitFor();
      await check(page, 'help');
      await close(page);
    });
  }
});

async function check(page, where) {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ['violations'] });
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(
        ({ id, nodes }) =>
          `${id}: ${nodes.map(({ html, failureSummary }) => `${html.slice(0, 120)} ${failureSummary}`).join('; ')}`,
      );
  });
  assert.deepEqual(found, [], where);
}

describe('the development server', () => {
  const refused = [/ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET|ERR_INCOMPLETE_CHUNKED/];

  test('a lost connection is said, and what was missed is loaded', async () => {
    const server = await serve({ run: 'one' });
    const page = await open(server.url, { allowed: refused });
    await isLive(page);
    await hasRows(page);
    await server.stop();
    const stopped = Date.now();
    await until(
      'it says so',
      (text) => /^(reconnecting|stopped)/.test(text),
      () => state(page),
    );
    await until('more has happened than one point', (now) => now > stopped + 3000, Date.now);
    const since = server.requests.length;
    await server.start();
    await isLive(page);
    await until(
      'what was missed is asked for',
      (requests) => requests.some((it) => /^\/live\/range\?from=\d+&bins=/.test(it)),
      () => server.requests.slice(since),
    );
    await page.locator('[aria-busy=false]').first().waitFor();
    assert.equal(await state(page), 'live');
    await close(page);
  });

  test('what the server does not have either is said to be missed', async () => {
    const server = await serve({ run: 'one' });
    const page = await open(server.url, { allowed: refused });
    await isLive(page);
    await hasRows(page);
    await server.stop();
    const now = Math.floor(Date.now() / 1000) * 1000;
    server.traffic.gaps.push([now, now + 4000]);
    await until('the gap is over', (time) => time > now + 5000, Date.now);
    await server.start();
    await until(
      'it says what it missed',
      (text) => /^live\s+missed [3-9] s$/.test(text),
      () => state(page),
    );
    await close(page);
  });

  test('a server that was started anew is followed', async () => {
    const server = await serve({ run: 'one' });
    const page = await open(server.url, { allowed: refused });
    await isLive(page);
    await hasRows(page);
    await server.stop();
    // Other endpoints, under the numbers of those before.
    const { port } = server;
    const next = new Server({ ...(folder && { page: folder }), run: 'two', endpoints: 40, port });
    next.traffic.endpoints.reverse();
    servers.push(await next.start());
    await until(
      'the new endpoints are shown',
      (found) => found.length === 40,
      () => names(page),
    );
    await isLive(page);
    // The names are shown before the first numbers of the new server, which order them.
    await until(
      'the busiest is first',
      ([busiest]) => busiest === 'GET /api/items',
      () => names(page),
    );
    await close(page);
  });

  test('a page that was asleep goes on with what it missed', async () => {
    const server = await serve();
    const page = await open(server.url, { allowed: refused });
    await isLive(page);
    await hasRows(page);
    const session = await page.context().newCDPSession(page);
    await session.send('Page.setWebLifecycleState', { state: 'frozen' });
    const frozen = Date.now();
    await until('some seconds have passed', (now) => now > frozen + 5000, Date.now);
    await session.send('Page.setWebLifecycleState', { state: 'active' });
    const sentence = () => page.locator('.plot').nth(1).getAttribute('aria-label');
    const before = await sentence();
    await until('the page goes on', (now) => now !== before, sentence);
    assert.equal(await state(page), 'live');
    await close(page);
  });

  test('pages that nobody sees leave the connections of the browser to others', async () => {
    const server = await serve();
    const see = (page, isSeen) =>
      page.evaluate((isSeen) => {
        Object.defineProperty(document, 'hidden', { value: !isSeen, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
      }, isSeen);
    const pages = [];
    // More than the six connections that the browser opens to one server.
    for (let n = 0; n < 8; n += 1) {
      // Some were opened behind others.
      const isBehind = n % 2 === 1;
      const hide = () => Object.defineProperty(document, 'hidden', { value: true, configurable: true });
      const page = await open(server.url, { clock: true, script: isBehind ? hide : undefined });
      await isLive(page);
      if (!isBehind) await see(page, false);
      await page.clock.fastForward(10_000);
      await until(
        'the page rests',
        (text) => text.startsWith('resting'),
        () => state(page),
      );
      pages.push(page);
    }
    await see(pages[0], true);
    await isLive(pages[0]);
    await hasRows(pages[0]);
    for (const page of pages) await close(page);
  });

  test('a server that is busy is asked again', async () => {
    const server = await serve();
    server.refusals = 2;
    const page = await open(server.url, { allowed: [/503/] });
    await isLive(page);
    await close(page);
  });

  test('a process that dies is marked', async () => {
    const server = await serve();
    const page = await open(server.url);
    await isLive(page);
    server.kill(4712);
    await page.getByText('Process 4712 died (SIGKILL).').waitFor();
    await page.keyboard.press('3');
    const row = page.locator('table.processes tr', { has: page.getByRole('rowheader', { name: '4712' }) });
    await until(
      'it is dead',
      (text) => text.includes('dead'),
      () => row.innerText(),
    );
    server.kill(4811, 'replaced');
    const latest = page.getByRole('listitem').filter({ hasText: 'Process 4811 died' });
    await page.keyboard.press('1');
    await latest.getByRole('link', { name: 'The minute before', exact: true }).click();
    await page.getByRole('heading', { name: 'Postmortem' }).waitFor();
    await page.goBack();
    await isLive(page);
    await close(page);
  });

  test('an endpoint that changed is first, with what changed and since when', async () => {
    const server = await serve();
    const page = await open(server.url);
    await isLive(page);
    const names = () => page.locator('table.endpoints a.row-link').allInnerTexts();
    const before = await names();
    const last = before.at(-1);
    server.change(last, 'slower', 'p99 20.1 ms → 251 ms, requests as before');
    await until(
      'it is first',
      ([first]) => first === last,
      names,
    );
    const row = page.locator('table.endpoints tbody tr').first();
    assert.match(await row.innerText(), /slower since \d+:\d+:\d+: p99 20.1 ms → 251 ms, requests as before/);
    const listed = page.getByRole('listitem').filter({ hasText: `${last}: p99 20.1 ms → 251 ms` });
    await listed.getByText('changed').waitFor();
    // A page that is opened later has it too, whatever it is sorted by.
    const later = await open(`${server.url}#endpoints?sort=name`);
    await isLive(later);
    await until(
      'it is first on the other page',
      ([first]) => first === last,
      () => later.locator('table.endpoints a.row-link').allInnerTexts(),
    );
    await close(later);
    await row.locator('a.row-link').click();
    await page.locator('p.changed').getByText('slower since').waitFor();
    await page.keyboard.press('Escape');
    server.change(last, 'slower');
    await until(
      'the rows are in their order again',
      (now) => now.at(0) !== last && now.length === before.length,
      names,
    );
    await page.getByRole('listitem').filter({ hasText: 'is as usual again' }).waitFor();
    await close(page);
  });

  test('of 300 endpoints the one that changed is seen at once, with the time on its line', async () => {
    const server = await serve({ endpoints: 300 });
    const page = await open(server.url, { size: { width: 1280, height: 800 } });
    await isLive(page);
    await hasRows(page);
    const last = (await names(page)).at(-1);
    server.change(last, 'slower', 'p99 20.1 ms → 251 ms, requests as before');
    const row = page.locator('table.endpoints tbody tr').first();
    await row.getByText('slower since').waitFor();
    await row.locator('path.since').first().waitFor({ state: 'attached' });
    const { y, height } = await row.boundingBox();
    assert.ok(y + height <= 800, `the row ends at ${y + height}`);
    await close(page);
  });

  test('one of two services is seen alone, also from a link', async () => {
    const [shop, odd] = ['shop', 'b <b>&amp;\u202e "GET" ?=#'];
    const server = await serve({ endpoints: 12, services: [shop, odd], faults: [`${odd}: its buckets differ`] });
    const page = await open(server.url);
    await isLive(page);
    await hasRows(page);
    assert.equal((await names(page)).length, 12);
    const chips = await page.locator('table.endpoints .chip').allInnerTexts();
    assert.deepEqual([...new Set(chips)].sort(), ['b <b>&amp;\\u{202e} "GET" ?=#', shop].sort());
    assert.ok((await names(page)).every((name) => !name.endsWith(shop)));
    const all = Number((await tile(page, 'requests/s')).split('\n')[0].replaceAll(',', ''));
    await page.getByLabel('Service').selectOption({ index: 1 });
    await until('half of the endpoints', (found) => found.length === 6, () => names(page));
    await page.locator('[aria-busy=false]').first().waitFor();
    await hasRows(page);
    const one = Number((await tile(page, 'requests/s')).split('\n')[0].replaceAll(',', ''));
    assert.ok(one > 0 && one < all, `${one} of ${all}`);
    // A colleague sees the same, in every view.
    const colleague = await open(page.url());
    await isLive(colleague);
    await until('half of the endpoints', (found) => found.length === 6, () => names(colleague));
    assert.equal(await colleague.title(), 'b <b>&amp;\\u{202e} "GET" ?=# · Endpoints');
    await colleague.locator('nav').getByRole('link', { name: 'Processes' }).click();
    await until(
      'its process alone',
      (rows) => rows.length === 1,
      () => colleague.locator('table.processes tbody tr').allInnerTexts(),
    );
    await colleague.locator('nav').getByRole('link', { name: 'Explorer' }).click();
    await until('its families are asked for', (found) => found, async () =>
      server.requests.some((url) => url === `/live/families?${new URLSearchParams({ region: odd })}`),
    );
    await page.getByLabel('Service').selectOption({ index: 0 });
    await until('all endpoints', (found) => found.length === 12, () => names(page));
    await close(colleague);
    await close(page);
  });

  test('a histogram is shown by its quantiles, and its exemplars lead to their traces', async () => {
    const exemplars = ['4bf9', 'javascript:alert(1)', '"><img src=x onerror=alert(1)>'].map((id) => ({
      labels: [['route', '/a']],
      exemplar: [['trace_id', id], ['span_id', '1']],
      value: 0.25,
      t: Date.now(),
    }));
    const server = await serve({ exemplars, traceUrl: 'https://traces.example/trace/{trace_id}' });
    const page = await open(`${server.url}#explorer?family=http_request_duration_seconds`);
    await isLive(page);
    const chart = page.getByRole('img', { name: /^Quantiles of http_request_duration_seconds, of late: p50 \d/ });
    await chart.waitFor();
    await page.getByRole('img', { name: /^Heat map of http_request_duration_seconds, from / }).waitFor();
    const before = await chart.getAttribute('aria-label');
    await until('it goes on', (label) => label !== before, () => chart.getAttribute('aria-label'));
    const links = await page.locator('table.exemplars a').evaluateAll((all) => all.map(({ href }) => href));
    assert.deepEqual(
      links,
      ['4bf9', 'javascript%3Aalert(1)', '%22%3E%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E'].map(
        (id) => `https://traces.example/trace/${id}`,
      ),
    );
    const copy = page.locator('.promql li', { hasText: 'p99' }).getByRole('button');
    await copy.click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    assert.equal(
      await page.evaluate(() => navigator.clipboard.readText()),
      'histogram_quantile(0.99, sum by (le) (rate(http_request_duration_seconds_bucket[1m])))',
    );
    await close(page);
  });

  test('an endpoint shows what its requests cost, if the service records it', async () => {
    const family = (name) => ({ name, kind: 'histogram', help: '', labels: ['method', 'route'], series: [] });
    const costs = ['http_request_cpu_seconds', 'http_request_waiting_seconds'].map(family);
    for (const families of [costs, []]) {
      const server = await serve({ families });
      const page = await open(server.url);
      await page.locator('a.row-link').first().click();
      if (families.length) {
        const text = /^[\d.]+ cores\. A request takes [\d.]+ .?s of CPU time and waits [\d.]+ .?s\.$/;
        await until('costs', (found) => text.test(found), () => page.getByLabel('Costs').innerText());
        const asked = server.requests.filter((url) => url.includes('http_request_cpu_seconds'));
        assert.match(asked[0], /^\/live\/range\?family=http_request_cpu_seconds&endpoint=\w+/);
      } else {
        await until('the families are there', (found) => found, async () =>
          server.requests.includes('/live/families'),
        );
        assert.equal(await page.getByLabel('Costs').count(), 0);
        assert.ok(!server.requests.some((url) => url.includes('cpu_seconds')));
      }
      await close(page);
    }
  });

  test('a link to a service that is gone says so, and leads to the others', async () => {
    const server = await serve({ endpoints: 12, services: ['shop', 'billing'] });
    const page = await open(`${server.url}#endpoints?service=yesterday`);
    await page.getByRole('heading', { name: 'No service yesterday' }).waitFor();
    await page.getByRole('link', { name: 'All services' }).click();
    await until('all endpoints', (found) => found.length === 12, () => names(page));
    await close(page);
  });

  test('many services begin with a list of them, from which one is opened', async () => {
    const services = Array.from({ length: 14 }, (_, n) => `service-${n}`);
    const server = await serve({ endpoints: 42, services });
    const page = await open(server.url);
    await isLive(page);
    const listed = () => page.locator('table.services a.row-link').allInnerTexts();
    await until('all services', (found) => found.length === 14, listed);
    server.change('GET /api/search service-5', 'slower', 'p99 20.1 ms → 251 ms, requests as before');
    await until('the one that changed is first', ([first]) => first === 'service-5', listed);
    await page.locator('table.services a.row-link').first().click();
    await until('its endpoints', (found) => found.length === 3, () => names(page));
    assert.equal(await page.locator('table.services').count(), 0);
    await close(page);
  });

  test('what is wrong with the agent is on the page', async () => {
    const fault = 'memory alone has the latest history: the history /full: No space left on device';
    const server = await serve({ agentFaults: [fault] });
    const page = await open(server.url);
    await isLive(page);
    await page.getByRole('region', { name: 'The agent' }).getByText(fault).waitFor();
    const faults = ["12 bytes of the history's file were damaged when it was opened, and are lost"];
    server.send('agent-faults', faults);
    await page.getByText(faults[0]).waitFor();
    assert.equal(await page.getByText(fault).count(), 0);
    server.send('agent-faults', []);
    await page.getByText(faults[0]).waitFor({ state: 'detached' });
    await close(page);
  });

  test('hostile labels are shown as text', async () => {
    const server = await serve();
    const page = await open(server.url);
    await hasRows(page);
    const hostile = 'GET /<script>alert(1)</script>';
    const found = await names(page);
    assert.ok(found.includes(hostile));
    assert.ok(found.includes('GET /\\u{202e}turned\\u{7}'), found.join());
    assert.ok(found.some((name) => name.length > 250));
    await page.getByRole('link', { name: hostile }).click();
    await page.getByRole('heading', { name: hostile }).waitFor();
    await page.goto(`${server.url}#explorer?${new URLSearchParams({ family: 'shop.orders' })}`);
    await page.getByRole('cell', { name: '<img src=x onerror=alert(1)>' }).waitFor();
    await page.getByText('in a help text.\\u{202e}').waitFor();
    await page.getByLabel('pay.method').selectOption({ label: '"quoted" \\ back' });
    await page.locator('.promql code').getByText('"pay.method"').waitFor();
    assert.equal(
      await page.locator('.promql code').innerText(),
      'rate({"shop.orders", "pay.method"="\\"quoted\\" \\\\ back"}[1m])',
    );
    assert.equal(await page.locator('table.values tbody tr').count(), 1);
    await page.keyboard.press('3');
    await page.getByRole('cell', { name: '<b>hostile</b>' }).waitFor();
    await close(page);
  });

  test('hostile links open the page', async () => {
    const server = await serve();
    for (const fragment of [
      '#%E0%A4%A',
      '#endpoints?endpoint=<img src=x onerror=alert(1)>',
      '#explorer?family=<script>&label.x=%00',
      '#endpoints?from=1&to=2',
      '#study',
    ]) {
      const page = await open(server.url + fragment, { allowed: fragment.includes('family') ? [/400/] : [] });
      await until(
        'it is live or paused',
        (text) => /^(live|paused)/.test(text),
        () => state(page),
      );
      await close(page);
    }
  });

  test('a page without endpoints gives the advice that fits its cause', async () => {
    const created = (count) => [
      { name: 'talea_region_created_timestamp_seconds', kind: 'gauge', help: '', labels: ['region'], series: Array(count) },
    ];
    const dead = [{ region: 'shop', pid: 1, started: 1000, alive: false, died: 2000 }];
    for (const [options, heading, text] of [
      [{ processes: [], families: [] }, 'No region yet', /finds no region.*TALEA_REGION/],
      [{ processes: dead, families: created(1) }, 'No living process', /1 region is here.*the service has ended/],
      [{ processes: [], families: created(3) }, 'No living process', /3 regions are here/],
      [{ processes: [], families: [], faults: ['shop: owned by user 0'] }, 'No region can be read', /The reasons/],
    ]) {
      const page = await open((await serve({ empty: true, ...options })).url);
      await page.getByRole('heading', { name: heading }).waitFor();
      assert.match(await page.locator('main').innerText(), text);
      await close(page);
    }
    const server = await serve({ empty: true });
    const page = await open(server.url);
    await page.getByRole('heading', { name: 'No endpoints yet' }).waitFor();
    await page.locator('main').getByRole('link', { name: 'Explorer' }).click();
    await page.getByRole('heading', { name: 'Families' }).waitFor();
    await close(page);
  });

  test('200 endpoints are shown and sorted', async () => {
    const server = await serve({ endpoints: 200 });
    const page = await open(`${server.url}#endpoints?range=1m`);
    await until(
      'all are shown',
      (found) => found.length === 200,
      () => names(page),
    );
    await page.locator('th[scope=col].p99 button').click();
    await until(
      'the slowest is first',
      (found) => found[0] === 'GET /api/reports/monthly',
      () => names(page),
    );
    // Rows that cannot be seen are as current as the others once the page is paused.
    await page.keyboard.press('Escape');
    await page.locator('h1').click();
    await page.keyboard.press(' ');
    await page.locator('.showing').waitFor();
    const table = (of) => of.locator('table.endpoints tbody').innerText();
    const colleague = await open(page.url());
    await until(
      'both show the same',
      ([one, other]) => one === other && one.split('\n').length >= 200,
      async () => [await table(page), await table(colleague)],
    );
    await close(colleague);
    await close(page);
  });

  test('a study shows its cases, and both sides', async () => {
    const server = await serve({ study, endpoints: 5, title: 'items-api', born: Date.now() - 20_000 });
    const page = await open(server.url);
    await page.locator('nav').getByRole('link', { name: 'Study' }).click();
    await page.getByRole('heading', { name: 'items-api', level: 2 }).waitFor();
    assert.equal(await page.locator('table.cases tbody tr').count(), 5);
    await until(
      'a case is done',
      (texts) => texts.some((text) => text.includes('done')),
      () => page.locator('.progress').allInnerTexts(),
    );
    await until(
      'the clients have latencies',
      (label) => !label.includes('–'),
      () => page.locator('.plot').first().getAttribute('aria-label'),
    );
    await check(page, 'study');
    await close(page);
  });
});
