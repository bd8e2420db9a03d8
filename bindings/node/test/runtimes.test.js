'use strict';

// Claims about runtimes beside the Node that runs this: TALEA_RUNTIMES has a command a line (scripts/node).

const assert = require('node:assert');
const path = require('node:path');
const { spawnSync } = require('node:child_process');
const { test } = require('node:test');

const { samples } = require('./support');

const commands = (process.env.TALEA_RUNTIMES ?? '').split('\n').filter((command) => command !== '');

for (const command of [process.execPath, ...commands]) {
  test(`counts, threads, pages and requests are whole under ${path.basename(command)}`, () => {
    const [program, ...args] = command.split(' ');
    const file = path.join(__dirname, 'programs', 'runtime.js');
    const { stdout, stderr, status } = spawnSync(program, [...args, file], { encoding: 'utf8' });
    assert.strictEqual(status, 0, stderr);
    const { hasPlainStores, page, defaults, served, whole } = JSON.parse(stdout);
    assert.ok(hasPlainStores);
    const found = samples(page);
    assert.strictEqual(found.counted_total, 9);
    assert.strictEqual(found.level, 2);
    assert.strictEqual(found['took_seconds_bucket{le="2"}'], 1);
    assert.strictEqual(found['size_bytes{quantile="0.5"}'], 7);
    assert.ok(samples(defaults).process_cpu_seconds_total > 0);
    const outcome = 'http_request_outcomes_total{method="GET",route="/items",outcome="complete"}';
    assert.strictEqual(samples(served)[outcome], 1);
    assert.strictEqual(samples(whole).counted_total, 9);
  });
}
