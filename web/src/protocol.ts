// The messages of the server, version 1. Times are milliseconds since 1970, lengths are seconds.

/** Number, requests that ended, sum of their seconds, in flight, statuses, buckets, outcomes. */
export type Endpoint = [
  id: number,
  count: number,
  sum: number,
  inFlight: number | null,
  statuses: Record<string, number>,
  /** A bucket's number, its count, the next bucket's number, … */
  buckets: number[],
  outcomes: Record<string, number>,
];

/** `region` is empty where series do not name it. */
export type EndpointName = [id: number, name: string, family: string, region?: string];
export type BucketBounds = [id: number, low: number, high: number | null];

export interface Point {
  /** When the step ended. */
  t: number;
  /** Its length. */
  s: number;
  /** By how much the length may be wrong at most. */
  u: number;
  /** How many steps are added up in it. */
  n: number;
  e: Endpoint[];
  h?: Record<string, number>;
  /** The same of each region, if there are several. */
  hr?: Record<string, Record<string, number>>;
  /** The responses that the clients of a study saw, or what the histogram observed that was asked for. */
  c?: Endpoint;
  ne?: EndpointName[];
  nb?: BucketBounds[];
  marks?: Mark[];
}

export type MarkKind = 'started' | 'died' | 'replaced' | 'changed' | 'back' | 'clock' | 'missed';

export interface Mark {
  t: number;
  kind: MarkKind;
  of: string;
  text: string;
}

/** An endpoint that is otherwise than usual. */
export interface Change {
  endpoint: string;
  quantity: 'slower' | 'errors' | 'more' | 'fewer';
  since: number;
  text: string;
}

export interface Process {
  region: string;
  pid: number;
  started: number | null;
  alive: boolean;
  died: number | null;
  /** How it ended, in words. */
  reason?: string | null;
}

export interface Hello {
  version: number;
  run: string;
  program: string;
  title: string;
  step: number;
  seconds: number;
  minutes: number;
  oldest: number | null;
  now: number;
  endpoints: EndpointName[];
  buckets: BucketBounds[];
  processes: Process[];
  marks: Mark[];
  /** The endpoints that are otherwise than usual now. */
  changes?: Change[];
  /** What is not shown, or not as it is defined. */
  faults?: string[];
  /** What is wrong with the agent itself. */
  agentFaults?: string[];
  study: Study | null;
  history: boolean;
  /** The address of a trace, with `{trace_id}` in the place of its number. */
  traceUrl?: string | null;
  /** The label that distinguishes regions. */
  regionLabel?: string | null;
}

export interface Range {
  run: string;
  from: number;
  to: number;
  bin: number;
  points: Point[];
  endpoints: EndpointName[];
  buckets: BucketBounds[];
  marks: Mark[];
}

export type Kind = 'counter' | 'gauge' | 'histogram' | 'summary' | 'untyped';

export interface Family {
  name: string;
  kind: Kind;
  help: string;
  series: number;
  labels: string[];
  /** Whether it is a histogram with native buckets alone. */
  native?: boolean;
}

export type Labels = [name: string, value: string][];

export interface SeriesRange {
  family: string;
  kind: Kind;
  bin: number;
  times: number[];
  lengths: number[];
  more: number;
  series: { id: number; labels: Labels; values: (number | null)[] }[];
}

export interface Exemplar {
  labels: Labels;
  exemplar: Labels;
  value: number | null;
  t: number | null;
}

export interface SeriesValues {
  t: number;
  s: number;
  /** null: a gauge that is missing, or no finite number. */
  v: [id: number, value: number | null][];
}

export interface StudyCase {
  name: string;
  text: string;
  state: 'waiting' | 'running' | 'done' | 'failed';
  progress?: number | null;
  seconds?: number | null;
  requests?: number | null;
  rate?: number | null;
  errors?: number | null;
  p50_ms?: number | null;
  p90_ms?: number | null;
  p99_ms?: number | null;
  server_p50_ms?: number | null;
  server_p90_ms?: number | null;
  server_p99_ms?: number | null;
}

export interface Study {
  title: string;
  state: 'running' | 'done' | 'stopped';
  cases: StudyCase[];
  report: string | null;
}
