// Chromium as the tests and pictures use it.

import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { chromium } from 'playwright-core';

const PROGRAMS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

export async function launch(options = {}) {
  const executablePath = process.env.CHROMIUM ?? PROGRAMS.find((path) => existsSync(path));
  if (!executablePath) throw new Error('Chromium is missing: scripts/setup --test installs it.');
  const folder = await mkdtemp(join(tmpdir(), 'talea-page-'));
  const context = await chromium.launchPersistentContext(folder, {
    executablePath,
    headless: true,
    viewport: { width: 1280, height: 900 },
    ...options,
    permissions: ['clipboard-read', 'clipboard-write'],
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
  return {
    context,
    close: async () => {
      await context.close();
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
