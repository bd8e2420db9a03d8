// Compiled by `tsc --strict`, not run: the types of usual code.

import talea, { ClusterRegistry, Counter, Gauge, Histogram, Registry, Summary, collectDefaultMetrics, register } from 'talea';
import { expressMeter, meterServer, serveMetrics } from 'talea/http';
import { createServer } from 'node:http';

const counter = new Counter({ name: 'a_total', help: 'h', labelNames: ['method', 'code'] as const });
counter.inc();
counter.inc(2);
counter.inc({ method: 'GET', code: 200 });
counter.labels('GET', 200).inc();
// @ts-expect-error: there is no such label.
counter.inc({ other: 'x' });
const gauge = new Gauge({ name: 'g', help: 'h', collect() { this.set(1); } });
const end: () => number = gauge.startTimer();
end();
new Histogram({ name: 'h', help: 'h', buckets: [1, 2], nativeBuckets: true, registers: [new Registry()] }).observe(1);
new Summary({ name: 's', help: 'h', percentiles: [0.5], maxAgeSeconds: 60 }).observe(1);
collectDefaultMetrics({ register, prefix: 'shop_' });
const page: Promise<string> = new ClusterRegistry().clusterMetrics();
page.then(console.log);
talea.register.clear();
meterServer(createServer((request, response) => void serveMetrics(request, response)), { route: () => '/' });
expressMeter({ convention: 'opentelemetry' });
expressMeter({ convention: 'express-prom-bundle', includePath: true });
// @ts-expect-error: there is no such convention.
expressMeter({ convention: 'other' });
