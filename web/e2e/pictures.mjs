// node e2e/pictures.mjs [folder]: pictures of all views, sizes and themes, to be looked at.

import { mkdir } from 'node:fs/promises';

import { Server } from '../dev/server.mjs';
import { study } from '../dev/study.mjs';
import { launch } from './browser.mjs';

const folder = process.argv[2] ?? 'dist/pictures';
const only = process.argv[3];
await mkdir(folder, { recursive: true });
const servers = {
  few: await new Server({ born: Date.now() }).start(),
  many: await new Server({ endpoints: 200 }).start(),
  services: await new Server({ endpoints: 60, services: Array.from({ length: 14 }, (_, n) => `service-${n}`) }).start(),
  two: await new Server({ endpoints: 12, services: ['shop', 'billing'] }).start(),
  empty: await new Server({ empty: true }).start(),
  study: await new Server({ study, endpoints: 5, title: 'items-api', born: Date.now() - 30e3 }).start(),
};
const browser = await launch();
const views = [
  ['few', 'endpoints', '#endpoints'],
  ['few', 'hour', '#endpoints?range=1h'],
  ['few', 'endpoint', `#endpoints?${new URLSearchParams({ endpoint: 'GET /api/items' })}`],
  ['few', 'classic', `#endpoints?${new URLSearchParams({ endpoint: 'DELETE /api/items/{id}', range: '1m' })}`],
  ['few', 'explorer', '#explorer'],
  ['few', 'family', '#explorer?family=http_requests_total'],
  ['few', 'quoted', `#explorer?${new URLSearchParams({ family: 'shop.orders' })}`],
  ['few', 'processes', '#processes'],
  ['many', 'many', '#endpoints?sort=-p99'],
  ['services', 'services', '#endpoints'],
  ['two', 'two', '#endpoints'],
  ['two', 'narrowed', '#endpoints?service=shop'],
  ['two', 'gone', '#endpoints?service=gone'],
  ['empty', 'empty', '#endpoints'],
  ['study', 'study', '#study?range=1m'],
];
for (const [server, name, fragment] of views) {
  if (only && !name.includes(only)) continue;
  for (const [size, width, height] of [
    ['desktop', 1280, 800],
    ['phone', 390, 844],
  ]) {
    for (const theme of ['light', 'dark']) {
      const page = await browser.context.newPage();
      page.on('console', (message) => console.log(name, message.text()));
      page.on('pageerror', (error) => console.log(name, error));
      await page.emulateMedia({ colorScheme: theme });
      await page.setViewportSize({ width, height });
      await page.goto(servers[server].url + fragment);
      await page.locator('.state.good, .state.wait').first().waitFor();
      await page.waitForTimeout(2500);
      await page.screenshot({ path: `${folder}/${name}-${size}-${theme}.png`, fullPage: size === 'phone' });
      await page.close();
    }
  }
}
await browser.close();
for (const server of Object.values(servers)) await server.stop();
