'use strict';

// Parts of tests: regions in files, programs that are started, requests.

const { spawn } = require('node:child_process');
const { mkdtempSync, rmSync } = require('node:fs');
const http = require('node:http');
const net = require('node:net');
const path = require('node:path');

const GIVE_UP = 60_000;

/** A folder on tmpfs, which goes with the test. */
function folder(t) {
  const made = mkdtempSync('/dev/shm/talea-node-test-');
  t.after(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** Waits until a state is there. */
async function until(what, reached) {
  const end = Date.now() + GIVE_UP;
  for (;;) {
    const found = await reached();
    if (found) return found;
    if (Date.now() > end) throw new Error(`it never came to this: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A program of this folder, that says a JSON value a line. It is killed with the test. */
class Program {
  constructor(t, file, args = [], env = {}) {
    const program = path.join(__dirname, 'programs', file);
    this.child = spawn(process.execPath, [program, ...args], {
      env: { ...process.env, ...env },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.said = [];
    let rest = '';
    this.child.stdout.on('data', (data) => {
      const lines = (rest + data).split('\n');
      rest = lines.pop();
      this.said.push(...lines.map((line) => JSON.parse(line)));
    });
    this.ended = new Promise((resolve) => this.child.once('close', (code, signal) => resolve({ code, signal })));
    t.after(() => this.child.kill('SIGKILL'));
  }

  /** The first value that it said with this key, once it is there. */
  async says(key) {
    const found = await until(`${key} is said`, () => this.said.find((value) => key in value));
    return found[key];
  }
}

/** The answer to a request: its status, headers and body. */
function get(port, target, { method = 'GET', agent, headers, timeout = GIVE_UP } = {}) {
  return new Promise((resolve, reject) => {
    const request = http.request({ port, path: target, method, agent, headers }, (response) => {
      const pieces = [];
      response.on('data', (piece) => pieces.push(piece));
      response.on('end', () => {
        resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(pieces).toString() });
      });
      response.on('error', reject);
    });
    request.on('error', reject);
    request.setTimeout(timeout, () => request.destroy(new Error('no response')));
    request.end();
  });
}

/** Requests a path, and leaves once something has happened. */
async function leave(port, target, happened) {
  const socket = net.connect(port, '127.0.0.1');
  socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`);
  await happened(socket);
  socket.destroy();
}

/** A port that is free now. */
function freePort() {
  return new Promise((resolve) => {
    const server = http.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** The samples of a page by name and labels as it writes them. */
function samples(page) {
  const lines = page.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

/** The lines of a page, without the differences of `le="1"` and `le="1.0"`, `Nan` and `NaN`. */
function linesOf(page) {
  const lines = page.split('\n').filter((line) => line !== '');
  return lines.map((line) => line.replace(/le="(\d+)\.0"/, 'le="$1"').replace(/ Nan$/, ' NaN').replace(/\{(.*)\}/, sortLabels)).sort();
}

function sortLabels(_, labels) {
  return `{${labels.match(/\w+="(?:[^"\\]|\\.)*"/g).sort()}}`;
}

module.exports = { Program, folder, freePort, get, leave, linesOf, samples, until };
