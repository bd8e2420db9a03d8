import http from './http.js';

export default http;
export const {
  expressErrors,
  expressMeter,
  fastifyMeter,
  honoMeter,
  koaMeter,
  meterServer,
  serveMetrics,
} = http;
