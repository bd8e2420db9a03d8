'use strict';

// Builds the addon, unless the package of this platform has it: `npm install` in a checkout of the repository.

const { spawnSync } = require('node:child_process');
const { copyFileSync, existsSync } = require('node:fs');
const path = require('node:path');

const folder = path.join(__dirname, '..');
const root = path.join(folder, '..', '..');

function build() {
  const args = ['build', '--locked', '--release', '-p', 'talea-node', '--message-format', 'json-render-diagnostics'];
  const { status, stdout, error } = spawnSync('cargo', args, {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  if (status !== 0) {
    const reason = error ? error.message : `cargo ended with status ${status}`;
    throw new Error(`the addon of talea cannot be built: ${reason}. Rust 1.89 or newer is needed`);
  }
  const messages = stdout.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
  const library = messages.findLast((message) => message.target?.name === 'talea_node' && message.filenames);
  copyFileSync(library.filenames[0], path.join(folder, 'talea.node'));
}

if (existsSync(path.join(folder, 'Cargo.toml')) && !process.env.TALEA_ADDON) build();
