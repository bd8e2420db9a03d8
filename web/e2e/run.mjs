// node e2e/run.mjs [pattern]: the tests in Chromium. With TALEA_PAGE_URL those alone that can run against any server.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const files = process.env.TALEA_PAGE_URL ? ['page.test.mjs'] : ['page.test.mjs', 'real.test.mjs'];
const tests = files.map((file) => fileURLToPath(new URL(file, import.meta.url)));
const patterns = process.argv.slice(2).flatMap((pattern) => ['--test-name-pattern', pattern]);
const { status } = spawnSync(process.execPath, ['--test', '--test-reporter=spec', ...patterns, ...tests], {
  stdio: 'inherit',
});
process.exit(status ?? 1);
