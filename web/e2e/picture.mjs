// node e2e/picture.mjs URL FILE [fragment]: the picture of the page for the README, 1280 wide and below 200 kB.
// URL is that of a real server that is under load.

import { stat } from 'node:fs/promises';

import { launch } from './browser.mjs';

const [url, file, fragment = '#endpoints'] = process.argv.slice(2);
if (!file) {
  console.error('It is  node e2e/picture.mjs URL FILE [fragment]');
  process.exit(2);
}
const browser = await launch();
const page = await browser.context.newPage();
await page.emulateMedia({ colorScheme: 'light' });
await page.setViewportSize({ width: 1280, height: 900 });
await page.goto(new URL(fragment, url).href);
await page.locator('.state.good').waitFor();
await page.locator('table.endpoints tbody tr').first().waitFor();
await page.locator('[aria-busy=false]').first().waitFor();
// As high as the page, but not longer than what a reader sees at once.
const height = Math.min(1000, await page.evaluate(() => document.documentElement.scrollHeight));
await page.setViewportSize({ width: 1280, height });
await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
await page.screenshot({ path: file });
await browser.close();
const { size } = await stat(file);
console.log(`${file}: ${size} bytes`);
if (size > 200_000) {
  console.error('That is more than 200 kB.');
  process.exit(1);
}
