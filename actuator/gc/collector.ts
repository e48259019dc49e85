import type { Result } from "../../api/base/result.ts";
import type { ContainerGcDecision, Done, GcOperation } from "../../api/model/container-gc.ts";
import type { DecisionOf } from "../../api/model/decision.ts";
import type { EvictionDecision } from "../../api/model/eviction.ts";
import type { ImageGcDecision } from "../../api/model/image-gc.ts";
import { specOf } from "../../api/model/kinds.ts";
import type { DecisionAnswer, Problem } from "../core/interfaces.ts";
import type { InterruptibleSleep } from "../core/notices.ts";
import type { JournalError } from "../core/record-file.ts";
import type { CollectionReport, GcDeps, GcReport, ReclaimReport, RemovalReport } from "./dependencies.ts";
import { GC_KINDS, type GcJournal, type GcKind, keyOf, type Space } from "./journal.ts";
import { type GcPeriods, gcTraits, kindOfFunction, removalsOf } from "./kinds.ts";
import {
  type FailedListing,
  type NodeObservation,
  type ObserveSettings,
  observeNode,
  spaceOf,
} from "./observe-node.ts";
import { type ClosedPass, closeInterruptedPass, guard, type Removal, remove } from "./remove.ts";

interface PassOrder {
  readonly kind: GcKind;
  readonly operation: GcOperation;
  readonly observation: NodeObservation;
  readonly dryRun: boolean;
  /** Set: the removal under way is the last. */
  readonly stop: AbortSignal;
  readonly onRemoval: (removal: RemovalReport) => void;
}

/** Limits the rounds of a pass: each failed removal makes the decision choose another, so a pass might never end. */
const MAX_ROUNDS = 64;
/** The maximum length of a message in an ask. */
const LONGEST_MESSAGE = 4096;
const STOP_REQUESTED = "not tried: the pass was asked to stop";
const NOT_WRITTEN = "not tried: the journal cannot be written";
/** Errors of a full disk. */
const FULL: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT"]);

/** Decides, removes, and decides again with the results, until nothing is left to do. Never throws because of external failures. */
const collect = (deps: GcDeps, order: PassOrder): Promise<CollectionReport> => new Pass(deps, order).run();

class Pass {
  readonly #deps: GcDeps;
  readonly #order: PassOrder;
  readonly #done: Done[] = [];
  readonly #removals: RemovalReport[] = [];
  readonly #problems: Problem[] = [];
  /** The space of images, after images that were too old are removed. */
  #space: Space | null = null;
  #isBegun = false;
  /** A surprise, a fault, or a signal: nothing more is removed. */
  #isEnded = false;

  constructor(deps: GcDeps, order: PassOrder) {
    this.#deps = deps;
    this.#order = order;
  }

  async run(): Promise<CollectionReport> {
    const { dryRun } = this.#order;
    let answer = await this.#ask();
    for (let round = 0; answer !== null && !dryRun && !this.#isEnded && round < MAX_ROUNDS; round++) {
      const batch = this.#batchOf(answer);
      if (batch.length === 0) break;
      if (this.#begin(answer)) {
        await this.#removeBatch(batch);
        await this.#measureAfter(batch);
      } else this.#stopAt(batch[0] as Removal, NOT_WRITTEN);
      answer = await this.#ask();
    }
    // without a decision on the results, a pass stays in the journal, and the next collection completes it
    if (answer !== null) await this.#commit(answer);
    return this.#report(answer);
  }

  async #ask(): Promise<DecisionAnswer | null> {
    const { kind, operation, observation, dryRun } = this.#order;
    // a plan ends nothing: without it the end of a pass that had nothing to do would not be known either
    const ends = dryRun ? {} : { done: this.#done };
    const space = this.#space === null ? {} : { fileSystem: this.#space };
    const answer = await this.#deps.client.decide(kind, observation.snapshot, { operation, ...ends, ...space });
    if (answer.ok) return answer.value;
    this.#problems.push(answer.error);
    this.#isEnded = true;
    return null;
  }

  /**
   * The removals to carry out before the decision is asked again: all too old images at once, containers one target at
   * a time.
   */
  #batchOf(answer: DecisionAnswer): readonly Removal[] {
    if (this.#isTimerOff(answer)) return [];
    const ended = new Set(this.#done.map(keyOf));
    const open = removalsOf(this.#order.kind, answer).filter((removal) => !ended.has(keyOf(removal)));
    const [first] = open;
    const isFirstOld = first?.why === "too-old";
    return open.filter(({ target, why }) => target === first?.target && (!isFirstOld || why === "too-old"));
  }

  #isTimerOff({ decision }: DecisionAnswer): boolean {
    const { kind, operation } = this.#order;
    return operation === "garbage-collect" && gcTraits(kind).isTimerOff(decision as DecisionOf[GcKind]);
  }

  /** The pass is on disk before its first removal. */
  #begin(answer: DecisionAnswer): boolean {
    if (this.#isBegun) return true;
    const { kind, operation, observation } = this.#order;
    const planned = removalsOf(kind, answer).map(({ id }) => id);
    this.#isBegun = this.#journaled((journal) =>
      journal.begin({ kind, operation, snapshot: observation.snapshot, planned }),
    );
    return this.#isBegun;
  }

  async #removeBatch(batch: readonly Removal[]): Promise<void> {
    for (const removal of batch) {
      if (this.#isEnded) return;
      if (this.#order.stop.aborted) this.#stopAt(removal, STOP_REQUESTED);
      else await this.#removeOne(removal);
    }
  }

  async #removeOne(removal: Removal): Promise<void> {
    const guarded = await guard(removal, this.#order.observation, this.#deps);
    if (guarded.state === "fault") {
      const message = `${removal.target} ${removal.name} is left: what became of it is not known: ${guarded.message}`;
      this.#problems.push({ from: removal.target === "pod-logs" ? "pods" : "runtime", message });
      return this.#stopAt(removal, `what became of it is not known: ${guarded.message}`);
    }
    if (guarded.state === "surprise") return this.#stopAt(removal, guarded.found);
    if (!this.#journaled((journal) => journal.intend(removal))) return this.#stopAt(removal, NOT_WRITTEN);
    const { end, message = "" } = await remove(removal, guarded, this.#deps);
    if (end === "stopped") return this.#stopAt(removal, message);
    this.#end(removal, end, message === "" ? undefined : message);
  }

  /**
   * Ends the pass at this removal. INVARIANT: its end is recorded, since otherwise the rest of the plan would count as
   * done.
   */
  #stopAt(removal: Removal, words: string): void {
    this.#isEnded = true;
    this.#end(removal, "stopped", words);
  }

  #end(removal: Removal, end: Done["end"], words?: string): void {
    const { id, runtimeHandler, kind, target, name, bytes, why } = { ...removal, kind: this.#order.kind };
    const message = words === undefined ? {} : { message: words.slice(0, LONGEST_MESSAGE) };
    const done: Done = { id, ...(runtimeHandler === "" ? {} : { runtimeHandler }), end, ...message };
    this.#done.push(done);
    this.#journaled((journal) => journal.end(done));
    const report: RemovalReport = { kind, target, id, name, bytes, why, end, ...message };
    this.#removals.push(report);
    this.#order.onRemoval(report);
  }

  /** kubelet 1.36: GarbageCollect measures the disk after the images that were too old. */
  async #measureAfter(batch: readonly Removal[]): Promise<void> {
    if (batch[0]?.why !== "too-old" || !this.#removals.some(({ end }) => end === "removed")) return;
    const space = this.#measure();
    if (space === null) return;
    this.#space = space;
    this.#journaled((journal) => journal.fileSystem(space));
  }
  #measure = (): Space | null => spaceOf(this.#deps.observeDisks(this.#order.observation.lists));

  /** The answer is sent and stored before the journal forgets the removal. */
  async #commit(answer: DecisionAnswer): Promise<void> {
    await this.#deps.client.commit(answer, this.#isBegun || remembers(this.#order.kind));
    if (this.#isBegun) this.#journaled((journal) => journal.close());
  }

  /**
   * Writes to the journal; false: nothing may be removed without it. INVARIANT: a full disk never prevents a
   * collection, which is there to make room: it continues and reports a problem, and only a crash would lose what
   * ended.
   */
  #journaled(write: (journal: GcJournal) => Result<unknown, JournalError>): boolean {
    if (this.#deps.journal === null) throw new Error("a collection without a journal removes nothing");
    const written = write(this.#deps.journal);
    if (written.ok) return true;
    const isFull = FULL.has(written.error.errno ?? "");
    const effect = isFull
      ? "a collection goes on, since it makes room; a crash in it would lose which removals ended"
      : "nothing more is removed";
    const message = `${written.error.message}; ${effect}`;
    if (!this.#problems.some((known) => known.message === message)) this.#problems.push({ from: "journal", message });
    this.#isEnded ||= !isFull;
    return isFull;
  }

  #report(answer: DecisionAnswer | null): CollectionReport {
    const { kind, operation, observation, dryRun } = this.#order;
    const hasRemoved = this.#removals.some(({ end }) => end === "removed");
    const after = hasRemoved && gcTraits(kind).freesImages ? this.#measure() : null;
    const decision = answer?.decision as ImageGcDecision | ContainerGcDecision | undefined;
    const isLeft = decision?.remove.some(({ end }) => end !== "removed") === true;
    const isDone = dryRun || (answer !== null && this.#isTimerOff(answer)) || (!isLeft && decision?.error === null);
    return {
      at: observation.at,
      kind,
      operation,
      dryRun,
      answer,
      removals: this.#removals,
      fileSystem: { before: observation.space, after },
      complete: answer !== null && this.#problems.length === 0 && isDone,
      problems: this.#problems,
    };
  }
}

/** Whether the kind has facts from earlier passes, so that each pass is news, whatever it removes. */
const remembers = (kind: GcKind): boolean => specOf(kind).facts !== null;

interface Reclaimed {
  readonly report: ReclaimReport | null;
  readonly problems: readonly Problem[];
}

/**
 * kubelet 1.36: reclaimNodeLevelResources. Asks `eviction` whether a disk signal is below its threshold, runs the
 * collections that it names, containers first, and asks again with the new disk usage. Pods are not evicted here.
 */
async function reclaim(
  { client, evictionClock }: GcDeps,
  { snapshot: seen, space, moment }: NodeObservation,
  dryRun: boolean,
  run: (kind: GcKind) => Promise<void>,
  observeAgain: () => Promise<NodeObservation | null>,
): Promise<Reclaimed> {
  if (space === null) return { report: null, problems: [] };
  // clock changes since the last image pass belong to another kind
  const otherwise = { clockSteppedMs: undefined, clockSteppedSince: undefined };
  const snapshot = { ...seen, ...otherwise, ...evictionClock.snapshotFields(moment) };
  const commitAnswer = async (answer: DecisionAnswer, isNews: boolean): Promise<Problem[]> => {
    await client.commit(answer, isNews);
    const kept = evictionClock.persist(moment);
    return kept.ok ? [] : [{ from: "memory", message: kept.error.message }];
  };
  const asked = await client.decide("eviction", snapshot);
  if (!asked.ok) return { report: null, problems: [asked.error] };
  const ran = (asked.value.decision as EvictionDecision).reclaim?.nodeLevel ?? [];
  for (const name of ran) await run(kindOfFunction(name));
  const after = ran.length === 0 || dryRun ? null : await observeAgain();
  if (after === null) {
    const problems = await commitAnswer(asked.value, ran.length > 0);
    return { report: { answer: asked.value, ran }, problems };
  }
  const again = await client.decide("eviction", snapshot, { statsAfterReclaim: after.snapshot["stats"] });
  if (!again.ok) return { report: { answer: asked.value, ran }, problems: [again.error] };
  const problems = await commitAnswer(again.value, true);
  return { report: { answer: again.value, ran }, problems };
}

export interface CollectOptions {
  readonly settings: ObserveSettings;
  /** Decides and reports, and removes nothing. */
  readonly dryRun: boolean;
  /** True: on the containers' timer, also asks `eviction`, and runs the collections that it names. */
  readonly joinsEviction: boolean;
  readonly stop: AbortSignal;
  readonly onRemoval: (removal: RemovalReport) => void;
  readonly onSettled: (settled: ClosedPass) => void;
}

/** Runs collections, one at a time. INVARIANT: nothing is removed before a pass that was cut short is settled. */
export class Collector {
  readonly #deps: GcDeps;
  readonly #options: CollectOptions;
  #last: Promise<unknown> = Promise.resolve();
  #sequence = 0;
  #problems: Problem[] = [];
  /** Notices by message, so that repeated observations report each once. */
  readonly #notices = new Map<string, Problem>();
  /** The observation while it is up to date; null once something was removed. */
  #observed: NodeObservation | null = null;
  /** True: the last observation failed, so this collection tries nothing more. */
  #isObserveFailed = false;
  #unlisted: FailedListing | null = null;

  constructor(deps: GcDeps, options: CollectOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /**
   * Runs the due collections after the former collection has ended, containers before the images that they keep in use. Never throws
   * because of external failures.
   */
  collect(due: ReadonlySet<GcKind>, operation: GcOperation = "garbage-collect"): Promise<GcReport> {
    const collected = this.#last.then(() => this.#collectDue(due, operation));
    this.#last = collected.catch(() => {});
    return collected;
  }

  async #collectDue(due: ReadonlySet<GcKind>, operation: GcOperation): Promise<GcReport> {
    this.#problems = [];
    this.#notices.clear();
    this.#observed = null;
    this.#isObserveFailed = false;
    this.#unlisted = null;
    const at = this.#deps.observeMachine().observedAt;
    const collections: CollectionReport[] = [];
    let report: ReclaimReport | null = null;
    if (await this.#closeInterrupted()) {
      if (this.#options.joinsEviction && [...due].some((kind) => gcTraits(kind).joinsEviction))
        report = await this.#reclaim(collections);
      for (const kind of GC_KINDS)
        if (due.has(kind) && !this.#options.stop.aborted) await this.#collect(kind, operation, collections);
    }
    return { at, reclaim: report, collections, problems: this.#problems, notices: [...this.#notices.values()] };
  }

  async #closeInterrupted(): Promise<boolean> {
    const settled = await closeInterruptedPass(this.#deps);
    if (!settled.ok) this.#problems.push(settled.error);
    else if (settled.value !== null) this.#options.onSettled(settled.value);
    return settled.ok;
  }

  async #reclaim(collections: CollectionReport[]): Promise<ReclaimReport | null> {
    const first = await this.#observe();
    if (first === null) return null;
    const run = async (kind: GcKind): Promise<void> => this.#collect(kind, "delete-unused", collections);
    const reclaimed = await reclaim(this.#deps, first, this.#options.dryRun, run, () => this.#observe());
    this.#problems.push(...reclaimed.problems);
    return reclaimed.report;
  }

  async #collect(kind: GcKind, operation: GcOperation, collections: CollectionReport[]): Promise<void> {
    const seen = await this.#observe();
    const { dryRun, stop, onRemoval } = this.#options;
    if (seen === null) {
      if (this.#unlisted !== null && !dryRun) await this.#fail(kind, operation, this.#unlisted, collections);
      return;
    }
    const report = await collect(this.#deps, { kind, operation, observation: seen, dryRun, stop, onRemoval });
    if (report.removals.length > 0) this.#observed = null;
    if (remembers(kind) && report.answer !== null) this.#persistClock(seen);
    this.#problems.push(...report.problems);
    collections.push(report);
  }

  async #fail(kind: GcKind, operation: GcOperation, unlisted: FailedListing, to: CollectionReport[]): Promise<void> {
    const report = await failUnlisted(this.#deps, kind, operation, unlisted);
    if (remembers(kind) && report.answer !== null) this.#persistClock(unlisted);
    this.#problems.push(...report.problems);
    to.push(report);
  }

  /** Stores the clock together with the facts of the pass, which are of this moment. */
  #persistClock({ moment }: Pick<NodeObservation, "moment">): void {
    const kept = this.#deps.clock.persist(moment);
    if (!kept.ok) this.#notice({ from: "memory", message: kept.error.message });
  }

  /** Lists the runtime once, and again after a removal. */
  async #observe(): Promise<NodeObservation | null> {
    if (this.#observed !== null || this.#isObserveFailed) return this.#observed;
    const seen = await observeNode(this.#deps, this.#options.settings, ++this.#sequence);
    if (!seen.ok) {
      const { from, message, unlisted = null } = seen.error;
      this.#problems.push({ from, message });
      this.#unlisted = unlisted;
      this.#isObserveFailed = true;
      return null;
    }
    for (const notice of seen.value.notices) this.#notice(notice);
    this.#observed = seen.value;
    return seen.value;
  }
  #notice = (notice: Problem): void => void this.#notices.set(notice.message, notice);
}

/**
 * A pass whose runtime lists failed, which the history, the next pass and the kubelet's events record. Removes
 * nothing. The caller reports the runtime's fault.
 */
async function failUnlisted(
  { client }: GcDeps,
  kind: GcKind,
  operation: GcOperation,
  { at, snapshot, error }: FailedListing,
): Promise<CollectionReport> {
  const answer = await client.decide(kind, snapshot, { operation, done: [], error });
  if (answer.ok) await client.commit(answer.value);
  return {
    at,
    kind,
    operation,
    dryRun: false,
    answer: answer.ok ? answer.value : null,
    removals: [],
    fileSystem: { before: null, after: null },
    complete: false,
    problems: answer.ok ? [] : [answer.error],
  };
}

/**
 * Runs due collections until stopped, all of them at the start. A collection that takes longer than its period
 * postpones the next: two never run at once. Periods are read each time.
 */
export async function collectUntil(
  stop: AbortSignal,
  collector: Collector,
  periods: GcPeriods,
  onGcReport: (report: GcReport) => void,
  pace: InterruptibleSleep,
): Promise<void> {
  const ranAt = new Map<GcKind, number>();
  const dueAt = (kind: GcKind): number =>
    (ranAt.get(kind) ?? Number.NEGATIVE_INFINITY) + periods[gcTraits(kind).period] * 1000;
  while (!stop.aborted) {
    const now = performance.now();
    const due = GC_KINDS.filter((kind) => dueAt(kind) <= now);
    for (const kind of due) ranAt.set(kind, now);
    // a timer may go off a moment early
    if (due.length > 0) onGcReport(await collector.collect(new Set(due)));
    const next = Math.min(...GC_KINDS.map(dueAt));
    await pace.sleep(Math.max(1, next - performance.now()));
  }
}
