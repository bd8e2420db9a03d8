'use strict';

// Express under a cluster of four. Every worker and the primary show the metrics of all:
//
//     node examples/cluster.js 8080
//     curl localhost:8080/metrics

const cluster = require('node:cluster');

const express = require('express');
const { Counter, register } = require('talea');
const { expressErrors, expressMeter, serveMetrics } = require('talea/http');

const port = Number(process.argv[2] ?? 8080);

if (cluster.isPrimary) {
  for (let n = 0; n < 4; n++) cluster.fork();
  cluster.on('exit', (worker) => {
    console.log(JSON.stringify({ exit: worker.process.pid }));
    if (!worker.exitedAfterDisconnect) cluster.fork();
  });
  cluster.on('listening', (worker) => console.log(JSON.stringify({ worker: worker.process.pid })));
} else {
  const orders = new Counter({ name: 'shop_orders_total', help: 'Orders accepted.', labelNames: ['country'] });
  const items = express.Router({ mergeParams: true });
  items.get('/:item', (request, response) => {
    orders.inc({ country: 'pe' });
    response.json({ shop: request.params.shop, item: request.params.item, pid: process.pid });
  });

  const app = express();
  app.use(expressMeter());
  app.get('/metrics', (request, response) => serveMetrics(request, response));
  app.get('/slow', (_request, response) => response.write('…'));
  app.get('/broken', () => {
    throw new Error('broken');
  });
  app.use('/shops/:shop/items', items);
  app.use(expressErrors());
  app.listen(port, '127.0.0.1');
}

process.on('SIGTERM', () => process.exit());
module.exports = { register };
