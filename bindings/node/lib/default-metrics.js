'use strict';

const { readFileSync, readdirSync } = require('node:fs');
const { constants, monitorEventLoopDelay, performance, PerformanceObserver } = require('node:perf_hooks');
const v8 = require('node:v8');

const Counter = require('./counter');
const Gauge = require('./gauge');
const Histogram = require('./histogram');
const Summary = require('./summary');
const { isObject } = require('./validation');

/** How often values of this process are read for the pages of others, in milliseconds. */
const REFRESH = 5_000;

/** Each registers metrics, and returns a function that reads their values, or undefined. */
const metrics = {
  processCpuTotal({ counter }) {
    const user = counter('process_cpu_user_seconds_total', 'Total user CPU time spent in seconds.');
    const system = counter('process_cpu_system_seconds_total', 'Total system CPU time spent in seconds.');
    const both = counter('process_cpu_seconds_total', 'Total user and system CPU time spent in seconds.');
    return () => {
      const now = process.cpuUsage();
      // Other threads, and metrics that were cleared, have counted the rest.
      const [ofUser, ofSystem] = region(both).native.countCpu(now.user, now.system);
      user.inc(ofUser / 1e6);
      system.inc(ofSystem / 1e6);
      both.inc((ofUser + ofSystem) / 1e6);
    };
  },

  processStartTime({ gauge }) {
    const start = gauge('process_start_time_seconds', 'Start time of the process since unix epoch in seconds.', { aggregator: 'omit' });
    const seconds = Math.round(Date.now() / 1000 - process.uptime());
    return () => start.set(seconds);
  },

  osMemoryHeap({ gauge }) {
    const resident = gauge('process_resident_memory_bytes', 'Resident memory size in bytes.');
    if (process.platform !== 'linux') return () => resident.set(process.memoryUsage.rss());
    const virtual = gauge('process_virtual_memory_bytes', 'Virtual memory size in bytes.');
    const heap = gauge('process_heap_bytes', 'Process heap size in bytes.');
    return () => {
      const status = readFileSync('/proc/self/status', 'utf8');
      const bytes = (word) => Number(new RegExp(`^${word}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024;
      resident.set(bytes('VmRSS'));
      virtual.set(bytes('VmSize'));
      heap.set(bytes('VmData'));
    };
  },

  processOpenFileDescriptors({ gauge }) {
    if (process.platform !== 'linux') return undefined;
    const open = gauge('process_open_fds', 'Number of open file descriptors.');
    // Less the one of the folder.
    return () => open.set(readdirSync('/proc/self/fd').length - 1);
  },

  processMaxFileDescriptors({ gauge }) {
    if (process.platform !== 'linux') return undefined;
    const most = gauge('process_max_fds', 'Maximum number of open file descriptors.');
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return limit === undefined ? undefined : () => most.set(Number(limit));
  },

  eventLoopLag({ gauge, config }) {
    const of = (end, help, aggregator) => gauge(`nodejs_eventloop_lag${end}_seconds`, help, { aggregator });
    const lag = of('', 'Lag of event loop in seconds.', 'average');
    const gauges = [
      [of('_min', 'The minimum recorded event loop delay.', 'min'), (delay) => delay.min],
      [of('_max', 'The maximum recorded event loop delay.', 'max'), (delay) => delay.max],
      [of('_mean', 'The mean of the recorded event loop delays.', 'average'), (delay) => delay.mean],
      [of('_stddev', 'The standard deviation of the recorded event loop delays.', 'average'), (delay) => delay.stddev],
      ...[50, 90, 99].map((n) => [
        of(`_p${n}`, `The ${n}th percentile of the recorded event loop delays.`, 'average'),
        (delay) => delay.percentile(n),
      ]),
    ];
    const delay = monitorEventLoopDelay({ resolution: config.eventLoopMonitoringPrecision });
    delay.enable();
    return () => {
      const start = process.hrtime.bigint();
      setImmediate(() => lag.set(Number(process.hrtime.bigint() - start) / 1e9));
      // Without a sample the values are NaN or the greatest number.
      if (delay.count > 0) for (const [one, read] of gauges) one.set(read(delay) / 1e9);
      delay.reset();
    };
  },

  eventLoopUtilization({ summary, histogram, config }) {
    const help = 'Ratio of time the event loop is not idling in the event provider to the total time the event loop is running.';
    const recorded = [
      summary('nodejs_eventloop_utilization_summary', help, {
        maxAgeSeconds: config.eventLoopUtilizationMaxAgeSeconds ?? 60,
        percentiles: config.eventLoopUtilizationPercentiles ?? [0.01, 0.05, 0.5, 0.9, 0.95, 0.99, 0.999],
      }),
      histogram('nodejs_eventloop_utilization_histogram', help, {
        buckets: config.eventLoopUtilizationBuckets ?? [0.01, 0.05, 0.1, 0.25, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95, 0.99, 1],
      }),
    ];
    let last = performance.eventLoopUtilization();
    setInterval(() => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, last);
      for (const one of recorded) one.observe(utilization);
      last = now;
    }, config.eventLoopUtilizationTimeout ?? 100).unref();
    return undefined;
  },

  processResources: active('nodejs_active_resources', 'resources that are currently keeping the event loop alive', () =>
    process.getActiveResourcesInfo(),
  ),
  processHandles: active('nodejs_active_handles', 'libuv handles', () => names(process._getActiveHandles?.())),
  processRequests: active('nodejs_active_requests', 'libuv requests', () => names(process._getActiveRequests?.())),

  heapSizeAndUsed({ gauge }) {
    const total = gauge('nodejs_heap_size_total_bytes', 'Process heap size from Node.js in bytes.');
    const used = gauge('nodejs_heap_size_used_bytes', 'Process heap size used from Node.js in bytes.');
    const external = gauge('nodejs_external_memory_bytes', 'Node.js external memory size in bytes.');
    return () => {
      const usage = process.memoryUsage();
      total.set(usage.heapTotal);
      used.set(usage.heapUsed);
      external.set(usage.external);
    };
  },

  heapSpacesSizeAndUsed({ gauge }) {
    const [total, used, available] = ['total', 'used', 'available'].map((what) =>
      gauge(`nodejs_heap_space_size_${what}_bytes`, `Process heap space size ${what} from Node.js in bytes.`, {
        labelNames: ['space'],
      }),
    );
    return () => {
      for (const space of v8.getHeapSpaceStatistics()) {
        const labels = { space: space.space_name.replace(/_space$/, '') };
        total.set(labels, space.space_size);
        used.set(labels, space.space_used_size);
        available.set(labels, space.space_available_size);
      }
    };
  },

  version({ gauge }) {
    const [major, minor, patch] = process.versions.node.split('.');
    const info = gauge('nodejs_version_info', 'Node.js version info.', {
      labelNames: ['version', 'major', 'minor', 'patch'],
      aggregator: 'first',
    });
    return () => info.set({ version: process.version, major, minor, patch }, 1);
  },

  gc({ histogram, config }) {
    const durations = histogram(
      'nodejs_gc_duration_seconds',
      'Garbage collection duration by kind, one of major, minor, incremental or weakcb.',
      { labelNames: ['kind'], buckets: config.gcDurationBuckets ?? [0.001, 0.01, 0.1, 1, 2, 5] },
    );
    const kinds = {
      [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
      [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
      [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
      [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weakcb',
    };
    new PerformanceObserver((list) => {
      for (const { detail, duration } of list.getEntries()) {
        durations.observe({ kind: kinds[detail.kind] }, duration / 1000);
      }
    }).observe({ entryTypes: ['gc'] });
    return undefined;
  },
};

/** The number of things of each type, and of all. */
function active(name, things, list) {
  return ({ gauge }) => {
    const byType = gauge(name, `Number of active ${things}, grouped by type.`, { labelNames: ['type'] });
    const total = gauge(`${name}_total`, `Total number of active ${things}.`);
    let known = new Set();
    return () => {
      const counts = new Map([...known].map((type) => [type, 0]));
      const all = list();
      for (const type of all) counts.set(type, (counts.get(type) ?? 0) + 1);
      for (const [type, count] of counts) byType.set({ type }, count);
      total.set(all.length);
      known = new Set(counts.keys());
    };
  };
}

function names(things = []) {
  return things.map((thing) => thing?.constructor?.name ?? 'Object');
}

function region(metric) {
  return (metric.of ?? metric)._region;
}

/** Registers the metrics of the process and of its event loop, and keeps them up to date. */
function collectDefaultMetrics(config) {
  if (config !== null && config !== undefined && !isObject(config)) {
    throw new TypeError('config must be null, undefined, or an object');
  }
  const options = { eventLoopMonitoringPrecision: 10, ...config };
  const fixed = options.labels ?? {};
  const made = (Kind) => (name, help, more = {}) => {
    const labelNames = [...(more.labelNames ?? []), ...Object.keys(fixed)];
    const registers = options.register ? [options.register] : undefined;
    const metric = new Kind({ ...more, name: `${options.prefix ?? ''}${name}`, help, labelNames, registers });
    return Object.keys(fixed).length === 0 ? metric : withLabels(metric, fixed);
  };
  const kinds = { counter: made(Counter), gauge: made(Gauge), histogram: made(Histogram), summary: made(Summary) };
  const refreshing = new Map();
  for (const [name, begin] of Object.entries(metrics)) {
    if (options.exclude?.includes(name)) continue;
    const first = [];
    const noted = Object.fromEntries(
      Object.entries(kinds).map(([kind, make]) => [
        kind,
        (...of) => {
          const metric = make(...of);
          first.push(metric.of ?? metric);
          return metric;
        },
      ]),
    );
    const refresh = begin({ ...noted, config: options });
    if (refresh === undefined) continue;
    // The first one reads the values of all.
    first[0].collect = refresh;
    refreshing.set(first[0], refresh);
  }
  const timer = setInterval(() => {
    for (const [metric, refresh] of refreshing) {
      if (metric._in.size > 0) refresh();
    }
  }, REFRESH);
  timer.unref();
}

/** A metric that gets these labels with each call. */
function withLabels(metric, labels) {
  const call = (name) => (given, value) =>
    isObject(given) ? metric[name]({ ...given, ...labels }, value) : metric[name](labels, given);
  return { of: metric, inc: call('inc'), set: call('set'), observe: call('observe') };
}

collectDefaultMetrics.metricsList = Object.keys(metrics);

module.exports = collectDefaultMetrics;
