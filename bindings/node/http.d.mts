export * from './http.js';
import * as http from './http.js';
export default http;
