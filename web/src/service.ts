// The service as the server reports it: the connection, and what was heard.

import type { Address, Span } from './address.ts';
import { BucketTable } from './model/buckets.ts';
import type { Name } from './model/rows.ts';
import { type Gap, Timeline } from './model/timeline.ts';
import type { Change, EndpointName, Hello, Mark, Point, Process, Range, Study } from './protocol.ts';

/** The version of the protocol that the page knows. */
const VERSION = 1;
/** As many bins as a range has at most. */
const MOST_BINS = 480;
const MOST_MARKS = 500;
/** Without any event for so long, the connection is taken for lost. */
const SILENCE = 10_000;
/** A server that does not answer for so long is said to have stopped. */
const GIVE_UP = 20_000;
/** How often a range is asked for again. */
const RETRIES = 5;
/** A page that nobody saw for so long gives its connection back: a browser has six for a server. */
const REST = 10_000;

/** A point that begins so much later than the one before ended was not the next one, milliseconds. */
const LEAST_GAP = 500;

const NOTHING = new Timeline(0);

export type Connection = 'connecting' | 'live' | 'reconnecting' | 'resting' | 'stopped';

/** The least time that is seen, milliseconds. */
const LEAST_WINDOW = 60_000;

/** Widths of bins, seconds: divisors and multiples of the minutes that the server keeps for a day. */
const WIDTHS = [2, 5, 10, 15, 20, 30, 60, 120, 180, 300, 600, 1800, 3600];

/** The width of a bin of a range: 0 for each point by itself. */
export function widthOf(seconds: number): number {
  if (seconds <= MOST_BINS) return 0;
  const least = seconds / MOST_BINS;
  return WIDTHS.find((width) => width >= least) ?? Math.ceil(least / 86_400) * 86_400;
}

/** The fields of a request for a span of time. Wide bins stand at multiples of their width. */
export function binsOf({ from, to }: Span): { from: string; to: string; bins: string } {
  const width = 1000 * widthOf((to - from) / 1000);
  const begin = width ? Math.floor(from / width) * width : Math.floor(from);
  const bins = width ? Math.min(MOST_BINS, Math.ceil((to - begin) / width)) : MOST_BINS;
  const end = width ? begin + bins * width : Math.ceil(to);
  return { from: String(begin), to: String(end), bins: String(bins) };
}

export class Service {
  hello: Hello | null = null;
  readonly names = new Map<number, Name>();
  buckets = new BucketTable();
  /** The latest time, to which points are added. */
  live = new Timeline(0);
  /** The moments that are shown instead, while the page is paused. */
  private frozen: { span: Span; timeline: Timeline } | null = null;
  processes: Process[] = [];
  marks: Mark[] = [];
  /** The endpoints that are otherwise than usual now. */
  changes: Change[] = [];
  /** What is not shown, or not as it is defined. */
  faults: string[] = [];
  /** What is wrong with the agent itself. */
  agentFaults: string[] = [];
  study: Study | null = null;
  connection: Connection = 'connecting';
  /** Why something is not as it should be, as a sentence. */
  trouble: string | null = null;
  isLoading = false;

  private range = 300;
  /** The service that alone is seen. */
  private only: string | null = null;
  private events: EventSource | null = null;
  private queue: Point[] | null = null;
  /** The time from which on the server was asked for what was missed: it has no more than it said. */
  private asked: number | null = null;
  /** The time of the latest point that came. */
  private latest: number | null = null;
  private heard = Date.now();
  private lostSince: number | null = null;
  private attempts = 0;
  private rest: ReturnType<typeof setTimeout> | undefined;
  /** The time since which it is known what was missed: the page was opened then, or the server's clock was set. */
  private opened = Date.now();
  /** The time of `performance.now()`, which no clock that is set changes, when the latest point came. */
  private came = 0;
  /** The server's clock less this one's, milliseconds. */
  private ahead = 0;
  private spanLoads = 0;

  constructor(private readonly changed: () => void) {}

  start(address: Address): void {
    this.range = address.range;
    this.only = address.service;
    this.show(address);
    this.connect();
    setInterval(() => this.watch(), 1000);
    addEventListener('online', () => this.reconnect(0));
  }

  /** The server's time. */
  now(): number {
    return Date.now() + this.ahead;
  }

  /** Whether nothing more is to come: the study has ended, and the server with it. */
  get isOver(): boolean {
    return this.study !== null && this.study.state !== 'running';
  }

  /** The time that is seen. */
  window({ span, range }: Address): Span {
    if (span) return span;
    // Of a young agent, what it has is seen, rather than the time before it began.
    const [now, last] = [this.now(), this.live.last];
    const isCurrent = last !== null && now - last < 2500 + 2000 * (this.hello?.step ?? 1);
    const to = last !== null && (isCurrent || this.isOver) ? last : now;
    const oldest = this.hello?.oldest ?? this.live.bins[0]?.end ?? to;
    return { from: Math.max(to - range * 1000, Math.min(oldest, to - LEAST_WINDOW)), to };
  }

  /** The endpoints of what is seen, by their numbers. */
  shownNames(): ReadonlyMap<number, Name> {
    const { only } = this;
    return only === null ? this.names : new Map([...this.names].filter(([, name]) => this.has(only, name)));
  }

  /** The changes that had begun in the time that is seen, and last until now. */
  changesIn({ span }: Address): Change[] {
    return this.changes.filter(
      ({ endpoint, since }) => (!span || since <= span.to) && (this.only === null || this.isOf(endpoint, this.only)),
    );
  }

  /** The services that the page has, by name. */
  services(): string[] {
    const found = new Set([...this.names.values()].map(({ service }) => service));
    for (const { region, alive } of this.processes) if (alive) found.add(region);
    found.delete('');
    return [...found].sort();
  }

  /** Whether an endpoint is one of a service. */
  isOf(endpoint: string, service: string): boolean {
    for (const it of this.names.values()) if (it.name === endpoint) return this.has(service, it);
    return false;
  }

  /** The field of a request for the service that alone is seen. Series of an agent with one region do not name it. */
  region(): { region?: string } {
    return this.only !== null && this.hello?.regionLabel ? { region: this.only } : {};
  }

  /** Whether an endpoint is one of a service: that of a page with one service does not name it. */
  private has(service: string, name: Name | undefined): boolean {
    return name !== undefined && (name.service === service || (name.service === '' && this.isAlone(service)));
  }

  private isAlone(service: string): boolean {
    const all = this.services();
    return all.length === 1 && all[0] === service;
  }

  /** A point with what it has of the service that is seen. */
  private narrowed(point: Point): Point {
    const { only } = this;
    if (only === null) return point;
    const e = point.e.filter(([id]) => this.has(only, this.names.get(id)));
    const { c: _, ...rest } = point;
    return { ...rest, e, h: point.hr?.[only] ?? (!point.hr && this.isAlone(only) ? point.h : {}) ?? {} };
  }

  shown({ span }: Address): Timeline {
    if (!span) return this.live;
    const isShown = this.frozen?.span.from === span.from && this.frozen.span.to === span.to;
    return isShown ? this.frozen!.timeline : NOTHING;
  }

  /** How much of the time since the page was opened, or the clock was set, is missing in what is seen. */
  missed(address: Address): Gap[] {
    const { from, to } = this.window(address);
    const opened = Math.max(from, this.opened + this.ahead);
    const last = Math.min(to, this.live.last ?? 0);
    return last > opened
      ? this.shown(address)
          .gaps(opened, last)
          .filter((gap) => gap.to - gap.from > 2000)
      : [];
  }

  /** Seconds since the latest point, if there should have been one. */
  silence(): number | null {
    const last = this.live.last;
    if (last === null || this.connection === 'live') return null;
    return Math.max(0, (this.now() - last) / 1000);
  }

  /** Loads what an address needs. */
  show(address: Address): void {
    const isAnother = address.service !== this.only;
    if (isAnother) {
      this.only = address.service;
      // Numbers of another service are not shown meanwhile.
      this.live = new Timeline(widthOf(address.range));
      this.frozen = null;
    }
    if (isAnother || address.range !== this.range) {
      this.range = address.range;
      if (this.hello) void this.loadLive();
    }
    if (!address.span) {
      this.frozen = null;
      this.spanLoads += 1;
      if (!this.queue) this.isLoading = false;
    } else if (address.span.from !== this.frozen?.span.from || address.span.to !== this.frozen.span.to) {
      void this.loadSpan(address.span);
    }
  }

  /** The part that is seen now, so that it stays. */
  freeze(address: Address): Span {
    const { from, to } = this.window(address);
    const span = { from: Math.floor(from), to: Math.ceil(to) };
    this.frozen = { span, timeline: this.live.between(span.from, span.to) };
    return span;
  }

  /** Whether the page can be seen. The page of a study stays connected: its server ends with the study. */
  see(isSeen: boolean): void {
    clearTimeout(this.rest);
    if (isSeen && this.connection === 'resting') {
      this.connection = 'reconnecting';
      this.connect();
    } else if (!isSeen) {
      this.rest = setTimeout(() => {
        if (this.study) return;
        this.events?.close();
        this.events = this.lostSince = null;
        this.connection = 'resting';
        this.changed();
      }, REST);
    }
  }

  private connect(): void {
    this.heard = Date.now();
    this.events?.close();
    const events = new EventSource('live/events');
    this.events = events;
    const on = <Data>(name: string, take: (data: Data) => void): void => {
      events.addEventListener(name, (event) => {
        if (events !== this.events) return;
        this.heard = Date.now();
        take(JSON.parse((event as MessageEvent<string>).data) as Data);
        this.changed();
      });
    };
    on<Hello>('hello', (hello) => this.greet(hello));
    on<Point>('point', (point) => this.take(point));
    on<Process[]>('processes', (processes) => (this.processes = processes));
    on<Change[]>('changes', (changes) => (this.changes = changes));
    on<string[]>('faults', (faults) => (this.faults = faults));
    on<string[]>('agent-faults', (faults) => (this.agentFaults = faults));
    on<Study>('study', (study) => (this.study = study));
    on<unknown>('lagged', () => void this.catchUp());
    events.onerror = () => {
      const delay = this.isOver ? 60_000 : Math.min(5000, 500 * 2 ** this.attempts);
      if (events === this.events) this.reconnect(delay);
    };
  }

  private reconnect(delay: number): void {
    if (this.connection === 'resting') return;
    this.events?.close();
    this.events = null;
    this.heard = Date.now();
    this.lostSince ??= Date.now();
    this.attempts += 1;
    if (this.hello) this.connection = this.isOver || this.connection === 'stopped' ? 'stopped' : 'reconnecting';
    setTimeout(() => {
      if (!this.events && this.connection !== 'resting') this.connect();
    }, delay);
    this.changed();
  }

  /** Once a second: notices sleep, silence, and a server that does not come back. */
  private watch(): void {
    const now = Date.now();
    const silence = Math.max(SILENCE, 4000 * (this.hello?.step ?? 1));
    if (this.events && now - this.heard > silence) this.reconnect(0);
    if (this.lostSince !== null && now - this.lostSince > GIVE_UP) this.connection = 'stopped';
    if (this.connection !== 'live') this.changed();
  }

  private greet(hello: Hello): void {
    const isKnown = this.hello?.run === hello.run;
    if (hello.version !== VERSION) this.trouble = 'The agent is of another version than this page: reload it.';
    this.hello = hello;
    this.connection = 'live';
    [this.lostSince, this.attempts] = [null, 0];
    this.ahead = hello.now - Date.now();
    this.processes = hello.processes;
    this.changes = hello.changes ?? [];
    this.faults = hello.faults ?? [];
    this.agentFaults = hello.agentFaults ?? [];
    this.study = hello.study;
    if (!isKnown) {
      this.names.clear();
      this.buckets = new BucketTable();
      this.marks = [];
      this.frozen = null;
      this.queue = null;
      this.live = new Timeline(widthOf(this.range));
    }
    this.learn(hello.endpoints, hello.buckets, hello.marks);
    if (isKnown) {
      void this.catchUp();
    } else {
      void this.loadLive();
      this.renewed();
    }
  }

  /** Is called when a server answers that numbers its endpoints anew. */
  renewed: () => void = () => undefined;

  private learn(endpoints: EndpointName[], buckets: Range['buckets'], marks: Mark[]): void {
    for (const [id, name, family, service = ''] of endpoints) this.names.set(id, { name, family, service });
    this.buckets.add(buckets);
    // The past does not say how a process ended, so its mark of a death is the shorter one of two.
    const key = ({ t, kind, of, text }: Mark): string =>
      JSON.stringify(kind === 'died' || kind === 'replaced' ? [t, kind, of] : [t, kind, of, text]);
    const known = new Map(this.marks.map((mark) => [key(mark), mark]));
    const fresh = marks.filter((mark) => mark.text.length > (known.get(key(mark))?.text.length ?? -1));
    if (!fresh.length) return;
    for (const mark of fresh) known.set(key(mark), mark);
    this.marks = [...known.values()].sort((a, b) => a.t - b.t).slice(-MOST_MARKS);
  }

  private take(point: Point): void {
    this.learn(point.ne ?? [], point.nb ?? [], point.marks ?? []);
    // Points come in the order in which they were read.
    const wasSetBack = this.latest !== null && point.t < this.latest;
    const gap = point.t - point.s * 1000 - (this.latest ?? Infinity);
    // Less time passed than is missing between the points.
    const wasSetForward = gap > LEAST_GAP && performance.now() - this.came < gap;
    [this.latest, this.came] = [point.t, performance.now()];
    // A point comes after it ended, so that the server's clock is at least that far.
    this.ahead = Math.max(wasSetBack ? -Infinity : this.ahead, point.t - Date.now());
    if (wasSetBack || wasSetForward) this.opened = point.t - this.ahead;
    if (wasSetBack) {
      // By the new clock, what is known is of the future, and no point would be later.
      this.queue = null;
      void this.loadLive();
    }
    this.follow(point);
  }

  /** Adds a point, or lets it wait for what is before it. */
  private follow(point: Point): void {
    const last = this.live.last;
    const isNext = last === null || point.t - point.s * 1000 - last < LEAST_GAP;
    if (this.queue) this.queue.push(point);
    else if (isNext || this.asked === last) this.add(point);
    else void this.catchUp(point);
  }

  private add(point: Point): void {
    this.live.add(this.narrowed(point));
    this.live.trim((this.live.last ?? 0) - this.range * 1000);
  }

  /** Loads the range up to now; points that come meanwhile wait. */
  private async loadLive(): Promise<void> {
    const [range, now] = [this.range, this.now()];
    const width = widthOf(range);
    const to = width ? Math.ceil(now / width / 1000) * width * 1000 : now;
    const bins = width ? Math.round(range / width) : MOST_BINS;
    const end = width ? `&to=${to}` : '';
    await this.fill(`from=${Math.floor(to - range * 1000)}${end}&bins=${bins}`, () => new Timeline(width));
  }

  /** Loads what was missed since the latest point; the next one, if it is there already, waits meanwhile. */
  private async catchUp(next?: Point): Promise<void> {
    const last = (this.asked = this.live.last);
    if (next) this.queue = [next];
    if (last === null || this.now() - last > this.range * 1000) return this.loadLive();
    return this.fill(`from=${Math.floor(last)}&bins=${MOST_BINS}`, () => this.live);
  }

  private async fill(query: string, timeline: () => Timeline): Promise<void> {
    const queue: Point[] = (this.queue = this.queue ?? []);
    const [run, range, only] = [this.hello?.run, this.range, this.only];
    this.isLoading = true;
    this.changed();
    const loaded = await this.load(query);
    if (this.queue !== queue || this.hello?.run !== run) return;
    if (this.range !== range || this.only !== only) return;
    if (loaded) {
      this.live = timeline();
      for (const point of loaded.points) this.add(point);
    }
    this.queue = null;
    this.isLoading = false;
    for (const point of queue) this.follow(point);
    this.changed();
  }

  private async loadSpan(span: Span): Promise<void> {
    const load = (this.spanLoads += 1);
    this.isLoading = true;
    this.changed();
    const loaded = await this.load(String(new URLSearchParams(binsOf(span))));
    if (load !== this.spanLoads) return;
    this.isLoading = this.queue !== null;
    if (loaded) {
      this.frozen = { span, timeline: Timeline.of(loaded.points.map((point) => this.narrowed(point)), 0) };
    }
    this.changed();
  }

  /** Asks for a range, and again if the server is not to be reached or has no time; says why it has none in the end. */
  private async load(query: string): Promise<Range | null> {
    let reason = '';
    for (let attempt = 0; attempt <= RETRIES; attempt += 1) {
      let wait = 1;
      try {
        const response = await fetch(`live/range?${query}`);
        if (response.ok) {
          const range = (await response.json()) as Range;
          if (this.hello && range.run !== this.hello.run) return null;
          this.learn(range.endpoints, range.buckets, range.marks);
          this.trouble = null;
          return range;
        }
        reason = (await response.text()).trim().slice(0, 300) || `status ${response.status}`;
        if (response.status !== 503) break;
        const asked = Number(response.headers.get('Retry-After'));
        if (asked > 0 && asked < 30) wait = asked;
      } catch {
        reason = 'the server cannot be reached';
      }
      if (attempt < RETRIES) await new Promise((resolve) => setTimeout(resolve, 1000 * wait));
    }
    this.trouble = `The range could not be loaded: ${reason}`;
    return null;
  }
}
