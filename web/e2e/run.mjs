// node e2e/run.mjs [pattern]: the tests in Chromium.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const test = fileURLToPath(new URL('page.test.mjs', import.meta.url));
const patterns = process.argv.slice(2).flatMap((pattern) => ['--test-name-pattern', pattern]);
const { status } = spawnSync(process.execPath, ['--test', '--test-reporter=spec', ...patterns, test], {
  stdio: 'inherit',
});
process.exit(status ?? 1);
