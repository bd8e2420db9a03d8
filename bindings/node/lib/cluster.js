'use strict';

const { Registry } = require('./registry');
const regions = require('./regions');
const shared = require('./shared');

/** The registries whose metrics the pages of workers show. */
let registries;

/**
 * A registry for the primary of a cluster. There is nothing to gather: all workers count in one region, of which
 * the page is made.
 */
class ClusterRegistry extends Registry {
  async clusterMetrics() {
    const region = regions.ofWorkers();
    const accept = this._isOpenMetrics() ? this.contentType : '';
    return (await region.native.renderAll(accept)).toString();
  }

  static setRegistries(all) {
    const wanted = Array.isArray(all) ? all : [all];
    for (const registry of wanted) {
      if (!(registry instanceof Registry)) {
        throw new TypeError(`Expected Registry, got ${typeof registry}`);
      }
    }
    registries = wanted;
  }

  async shutdown() {}
}

/** A registry for the main thread: worker threads count in the region of their process. */
class WorkerRegistry extends Registry {
  async workerMetrics() {
    const [first, ...others] = registries ?? [shared.register];
    const all = others.length > 0 ? Registry.merge([first, ...others]) : first;
    return all.metrics();
  }

  async shutdown() {}

  static setRegistries(all) {
    ClusterRegistry.setRegistries(all);
  }
}

module.exports = { ClusterRegistry, WorkerRegistry };
