import { DurableObject } from "cloudflare:workers";
import type { StoreFailure } from "../../db/failure.ts";
import {
  afterRemovals,
  type HistoryObject,
  hasRows,
  isEmpty,
  type ObjectMethod,
  openDurable,
  rollUp,
  type Streamed,
  sinceRollup,
} from "../../db/open/worker.ts";
import type { Cursor, StreamedDecision, StreamFailure } from "../../db/rows.ts";
import type { DecisionFilter, ExportedRows, ExportFilter, Store } from "../../db/store.ts";
import type { Result } from "../base/result.ts";
import { webSha256 } from "../http/auth/tokens.ts";
import { nodeTurns, takeTurn } from "../http/turns.ts";
import { epochMs } from "../model/units.ts";
import { consoleLog, errorFields } from "../observe/log.ts";
import { plainMetrics } from "../observe/plain-metrics.ts";
import { idsWithPlace } from "../service/canonical.ts";
import type { NodeTurns } from "../service/node-turn/node-turns.ts";
import type { Problem } from "../service/problem.ts";
import { numberIn, retentionIn, type WorkerEnv } from "./settings.ts";

/** How soon the fleet learns of a new decision, and about repetitions. */
const NEWS_MS = 60_000;
const COUNTS_MS = 600_000;
const SWEEP_MS = 6 * 3600 * 1000;
/** The size of one message of a stream, in UTF-16 units of bodies; the platform allows 32 MiB. */
const STREAMED_CHARACTERS = 4 * 1024 * 1024;

/** Objects share the 128 MiB of their isolate. */
const STATE_BYTES = 16 * 1024 * 1024;

/** Methods that may store the first data of a node. CHANGING: methods that only change existing data. All others read. */
const BEGINNING: ReadonlySet<ObjectMethod> = new Set([
  "record",
  "recordTurn",
  "putSnapshot",
  "putOutcomes",
  "writeFacts",
  "importRows",
]);
const CHANGING: ReadonlySet<ObjectMethod> = new Set(["addResults", "nodeDeleted"]);

/**
 * A node's Durable Object: its history, and its state between two turns. Only the Worker can reach it, and has the routes and the
 * tokens. An alarm reports news to the fleet and prunes the history.
 */
export class NodeObject extends DurableObject<WorkerEnv> implements HistoryObject {
  readonly #log = consoleLog(Date.now);
  readonly #holdMs = this.#held();
  /** The last attempt to report to the fleet, which may have failed. */
  #triedMs = 0;
  #opened: { readonly store: Store; readonly turns: NodeTurns } | null = null;

  /** The posted bytes of a node's turn -> the response's JSON text. The caller is allowed to act for the node. */
  async turn(node: string, bytes: Uint8Array): Promise<Result<string, Problem>> {
    const answer = await takeTurn(this.#open().turns, node, bytes);
    await this.#schedule(false);
    if (this.#holdMs > 0) await this.#wakeAt(Date.now() + this.#holdMs);
    return answer;
  }

  async call(method: ObjectMethod, args: readonly unknown[]): Promise<unknown> {
    if (!BEGINNING.has(method) && this.#isEmpty()) return undefined;
    const { store, turns } = this.#open();
    // pending counts are written before anything is read
    await turns.flush();
    // the node's next turn is written to the history, so that the node exists again
    if (method === "nodeDeleted") await turns.forget(String(args[0]));
    const answer = await (store[method] as (...args: readonly unknown[]) => Promise<unknown>)(...args);
    if (BEGINNING.has(method) || CHANGING.has(method)) await this.#schedule(method === "addResults");
    // an id from another history does not contain this object's place, so the fleet has to know it
    if (method === "importRows") while (!(await rollUp(this.ctx.storage, this.env.DB, Date.now())));
    return answer;
  }

  stream(filter: DecisionFilter, after: Cursor | undefined): ReturnType<HistoryObject["stream"]> {
    const charactersOf = (one: Result<StreamedDecision, StreamFailure>): number =>
      one.ok ? one.value.body.length + (one.value.ask?.length ?? 0) : 0;
    return this.#streamed((store) => store.streamDecisions(filter, after), charactersOf);
  }

  exported(filter: ExportFilter, after: string | undefined): ReturnType<HistoryObject["exported"]> {
    const charactersOf = (one: Result<ExportedRows, StoreFailure>): number =>
      one.ok ? JSON.stringify(one.value.rows).length : 0;
    return this.#streamed((store) => store.exportRows(filter, after), charactersOf);
  }

  async #streamed<T>(
    read: (store: Store) => AsyncIterable<T>,
    charactersOf: (step: T) => number,
  ): Promise<Streamed<T>> {
    const steps: T[] = [];
    let room = STREAMED_CHARACTERS;
    if (this.#isEmpty()) return { steps, isLast: true };
    const { store, turns } = this.#open();
    await turns.flush();
    for await (const one of read(store)) {
      steps.push(one);
      room -= charactersOf(one);
      if (room <= 0) return { steps, isLast: false };
    }
    return { steps, isLast: true };
  }

  async alarm(): Promise<void> {
    if (this.#isEmpty()) return;
    const { storage } = this.ctx;
    const nowMs = Date.now();
    let nextMs = nowMs + NEWS_MS;
    this.#triedMs = nowMs;
    try {
      await this.#opened?.turns.flush();
      const isDone = await rollUp(storage, this.env.DB, nowMs);
      const sweptMs = await this.#sweep(nowMs);
      nextMs = isDone ? sweptMs + SWEEP_MS : nowMs;
    } catch (error) {
      this.#log.error(
        errorFields(error),
        "the fleet was not updated, or the history not pruned; tried again in a minute",
      );
    }
    if (hasRows(storage)) return this.#wakeAt(nextMs);
    this.#opened = null;
    // deletes the alarm too, before anything else can be written
    await storage.deleteAll();
  }

  /** Returns when the last sweep was, which may be this one. A new history only starts the interval. */
  async #sweep(nowMs: number): Promise<number> {
    const { kv } = this.ctx.storage;
    const lastMs = kv.get<number>("swept");
    if (lastMs !== undefined && nowMs - lastMs < SWEEP_MS) return lastMs;
    if (lastMs !== undefined) {
      const pruned = await this.#open().store.prune({ nowMs, ...retentionIn(this.env) });
      if (!pruned.ok) throw new Error(pruned.error.message);
      afterRemovals(this.ctx.storage);
    }
    kv.put("swept", nowMs);
    return nowMs;
  }

  /** The time that repetitions may wait, ms; 0 if the setting is no number, which is logged. */
  #held(): number {
    try {
      return numberIn(this.env, "NODEWISE_HOLD_SECONDS", 0, 0) * 1000;
    } catch (error) {
      this.#log.error(errorFields(error), "what is the same again is counted at once");
      return 0;
    }
  }

  #isEmpty(): boolean {
    return this.#opened === null && isEmpty(this.ctx.storage);
  }

  #open(): { readonly store: Store; readonly turns: NodeTurns } {
    if (this.#opened !== null) return this.#opened;
    const store = openDurable(this.ctx.storage);
    const turns = nodeTurns({
      store,
      now: () => epochMs(Date.now()),
      sha256: webSha256,
      ids: idsWithPlace(webSha256),
      metrics: plainMetrics(),
      log: this.#log,
      recordDecisions: true,
      nodeStates: { maxBytes: STATE_BYTES, holdMs: this.#holdMs, atEnd: () => {} },
    });
    this.#opened = { store, turns };
    return this.#opened;
  }

  async #schedule(isNews: boolean): Promise<void> {
    const { atMs, hasDecided } = sinceRollup(this.ctx.storage);
    const dueMs = atMs + (isNews || hasDecided ? NEWS_MS : COUNTS_MS);
    await this.#wakeAt(Math.max(Date.now(), dueMs, this.#triedMs + NEWS_MS));
  }
  /** Sets the alarm, unless an earlier one is set. */
  async #wakeAt(atMs: number): Promise<void> {
    const { storage } = this.ctx;
    const planned = await storage.getAlarm();
    if (planned === null || planned > atMs) await storage.setAlarm(atMs);
  }
}
