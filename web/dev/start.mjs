// node dev/start.mjs [port] [endpoints | URL] [empty | study]: the development server, until it is interrupted. With
// the URL of a real server the data are its own, and the page is the one in this folder.

import { Server } from './server.mjs';
import { study } from './study.mjs';

const [port = '8790', source = '15', scenario] = process.argv.slice(2);
const server = await new Server({
  port: Number(port),
  ...(source.startsWith('http') ? { upstream: source } : { endpoints: Number(source) }),
  empty: scenario === 'empty',
  study: scenario === 'study' ? study : undefined,
}).start();
console.log(`${server.url} with ${source.startsWith('http') ? source : `${source} endpoints`}`);
