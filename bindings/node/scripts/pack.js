'use strict';

// Packs the package, and the package with the addon of this platform, into a folder:
//
//     node scripts/pack.js FOLDER ADDON [TRIPLE]
//
// The package names those of all platforms as optional dependencies, of the same version. npm installs the one that
// fits, without running any script.

const { spawnSync } = require('node:child_process');
const { copyFileSync, cpSync, mkdirSync, rmSync, writeFileSync } = require('node:fs');
const path = require('node:path');

const root = path.join(__dirname, '..');
const manifest = require('../package.json');

const PLATFORMS = [
  ['linux', 'x64', 'glibc'],
  ['linux', 'x64', 'musl'],
  ['linux', 'arm64', 'glibc'],
  ['linux', 'arm64', 'musl'],
  ['darwin', 'x64'],
  ['darwin', 'arm64'],
  ['win32', 'x64'],
];

function nameOf([os, cpu, libc]) {
  return `@talea/${os}-${cpu}${libc ? { glibc: '-gnu', musl: '-musl' }[libc] : ''}`;
}

function npmPack(folder, out) {
  const { status, stdout } = spawnSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', out], {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (status !== 0) throw new Error(`npm pack of ${folder} ended with status ${status}`);
  const packed = JSON.parse(stdout);
  return path.join(out, (Array.isArray(packed) ? packed[0] : Object.values(packed)[0]).filename);
}

function pack(out, addon, platform) {
  const stage = path.join(out, 'stage');
  rmSync(stage, { recursive: true, force: true });
  mkdirSync(path.join(stage, 'main'), { recursive: true });
  mkdirSync(path.join(stage, 'platform'));

  const { devDependencies: _, scripts: __, ...published } = manifest;
  published.files = published.files.filter((file) => !file.startsWith('scripts') && !file.endsWith('.node'));
  published.optionalDependencies = Object.fromEntries(PLATFORMS.map((one) => [nameOf(one), manifest.version]));
  for (const file of ['lib', 'README.md', 'index.js', 'index.mjs', 'index.d.ts', 'index.d.mts']) {
    cpSync(path.join(root, file), path.join(stage, 'main', file), { recursive: true });
  }
  for (const file of ['http.js', 'http.mjs', 'http.d.ts', 'http.d.mts']) {
    copyFileSync(path.join(root, file), path.join(stage, 'main', file));
  }
  writeFileSync(path.join(stage, 'main', 'package.json'), JSON.stringify(published, null, 2));

  const [os, cpu, libc] = platform;
  const own = {
    name: nameOf(platform),
    version: manifest.version,
    description: `The addon of talea for ${platform.join(' ')}`,
    license: manifest.license,
    main: 'talea.node',
    files: ['talea.node'],
    os: [os],
    cpu: [cpu],
    ...(libc ? { libc: [libc] } : {}),
  };
  copyFileSync(addon, path.join(stage, 'platform', 'talea.node'));
  writeFileSync(path.join(stage, 'platform', 'package.json'), JSON.stringify(own, null, 2));
  return [npmPack(path.join(stage, 'main'), out), npmPack(path.join(stage, 'platform'), out)];
}

module.exports = { pack };

if (require.main === module) {
  const [out, addon, triple = `linux-${process.arch}-glibc`] = process.argv.slice(2);
  mkdirSync(out, { recursive: true });
  console.log(pack(path.resolve(out), addon, triple.split('-')).join('\n'));
}
