import type { IncomingMessage, ServerResponse } from 'node:http';
import type { EventEmitter } from 'node:events';
import type { Registry } from './index.js';

export interface MeterOptions {
  /** Where the metrics are. Default: `register`. */
  registry?: Registry<any>;
  /** Names by Prometheus' conventions, the default, by OpenTelemetry's, or as those packages have them. */
  convention?: 'prometheus' | 'opentelemetry' | 'express-prom-bundle' | 'fastify-metrics';
  /** With `express-prom-bundle`: a label `method`. */
  includeMethod?: boolean;
  /** With `express-prom-bundle`: a label `path`, the template of the route. */
  includePath?: boolean;
  /** A word before each name. */
  prefix?: string;
  /** Also the time to the end of responses, and bytes of bodies. */
  detailed?: boolean;
  /** Status codes in place of classes. */
  statusCodes?: boolean;
  /** Thresholds of durations, in seconds. */
  buckets?: number[];
  /** Labels of every series. */
  constantLabels?: Record<string, string>;
}

/** Meters a server of `node:http` or `node:http2`. `route` returns the template of a request's route. */
export function meterServer<S extends EventEmitter>(
  server: S,
  options?: MeterOptions & { route?: (request: IncomingMessage) => string | undefined },
): S;

/** Middleware for Express: add it before all others. */
export function expressMeter(options?: MeterOptions): (request: any, response: any, next: (error?: any) => void) => void;

/** Middleware for Express that counts exceptions as failures: add it after all others. */
export function expressErrors(): (error: any, request: any, response: any, next: (error?: any) => void) => void;

/** A plugin for Fastify. */
export function fastifyMeter(app: any, options: MeterOptions): Promise<void>;

/** Middleware for Koa: add it before all others. */
export function koaMeter(options?: MeterOptions): (context: any, next: () => Promise<any>) => Promise<void>;

/** Middleware for Hono: add it before all others. */
export function honoMeter(options?: MeterOptions): (context: any, next: () => Promise<void>) => Promise<void>;

/** Answers with the page of a registry; without one, with that of the whole region. Resolves when it is sent or the client left. */
export function serveMetrics(
  request: IncomingMessage,
  response: ServerResponse,
  registry?: Registry<any>,
): Promise<void>;
