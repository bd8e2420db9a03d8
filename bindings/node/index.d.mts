export * from './index.js';
import * as talea from './index.js';
export default talea;
