'use strict';

// NestJS with @willsoto/nestjs-prometheus, whose `prom-client` is Talea by `overrides` in package.json:
//
//     { "overrides": { "prom-client": "npm:talea@0.1" } }
//     node nest.js 8080
//     curl localhost:8080/metrics

require('reflect-metadata');
const { Controller, Get, Inject, Module, Param } = require('@nestjs/common');
const { NestFactory } = require('@nestjs/core');
const { PrometheusModule, getToken, makeCounterProvider } = require('@willsoto/nestjs-prometheus');
const { expressMeter } = require('talea/http');

class Items {
  constructor(orders) {
    this.orders = orders;
  }

  order(item) {
    this.orders.inc({ country: 'pe' });
    return { item };
  }
}

// Without a compiler, decorators are called as functions.
Controller('items')(Items);
Inject(getToken('shop_orders_total'))(Items, undefined, 0);
Get(':item')(Items.prototype, 'order', Object.getOwnPropertyDescriptor(Items.prototype, 'order'));
Param('item')(Items.prototype, 'order', 0);

class Shop {}
Module({
  imports: [PrometheusModule.register()],
  controllers: [Items],
  providers: [makeCounterProvider({ name: 'shop_orders_total', help: 'Orders accepted.', labelNames: ['country'] })],
})(Shop);

async function main() {
  const app = await NestFactory.create(Shop, { logger: ['error', 'warn'] });
  app.use(expressMeter());
  await app.listen(Number(process.argv[2] ?? 8080), '127.0.0.1');
  console.log(app.getHttpServer().address().port);
}

main();
