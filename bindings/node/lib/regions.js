'use strict';

// Which region the metrics of a registry are in.

const cluster = require('node:cluster');
const { readdirSync, unlinkSync } = require('node:fs');
const path = require('node:path');
const { isMainThread } = require('node:worker_threads');

const { Region } = require('./native');
const shared = require('./shared');
const { warn } = require('./warning');

const FOLDER = '/dev/shm';
const VARIABLE = 'TALEA_CLUSTER_REGION';

/** A region with the words that this environment adds to. */
class OpenRegion {
  constructor(native) {
    this.native = native;
    const words = native.words();
    this.floats = words && new Float64Array(words);
    this.integers = words && new BigUint64Array(words);
  }
}

/** The file of the workers of this process, if it is the primary of a cluster. */
function fileOfOwnWorkers() {
  if (process.platform !== 'linux' || isClusterWorker()) return undefined;
  return path.join(FOLDER, `talea-node-${process.pid}.talea`);
}

/** The file that this process shares with the other workers of its cluster, if it is one. */
function fileOfOwnCluster() {
  return isClusterWorker() ? givenFile().file : undefined;
}

/** Also of a thread in one: there `cluster` says that it is a primary. */
function isClusterWorker() {
  return (cluster.isWorker || !isMainThread) && givenFile().parent === process.ppid;
}

function givenFile() {
  const [parent, file] = (process.env[VARIABLE] ?? '').split(/:(.*)/s);
  return { parent: Number(parent), file };
}

/** Lets the workers that this process forks find their region. */
function prepareCluster() {
  if (shared.isClusterPrepared || !cluster.isPrimary || !isMainThread) return;
  shared.isClusterPrepared = true;
  const file = fileOfOwnWorkers();
  if (file === undefined) return;
  process.env[VARIABLE] = `${process.pid}:${file}`;
  cluster.once('fork', () => {
    removeFilesOfTheDead();
    process.once('exit', () => remove(file));
  });
}

function remove(file) {
  try {
    unlinkSync(file);
  } catch {
    // No worker made it.
  }
}

/** A primary that is killed leaves its file. */
function removeFilesOfTheDead() {
  for (const name of readdirSync(FOLDER)) {
    const pid = /^talea-node-(\d+)\.talea$/.exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) remove(path.join(FOLDER, name));
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code !== 'ESRCH';
  }
}

function isSet(variable) {
  return Boolean(process.env[variable]);
}

/** Whether other processes count in the region of this one. */
function isShared() {
  return isSet('TALEA_REGION') || fileOfOwnCluster() !== undefined;
}

function openOfProcess() {
  try {
    const file = isSet('TALEA_REGION') ? undefined : fileOfOwnCluster();
    return file === undefined ? Region.ofProcess() : Region.open(file);
  } catch (error) {
    warn('TALEA_REGION', `${error.message}. Until then this process counts for itself`);
    return Region.inMemoryOfProcess();
  }
}

/** The region of this process. */
function ofProcess() {
  return (shared.region ??= new OpenRegion(openOfProcess()));
}

/** The region of the workers, for their primary; undefined if there is none. */
function ofWorkers() {
  const file = fileOfOwnWorkers();
  if (isShared() || file === undefined) return ofProcess();
  return (shared.workers ??= new OpenRegion(Region.open(file)));
}

/** A region for one registry. If other processes share the process's region, it is that one. */
function ofRegistry() {
  return isShared() ? ofProcess() : new OpenRegion(Region.inMemory());
}

/** A region of this environment's own, for metrics that find no room, or that are in no registry. */
function ofEnvironment() {
  return (shared.own ??= new OpenRegion(Region.inMemory()));
}

/** A new one, when that one is full. */
function nextOfEnvironment() {
  shared.own = undefined;
  return ofEnvironment();
}

module.exports = { isShared, nextOfEnvironment, ofEnvironment, ofProcess, ofRegistry, ofWorkers, prepareCluster };
