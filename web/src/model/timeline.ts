// The events in a range of time: bins, one after the other, and the sums over all of them.

import type { Endpoint, Point } from '../protocol.ts';
import { Sum, joined } from './sum.ts';

/** One point, or several that are added up. */
export interface Bin {
  /** When it ended, milliseconds. */
  end: number;
  /** How many of its seconds were recorded. */
  seconds: number;
  uncertain: number;
  endpoints: Map<number, Endpoint>;
  health: Record<string, number>;
  /** The same of each region, if there are several. */
  healthByRegion: Record<string, Record<string, number>>;
  clients: Endpoint | null;
  /** All endpoints together. */
  all: Sum;
  /** All that were in flight at its end, as far as known. */
  inFlight: number | null;
}

/** Time of which nothing was recorded, milliseconds. */
export interface Gap {
  from: number;
  to: number;
}

export const begin = (bin: Bin): number => bin.end - bin.seconds * 1000;

export class Timeline {
  readonly bins: Bin[] = [];
  /** The requests to each endpoint in all bins. */
  readonly sums = new Map<number, Sum>();
  /** All endpoints in all bins. */
  all = new Sum();
  clients = new Sum();
  /** The latest number in flight of each endpoint. */
  readonly inFlight = new Map<number, number>();
  /** Seconds that were recorded, in all bins. */
  seconds = 0;
  /** Grows with each change. */
  version = 0;

  /** `width` are the seconds of a bin; 0 keeps each point as a bin of its own. */
  constructor(readonly width: number) {}

  static of(points: readonly Point[], width: number): Timeline {
    const timeline = new Timeline(width);
    for (const point of points) timeline.add(point);
    return timeline;
  }

  /** When the latest point ended, or null. */
  get last(): number | null {
    return this.bins.at(-1)?.end ?? null;
  }

  /** Adds the next point. A point that is not later than all before is known already: it returns false. */
  add(point: Point): boolean {
    const last = this.bins.at(-1);
    if (!Number.isFinite(point.t) || !(point.s > 0) || (last && point.t <= last.end)) return false;
    let bin = last;
    if (!bin || this.place(bin.end) !== this.place(point.t)) {
      bin = emptyBin(point);
      this.bins.push(bin);
    }
    this.addTo(bin, point);
    return true;
  }

  /** The number of the bin in which a point ended, since 1970. */
  private place(end: number): number {
    return this.width > 0 ? Math.ceil(end / (this.width * 1000) - 1e-9) : end;
  }

  private addTo(bin: Bin, point: Point): void {
    this.version += 1;
    bin.end = point.t;
    bin.seconds += point.s;
    this.seconds += point.s;
    bin.uncertain = Math.max(bin.uncertain, point.u);
    Object.assign(bin.health, point.h);
    Object.assign(bin.healthByRegion, point.hr);
    for (const endpoint of point.e) {
      const [id, , , inFlight] = endpoint;
      const before = bin.endpoints.get(id);
      bin.endpoints.set(id, before ? joined(before, endpoint) : endpoint);
      bin.all.add(endpoint);
      this.all.add(endpoint);
      this.sumOf(id).add(endpoint);
      if (inFlight === null) this.inFlight.delete(id);
      else this.inFlight.set(id, inFlight);
    }
    if (point.c) {
      bin.clients = bin.clients ? joined(bin.clients, point.c) : point.c;
      this.clients.add(point.c);
    }
    bin.inFlight = this.allInFlight();
  }

  private sumOf(id: number): Sum {
    let sum = this.sums.get(id);
    if (!sum) this.sums.set(id, (sum = new Sum()));
    return sum;
  }

  private allInFlight(): number | null {
    let all: number | null = null;
    for (const inFlight of this.inFlight.values()) all = (all ?? 0) + inFlight;
    return all;
  }

  /** Removes the bins that ended before a time or at it. */
  trim(from: number): void {
    const kept = this.bins.findIndex((bin) => bin.end > from);
    const removed = this.bins.splice(0, kept < 0 ? this.bins.length : kept);
    if (removed.length) this.version += 1;
    for (const bin of removed) {
      this.seconds -= bin.seconds;
      for (const [id, endpoint] of bin.endpoints) {
        this.all.subtract(endpoint);
        this.sums.get(id)?.subtract(endpoint);
      }
      if (bin.clients) this.clients.subtract(bin.clients);
    }
    if (this.bins.length === 0) this.seconds = 0;
  }

  /** A copy of the bins between two times, to which nothing is added any more. */
  between(from: number, to: number): Timeline {
    const copy = new Timeline(this.width);
    for (const bin of this.bins) {
      if (bin.end <= from || bin.end > to) continue;
      copy.bins.push({ ...bin, endpoints: new Map(bin.endpoints), health: { ...bin.health }, all: bin.all.copy() });
      copy.seconds += bin.seconds;
      for (const [id, endpoint] of bin.endpoints) {
        copy.all.add(endpoint);
        copy.sumOf(id).add(endpoint);
        if (endpoint[3] === null) copy.inFlight.delete(id);
        else copy.inFlight.set(id, endpoint[3]);
      }
      if (bin.clients) copy.clients.add(bin.clients);
    }
    return copy;
  }

  /** The most that rates may be wrong by, as a share; what lies between two ends does not matter. */
  get uncertainty(): number {
    const ends = [this.bins[0]?.uncertain ?? 0, this.bins.at(-1)?.uncertain ?? 0];
    return this.seconds > 0 ? Math.max(...ends) / this.seconds : 0;
  }

  /** How much later than the one before a bin may begin without a gap between them, milliseconds. */
  private get tolerance(): number {
    return 500 + this.width * 100;
  }

  /** Whether nothing is known of the time between a bin and the one before it. */
  isAfterGap(at: number): boolean {
    const [before, bin] = [this.bins[at - 1], this.bins[at]];
    return !!before && !!bin && begin(bin) - before.end > this.tolerance;
  }

  /** The time between two times of which nothing is known. */
  gaps(from: number, to: number): Gap[] {
    const gaps: Gap[] = [];
    let known = from;
    for (const bin of this.bins) {
      if (begin(bin) - known > this.tolerance) gaps.push({ from: known, to: begin(bin) });
      known = Math.max(known, bin.end);
    }
    // The time after the latest point is not over yet.
    if (to - known > this.tolerance + 2500 + this.width * 1000) gaps.push({ from: known, to });
    return gaps;
  }
}

function emptyBin(point: Point): Bin {
  return {
    end: point.t,
    seconds: 0,
    uncertain: 0,
    endpoints: new Map(),
    health: Object.create(null) as Record<string, number>,
    healthByRegion: Object.create(null) as Record<string, Record<string, number>>,
    clients: null,
    all: new Sum(),
    inFlight: null,
  };
}
