import type { ContainerGcDecision } from "../../api/model/container-gc.ts";
import type { Done, GcOperation } from "../../api/model/garbage-collection.ts";
import type { ImageGcDecision } from "../../api/model/image-gc.ts";
import type { Result } from "../../api/model/result.ts";
import type { JournalError } from "../journal-file.ts";
import type { DecisionAnswer, Problem } from "../ports.ts";
import { type Removal, removalsOf } from "./entries.ts";
import { type GcJournal, keyOf } from "./journal.ts";
import { type Look, spaceOf } from "./look.ts";
import type { CollectionReport, GcKind, GcPorts, RemovalReport, Space } from "./ports.ts";
import { guard, remove } from "./remove.ts";

export interface Order {
  readonly kind: GcKind;
  readonly operation: GcOperation;
  readonly look: Look;
  readonly dryRun: boolean;
  /** Set: the removal under way is the last. */
  readonly stop: AbortSignal;
  readonly onRemoval: (removal: RemovalReport) => void;
}

/** A failed removal makes the next one go in its place; a pass that never came to its end would. */
const MOST_ROUNDS = 64;
/** What an ask takes. */
const LONGEST_MESSAGE = 4096;
const TOLD_TO_STOP = "not tried: the pass was told to stop";
const NOT_WRITTEN = "not tried: the journal cannot be written";
/** What a disk answers that takes no more. */
const FULL: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT"]);

/** Asks, carries out, asks again with what came of it, until nothing is left to do. Never throws for what the world does. */
export const collect = (ports: GcPorts, order: Order): Promise<CollectionReport> => new Pass(ports, order).run();

class Pass {
  readonly #ports: GcPorts;
  readonly #order: Order;
  readonly #done: Done[] = [];
  readonly #removals: RemovalReport[] = [];
  readonly #problems: Problem[] = [];
  /** Of the images, after those that were too old are gone. */
  #space: Space | null = null;
  #isBegun = false;
  /** A surprise, a fault, or a signal: nothing more is removed. */
  #isEnded = false;

  constructor(ports: GcPorts, order: Order) {
    this.#ports = ports;
    this.#order = order;
  }

  async run(): Promise<CollectionReport> {
    const { dryRun } = this.#order;
    let answer = await this.#ask();
    for (let round = 0; answer !== null && !dryRun && !this.#isEnded && round < MOST_ROUNDS; round++) {
      const batch = this.#batchOf(answer);
      if (batch.length === 0) break;
      if (this.#begin(answer)) {
        await this.#carryOut(batch);
        await this.#measureAfter(batch);
      } else this.#stopAt(batch[0] as Removal, NOT_WRITTEN);
      answer = await this.#ask();
    }
    // without an answer that knows its ends a pass stays in the journal, and the next turn settles it
    if (answer !== null) await this.#settle(answer);
    return this.#report(answer);
  }

  async #ask(): Promise<DecisionAnswer | null> {
    const { kind, operation, look, dryRun } = this.#order;
    // a plan ends nothing: without it the end of a pass that had nothing to do would not be known either
    const ends = dryRun ? {} : { done: this.#done };
    const space = this.#space === null ? {} : { fileSystem: this.#space };
    const answer = await this.#ports.client.decide(kind, look.snapshot, { operation, ...ends, ...space });
    if (answer.ok) return answer.value;
    this.#problems.push(answer.error);
    this.#isEnded = true;
    return null;
  }

  /** What is carried out before the decision is asked again: images that are too old alone, of containers a target at a time. */
  #batchOf(answer: DecisionAnswer): readonly Removal[] {
    const { kind } = this.#order;
    if (this.#isTimerOff(answer)) return [];
    const ended = new Set(this.#done.map(keyOf));
    const open = removalsOf(kind, answer).filter((removal) => !ended.has(keyOf(removal)));
    const [first] = open;
    if (kind === "container-gc") return open.filter(({ target }) => target === first?.target);
    const isFirstOld = first?.why === "too-old";
    return isFirstOld ? open.filter(({ why }) => why === "too-old") : open;
  }

  /** kubelet 1.36: StartGarbageCollection runs no timer for images that nothing could make too many or too old. */
  #isTimerOff({ decision }: DecisionAnswer): boolean {
    const { kind, operation } = this.#order;
    return kind === "image-gc" && operation === "garbage-collect" && !(decision as ImageGcDecision).policy.timer;
  }

  /** The pass is on disk before its first removal. */
  #begin(answer: DecisionAnswer): boolean {
    if (this.#isBegun) return true;
    const { kind, operation, look } = this.#order;
    const planned = removalsOf(kind, answer).map(({ id }) => id);
    this.#isBegun = this.#journaled((journal) => journal.begin({ kind, operation, snapshot: look.snapshot, planned }));
    return this.#isBegun;
  }

  async #carryOut(batch: readonly Removal[]): Promise<void> {
    for (const removal of batch) {
      if (this.#isEnded) return;
      if (this.#order.stop.aborted) this.#stopAt(removal, TOLD_TO_STOP);
      else await this.#carryOutOne(removal);
    }
  }

  async #carryOutOne(removal: Removal): Promise<void> {
    const guarded = await guard(removal, this.#order.look, this.#ports);
    if (guarded.state === "fault") {
      const message = `${removal.target} ${removal.name} is left: what became of it is not known: ${guarded.message}`;
      this.#problems.push({ from: removal.target === "pod-logs" ? "pods" : "runtime", message });
      return this.#stopAt(removal, `what became of it is not known: ${guarded.message}`);
    }
    if (guarded.state === "surprise") return this.#stopAt(removal, guarded.found);
    if (!this.#journaled((journal) => journal.intend(removal))) return this.#stopAt(removal, NOT_WRITTEN);
    const { end, message = "" } = await remove(removal, guarded, this.#ports);
    if (end === "stopped") return this.#stopAt(removal, message);
    this.#end(removal, end, message === "" ? undefined : message);
  }

  /** The pass ends at this one. INVARIANT: an end is told of it, or the rest of the plan would count as what came of it. */
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
  #measure = (): Space | null => spaceOf(this.#ports.observeDisks(this.#order.look.lists));

  /** What the answer says is sent and remembered before the journal forgets it. */
  async #settle(answer: DecisionAnswer): Promise<void> {
    if (this.#isBegun || this.#order.kind === "image-gc") await this.#ports.client.settle(answer);
    if (this.#isBegun) this.#journaled((journal) => journal.close());
  }

  /**
   * Writes to the journal; false: nothing may be removed without it. INVARIANT: a full disk is what a collection is for,
   * and never keeps one from running: it then goes on, told as a problem, and only a crash would lose what ended.
   */
  #journaled(write: (journal: GcJournal) => Result<unknown, JournalError>): boolean {
    if (this.#ports.journal === null) throw new Error("a collection without a journal removes nothing");
    const written = write(this.#ports.journal);
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
    const { kind, operation, look, dryRun } = this.#order;
    const hasRemoved = this.#removals.some(({ end }) => end === "removed");
    const after = hasRemoved && kind === "image-gc" ? this.#measure() : null;
    const decision = answer?.decision as ImageGcDecision | ContainerGcDecision | undefined;
    const isLeft = decision?.remove.some(({ end }) => end !== "removed") === true;
    const isDone = dryRun || (answer !== null && this.#isTimerOff(answer)) || (!isLeft && decision?.error === null);
    return {
      at: look.at,
      kind,
      operation,
      dryRun,
      answer,
      removals: this.#removals,
      fileSystem: { before: look.space, after },
      complete: answer !== null && this.#problems.length === 0 && isDone,
      problems: this.#problems,
    };
  }
}
