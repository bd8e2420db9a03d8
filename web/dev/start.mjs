// node dev/start.mjs [port] [endpoints] [empty|study]: the development server, until it is interrupted.

import { Server } from './server.mjs';
import { study } from './study.mjs';

const [port = '8790', endpoints = '15', scenario] = process.argv.slice(2);
const server = await new Server({
  port: Number(port),
  endpoints: Number(endpoints),
  empty: scenario === 'empty',
  study: scenario === 'study' ? study : undefined,
}).start();
console.log(`${server.url} with ${endpoints} endpoints`);
