/** Content types of pages. */
export type Charset = 'utf-8';
export type PrometheusMIME = 'text/plain';
export type PrometheusMetricsVersion = '0.0.4';
export type OpenMetricsMIME = 'application/openmetrics-text';
export type OpenMetricsVersion = '1.0.0';
export type PrometheusContentType = `${PrometheusMIME}; version=${PrometheusMetricsVersion}; charset=${Charset}`;
export type OpenMetricsContentType = `${OpenMetricsMIME}; version=${OpenMetricsVersion}; charset=${Charset}`;
export type RegistryContentType = PrometheusContentType | OpenMetricsContentType;

/** How the values of a gauge in several processes become one. Of `first`, `average` and `omit` the latest is shown. */
export type Aggregator = 'omit' | 'sum' | 'first' | 'min' | 'max' | 'average';
export type MetricType = 'counter' | 'gauge' | 'histogram' | 'summary';
export type LabelValues<T extends string> = Partial<Record<T, string | number>>;

export interface MetricValue<T extends string> {
  value: number;
  labels: LabelValues<T>;
}
export type MetricValueWithName<T extends string> = MetricValue<T> & { metricName?: string };

export interface MetricObject {
  name: string;
  help: string;
  type: MetricType;
  aggregator: Aggregator;
  collect: CollectFunction<any>;
}
export interface MetricObjectWithValues<T extends MetricValue<string>> extends MetricObject {
  values: T[];
}

export type Metric<T extends string = string> = Counter<T> | Gauge<T> | Histogram<T> | Summary<T>;
export type Collector = () => void;
export type CollectFunction<T> = (this: T) => void | Promise<void>;

/** Metrics that are shown on one page. */
export class Registry<T extends RegistryContentType = RegistryContentType> {
  static readonly PROMETHEUS_CONTENT_TYPE: PrometheusContentType;
  static readonly OPENMETRICS_CONTENT_TYPE: OpenMetricsContentType;
  static readonly globalRegistry: Registry;
  static merge(registers: Registry[]): Registry;
  static aggregate<T extends RegistryContentType>(metrics: Array<object>, contentType?: T): Registry<T>;

  constructor(contentType?: T);
  readonly contentType: T;
  setContentType(contentType: T): void;

  /** The page. It is made off the event loop. */
  metrics(): Promise<string>;
  /** The page as bytes: for large ones. */
  metricsAsBuffer(): Promise<Buffer>;
  getMetricsAsString<L extends string>(metric: Metric<L>): Promise<string>;
  getSingleMetricAsString(name: string): Promise<string>;
  getMetricsAsJSON(aggregator?: string): Promise<MetricObjectWithValues<MetricValue<string>>[]>;
  getMetricsAsArray(aggregator?: string): MetricObject[];
  getSingleMetric<L extends string>(name: string): Metric<L> | undefined;

  registerMetric<L extends string>(metric: Metric<L>): void;
  removeSingleMetric(name: string): void;
  /** Removes all metrics. Metrics in a file that other processes use stay there. */
  clear(): void;
  /** Counts from 0 again, in all processes. */
  resetMetrics(): void;
  setDefaultLabels(labels: object): void;
}

/** For the primary of a cluster. Its page shows all workers; nothing is gathered. */
export class ClusterRegistry<T extends RegistryContentType = RegistryContentType> extends Registry<T> {
  clusterMetrics(): Promise<string>;
  shutdown(): Promise<void>;
  static setRegistries(registers: Registry | Registry[]): void;
}
export { ClusterRegistry as AggregatorRegistry };

/** For the main thread. Its page shows all worker threads; nothing is gathered. */
export class WorkerRegistry<T extends RegistryContentType = RegistryContentType> extends Registry<T> {
  workerMetrics(): Promise<string>;
  shutdown(): Promise<void>;
  static setRegistries(registers: Registry | Registry[]): void;
}

export interface MetricConfiguration<T extends string> {
  name: string;
  help: string;
  labelNames?: T[] | readonly T[];
  registers?: Registry<any>[];
  aggregator?: Aggregator;
  enableExemplars?: boolean;
  /** The most series; further label values count together. Default: 20,000. */
  limit?: number;
  collect?: CollectFunction<any>;
}
export interface CounterConfiguration<T extends string> extends MetricConfiguration<T> {
  collect?: CollectFunction<Counter<T>>;
}
export interface GaugeConfiguration<T extends string> extends MetricConfiguration<T> {
  collect?: CollectFunction<Gauge<T>>;
}
export interface HistogramConfiguration<T extends string> extends MetricConfiguration<T> {
  buckets?: number[];
  /** Adds native buckets, which protobuf pages show. Observations call native code then. */
  nativeBuckets?: boolean;
  collect?: CollectFunction<Histogram<T>>;
}
export interface SummaryConfiguration<T extends string> extends MetricConfiguration<T> {
  percentiles?: number[];
  /** The window of the percentiles. Default: 600. */
  maxAgeSeconds?: number;
  ageBuckets?: number;
  pruneAgedBuckets?: boolean;
  compressCount?: number;
  collect?: CollectFunction<Summary<T>>;
}

export interface IncreaseDataWithExemplar<T extends string> {
  value?: number;
  labels?: LabelValues<T>;
  exemplarLabels?: LabelValues<string>;
}
export interface ObserveDataWithExemplar<T extends string> {
  value: number;
  labels?: LabelValues<T>;
  exemplarLabels?: LabelValues<string>;
}

/** A total that only goes up. */
export class Counter<T extends string = string> {
  constructor(configuration: CounterConfiguration<T>);
  inc(labels: LabelValues<T>, value?: number): void;
  inc(value?: number): void;
  inc(data: IncreaseDataWithExemplar<T>): void;
  labels(...values: Array<string | number>): Counter.Internal;
  labels(labels: LabelValues<T>): Counter.Internal;
  remove(...values: Array<string | number>): void;
  remove(labels: LabelValues<T>): void;
  reset(): void;
  get(): Promise<MetricObjectWithValues<MetricValue<T>>>;
}
export namespace Counter {
  interface Internal {
    inc(value?: number): void;
  }
}

/** A value that goes up and down. */
export class Gauge<T extends string = string> {
  constructor(configuration: GaugeConfiguration<T>);
  inc(labels: LabelValues<T>, value?: number): void;
  inc(value?: number): void;
  dec(labels: LabelValues<T>, value?: number): void;
  dec(value?: number): void;
  set(labels: LabelValues<T>, value: number): void;
  set(value: number): void;
  setToCurrentTime(labels?: LabelValues<T>): void;
  startTimer(labels?: LabelValues<T>): (labels?: LabelValues<T>) => number;
  labels(...values: Array<string | number>): Gauge.Internal<T>;
  labels(labels: LabelValues<T>): Gauge.Internal<T>;
  remove(...values: Array<string | number>): void;
  remove(labels: LabelValues<T>): void;
  reset(): void;
  get(): Promise<MetricObjectWithValues<MetricValue<T>>>;
}
export namespace Gauge {
  interface Internal<T extends string> {
    inc(value?: number): void;
    dec(value?: number): void;
    set(value: number): void;
    setToCurrentTime(): void;
    startTimer(): (labels?: LabelValues<T>) => number;
  }
}

/** Observations by size. */
export class Histogram<T extends string = string> {
  constructor(configuration: HistogramConfiguration<T>);
  observe(value: number): void;
  observe(labels: LabelValues<T>, value: number): void;
  observe(data: ObserveDataWithExemplar<T>): void;
  startTimer(
    labels?: LabelValues<T>,
    exemplarLabels?: LabelValues<string>,
  ): (labels?: LabelValues<T>, exemplarLabels?: LabelValues<string>) => number;
  labels(...values: Array<string | number>): Histogram.Internal<T>;
  labels(labels: LabelValues<T>): Histogram.Internal<T>;
  zero(labels: LabelValues<T>): void;
  remove(...values: Array<string | number>): void;
  remove(labels: LabelValues<T>): void;
  reset(): void;
  get(): Promise<MetricObjectWithValues<MetricValueWithName<T>>>;
}
export namespace Histogram {
  interface Internal<T extends string> {
    observe(value: number): void;
    startTimer(): (labels?: LabelValues<T>) => number;
  }
  interface Config {
    buckets?: number[];
  }
}

/** Observations with percentiles of a sliding window. */
export class Summary<T extends string = string> {
  constructor(configuration: SummaryConfiguration<T>);
  observe(value: number): void;
  observe(labels: LabelValues<T>, value: number): void;
  startTimer(labels?: LabelValues<T>): (labels?: LabelValues<T>) => number;
  labels(...values: Array<string | number>): Summary.Internal<T>;
  labels(labels: LabelValues<T>): Summary.Internal<T>;
  remove(...values: Array<string | number>): void;
  remove(labels: LabelValues<T>): void;
  reset(): void;
  get(): Promise<MetricObjectWithValues<MetricValueWithName<T>>>;
}
export namespace Summary {
  interface Internal<T extends string> {
    observe(value: number): void;
    startTimer(): (labels?: LabelValues<T>) => number;
  }
  interface Config {
    percentiles?: number[];
  }
}

/** Sends the page of a registry to a Pushgateway. */
export class Pushgateway<T extends RegistryContentType = RegistryContentType> {
  constructor(url: string, registry?: Registry<T>);
  constructor(url: string, options: any, registry?: Registry<T>);
  pushAdd(params?: Pushgateway.Parameters): Promise<{ resp?: unknown; body?: unknown }>;
  push(params?: Pushgateway.Parameters): Promise<{ resp?: unknown; body?: unknown }>;
  delete(params?: Pushgateway.Parameters): Promise<{ resp?: unknown; body?: unknown }>;
}
export namespace Pushgateway {
  interface Parameters {
    jobName: string;
    groupings?: { [key: string]: string };
  }
}

export interface DefaultMetricsCollectorConfiguration<T extends RegistryContentType = RegistryContentType> {
  register?: Registry<T>;
  prefix?: string;
  labels?: object;
  /** Names of `metricsList` that are left out. */
  exclude?: string[];
  gcDurationBuckets?: number[];
  eventLoopMonitoringPrecision?: number;
  eventLoopUtilizationTimeout?: number;
  eventLoopUtilizationBuckets?: number[];
  eventLoopUtilizationPercentiles?: number[];
  eventLoopUtilizationMaxAgeSeconds?: number;
}

/** The metrics of the process and its event loop. */
export const collectDefaultMetrics: {
  <T extends RegistryContentType>(config?: DefaultMetricsCollectorConfiguration<T>): void;
  metricsList: string[];
};

/** The registry of metrics that name no other. */
export const register: Registry;
export const contentType: RegistryContentType;
export const prometheusContentType: PrometheusContentType;
export const openMetricsContentType: OpenMetricsContentType;
export const aggregators: Record<Aggregator, (metrics: object[]) => object | undefined>;
export function validateMetricName(name: string): boolean;
export function linearBuckets(start: number, width: number, count: number): number[];
export function exponentialBuckets(start: number, factor: number, count: number): number[];

/**
 * A page of all that is in this process's region, also what other processes and languages count there, in the format
 * that an Accept header asks for.
 */
export function renderRegion(accept?: string): Promise<{ contentType: string; body: Buffer }>;
