'use strict';

// The native addon: the binary of the platform's package, or one that was built here (scripts/build.js).

const { existsSync } = require('node:fs');
const path = require('node:path');

function libc() {
  if (process.platform !== 'linux') return '';
  const { glibcVersionRuntime } = process.report.getReport().header;
  return glibcVersionRuntime ? '-gnu' : '-musl';
}

function load() {
  const built = process.env.TALEA_ADDON || path.join(__dirname, '..', 'talea.node');
  if (existsSync(built)) return require(built);
  const name = `@talea/${process.platform}-${process.arch}${libc()}`;
  try {
    return require(name);
  } catch (error) {
    throw new Error(
      `talea has no addon: neither ${built} nor the package ${name} can be loaded (${error.message}). ` +
        'Install without --omit=optional, or install Rust and run `npm rebuild talea`',
      { cause: error },
    );
  }
}

module.exports = load();
