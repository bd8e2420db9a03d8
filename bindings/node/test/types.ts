// Compiled by `tsc --strict`, not run: the types of usual code.

import * as client from '@prometheus-io/client';
import talea, { ClusterRegistry, Counter, Gauge, Histogram, Pushgateway, Registry, Summary, collectDefaultMetrics, register } from 'talea';
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
new Pushgateway('http://127.0.0.1:9091', new Registry());
new Pushgateway('http://127.0.0.1:9091', { timeout: 10, requireJobName: false }, register);
new Pushgateway('http://127.0.0.1:9091', null, register);
const text: Promise<string> = new Registry().getMetricsAsString(counter);
text.then(console.log);
// It exports all that the client exports.
type Missing = Exclude<keyof typeof client, keyof typeof talea | 'default'>;
const isMissing: [Missing] extends [never] ? false : true = false;
console.log(isMissing);
