import type { GcOperation } from "../../api/model/garbage-collection.ts";
import type { Problem } from "../ports.ts";
import { collect } from "./collect.ts";
import { type Look, type LookSettings, look, type Unlisted } from "./look.ts";
import type { CollectionReport, GcKind, GcPorts, ReclaimReport, RemovalReport, TurnReport } from "./ports.ts";
import { reclaim } from "./reclaim.ts";
import { type Settled, settleCutShort } from "./settle.ts";
import { failUnlisted } from "./unlisted.ts";

export interface CollectOptions {
  readonly settings: LookSettings;
  /** Decides and reports, and removes nothing. */
  readonly dryRun: boolean;
  /** With the containers' timer, also asks `eviction`, and collects what it names. */
  readonly joinsEviction: boolean;
  readonly stop: AbortSignal;
  readonly onRemoval: (removal: RemovalReport) => void;
  readonly onSettled: (settled: Settled) => void;
}

/** Runs collections, one at a time. INVARIANT: nothing is removed before a pass that was cut short is settled. */
export class Collector {
  readonly #ports: GcPorts;
  readonly #options: CollectOptions;
  #last: Promise<unknown> = Promise.resolve();
  #sequence = 0;
  #problems: Problem[] = [];
  /** By their words: of several looks in a turn each would see the same. */
  readonly #notices = new Map<string, Problem>();
  /** What still shows the node as it is; null once something was removed. */
  #look: Look | null = null;
  /** The last look failed: in this turn nothing more is tried. */
  #isBlind = false;
  #unlisted: Unlisted | null = null;

  constructor(ports: GcPorts, options: CollectOptions) {
    this.#ports = ports;
    this.#options = options;
  }

  /** What is due, containers before the images that they keep, after the turn before. Never throws for what the world does. */
  turn(due: ReadonlySet<GcKind>, operation: GcOperation = "garbage-collect"): Promise<TurnReport> {
    const turn = this.#last.then(() => this.#turn(due, operation));
    this.#last = turn.catch(() => {});
    return turn;
  }

  async #turn(due: ReadonlySet<GcKind>, operation: GcOperation): Promise<TurnReport> {
    this.#problems = [];
    this.#notices.clear();
    this.#look = null;
    this.#isBlind = false;
    this.#unlisted = null;
    const at = this.#ports.observeMachine().observedAt;
    const collections: CollectionReport[] = [];
    let report: ReclaimReport | null = null;
    if (await this.#settle()) {
      if (this.#options.joinsEviction && due.has("container-gc")) report = await this.#reclaim(collections);
      for (const kind of ["container-gc", "image-gc"] as const)
        if (due.has(kind) && !this.#options.stop.aborted) await this.#collect(kind, operation, collections);
    }
    return { at, reclaim: report, collections, problems: this.#problems, notices: [...this.#notices.values()] };
  }

  async #settle(): Promise<boolean> {
    const settled = await settleCutShort(this.#ports);
    if (!settled.ok) this.#problems.push(settled.error);
    else if (settled.value !== null) this.#options.onSettled(settled.value);
    return settled.ok;
  }

  async #reclaim(collections: CollectionReport[]): Promise<ReclaimReport | null> {
    const first = await this.#see();
    if (first === null) return null;
    const run = async (kind: GcKind): Promise<void> => this.#collect(kind, "delete-unused", collections);
    const reclaimed = await reclaim(this.#ports, first, this.#options.dryRun, run, () => this.#see());
    this.#problems.push(...reclaimed.problems);
    return reclaimed.report;
  }

  async #collect(kind: GcKind, operation: GcOperation, collections: CollectionReport[]): Promise<void> {
    const seen = await this.#see();
    const { dryRun, stop, onRemoval } = this.#options;
    if (seen === null) {
      if (this.#unlisted !== null && !dryRun) await this.#fail(kind, operation, this.#unlisted, collections);
      return;
    }
    const report = await collect(this.#ports, { kind, operation, look: seen, dryRun, stop, onRemoval });
    if (report.removals.length > 0) this.#look = null;
    if (kind === "image-gc" && report.answer !== null) this.#keepClock(seen);
    this.#problems.push(...report.problems);
    collections.push(report);
  }

  async #fail(kind: GcKind, operation: GcOperation, unlisted: Unlisted, to: CollectionReport[]): Promise<void> {
    const report = await failUnlisted(this.#ports, kind, operation, unlisted);
    if (kind === "image-gc" && report.answer !== null) this.#keepClock(unlisted);
    this.#problems.push(...report.problems);
    to.push(report);
  }

  /** With the facts of the pass, which are of this moment. */
  #keepClock({ moment }: Pick<Look, "moment">): void {
    const kept = this.#ports.clock.keep(moment);
    if (!kept.ok) this.#notice({ from: "memory", message: kept.error.message });
  }

  /** The runtime is listed once, and again when something was removed since. */
  async #see(): Promise<Look | null> {
    if (this.#look !== null || this.#isBlind) return this.#look;
    const seen = await look(this.#ports, this.#options.settings, ++this.#sequence);
    if (!seen.ok) {
      const { from, message, unlisted = null } = seen.error;
      this.#problems.push({ from, message });
      this.#unlisted = unlisted;
      this.#isBlind = true;
      return null;
    }
    for (const notice of seen.value.notices) this.#notice(notice);
    this.#look = seen.value;
    return seen.value;
  }
  #notice = (notice: Problem): void => void this.#notices.set(notice.message, notice);
}
