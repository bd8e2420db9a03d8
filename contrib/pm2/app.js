'use strict';

const http = require('node:http');

const { Counter } = require('talea');
const { meterServer, serveMetrics } = require('talea/http');

const orders = new Counter({ name: 'shop_orders_total', help: 'Orders accepted.' });

const server = http.createServer((request, response) => {
  if (request.url === '/metrics') return serveMetrics(request, response);
  orders.inc();
  response.end(`${process.pid}\n`);
});

meterServer(server, { route: (request) => (request.url === '/metrics' ? '/metrics' : '/order') });
server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => process.send?.('ready'));

process.on('SIGINT', () => server.close(() => process.exit()));
