import { setTimeout as sleep } from "node:timers/promises";
import type { StreamedDecision } from "../../../db/rows.ts";
import type { LogStore, Store } from "../../../db/store.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { errorFields, type Log } from "../../observe/log.ts";
import type { LogMetrics } from "../../observe/node-metrics.ts";
import { type EventForm, eventText, INPUT, SNAPSHOT, wantsSnapshot } from "../../service/decision-event.ts";
import type { TaskQueue } from "../../service/task-queue.ts";

export type DeliveryResult =
  | { readonly state: "taken" }
  | { readonly state: "too-large" }
  | { readonly state: "failed"; readonly reason: string; readonly retryMs?: number };

/** Where events go. */
export interface Receiver {
  /** The name in the log, without a secret. */
  readonly label: string;
  /**
   * Sends events; `taken`: the receiver has them, and they need not be sent again. Never rejects; ends well within `LEASE_MS`, and
   * at `signal`.
   */
  send(events: readonly string[], signal: AbortSignal): Promise<DeliveryResult>;
  close(): Promise<void>;
}

interface DeliveryDeps {
  readonly store: LogStore & Pick<Store, "getSnapshot">;
  readonly receiver: Receiver;
  readonly form: EventForm;
  /** The most bytes of events that are sent together; a larger event is sent alone. */
  readonly maxBytes: number;
  /** The name of this process. */
  readonly holder: string;
  readonly log: Log;
  readonly metrics: LogMetrics;
  /** Runs the creation of events between requests. */
  readonly tasks: TaskQueue;
}

/** How often to look for new decisions. */
const POLL_INTERVAL_MS = 1_000;
/** Another process takes over this long after the last renewal; this process renews each `RENEW_MS`. */
const LEASE_MS = 20_000;
const RENEW_MS = 5_000;
/** The pause between attempts, doubled each time. */
const BACK_OFF_MS = { least: 1_000, most: 60_000 };
/** The time for the remaining events when the server ends. */
const LAST_MS = 3_000;
/** The most events that are sent together. */
const MAX_EVENTS = 1_000;

/** An event that waits to be sent. */
interface QueuedEvent {
  readonly row: StreamedDecision;
  readonly text: string;
}
/** Why a pass ended early: another process delivers, the history cannot be read or written, or the server ends. */
type PassEnd = "not-ours" | "history" | "ended";

/**
 * Delivers recorded decisions from the position stored in the history: each decision at least once, in the order of storing, by
 * one process at a time. Decisions that the receiver does not accept wait in the history.
 */
export class Delivery {
  readonly #deps: DeliveryDeps;
  readonly #closing = new AbortController();
  #running: Promise<void> = Promise.resolve();
  /** The position after the last `#hold`; null if another process delivers. */
  #place: { readonly seq: number; readonly atMs: number } | null = null;
  /** Lost decisions that were reported, which the next `#hold` subtracts. */
  #reported = 0;
  #failures = 0;
  #snapshot: { readonly id: string; readonly text: string | null } | null = null;

  constructor(deps: DeliveryDeps) {
    this.#deps = deps;
  }

  /** Starts the log if there is none, so that everything recorded from then on is in it. Errors: the history cannot be written. */
  async begin(): Promise<Result<null, string>> {
    const { store, holder } = this.#deps;
    const held = await store.holdLog(holder, LEASE_MS, 0);
    if (!held.ok) return err(held.error.message);
    this.#take(held.value);
    this.#running = this.#run();
    return ok(null);
  }

  /** Sends what is left if that is possible at once, logs how much is not sent, and lets another process deliver. */
  async close(): Promise<void> {
    const { store, holder, receiver, log } = this.#deps;
    const end = setTimeout(() => this.#closing.abort(new Error("the API ends")), LAST_MS);
    this.#isLast = true;
    this.#wake();
    await this.#running;
    clearTimeout(end);
    const settled = await store.settledSeq();
    const waiting = this.#place === null || !settled.ok ? 0 : settled.value - this.#place.seq;
    if (waiting > 0)
      log.warn(
        {
          receiver: receiver.label,
          waiting,
          advice: "start the API with --decision-log again: it continues from there",
        },
        "the API stops before the decision log is delivered: it stays in the history",
      );
    await store.releaseLog(holder);
    await receiver.close();
  }
  #isLast = false;
  #wake: () => void = () => {};

  async #run(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      const isLast = this.#isLast;
      try {
        await this.#pass();
      } catch (error) {
        this.#deps.log.error(errorFields(error), "internal fault");
      }
      if (isLast) return;
      await this.#rest(POLL_INTERVAL_MS);
    }
  }

  /** Waits this long, or until the server ends. */
  async #rest(ms: number): Promise<void> {
    if (this.#isLast) return;
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    await sleep(ms, undefined, { signal: woken.signal, ref: false }).catch(() => {});
    this.#wake = () => {};
  }

  async #pass(): Promise<void> {
    const { store, maxBytes, metrics } = this.#deps;
    if ((await this.#hold()) !== null || this.#place === null) return metrics.waits(null);
    const settled = await store.settledSeq();
    if (!settled.ok) return this.#unread(settled.error.message);
    this.#isUnread = false;
    const from = this.#place.seq;
    if (settled.value <= from) return metrics.waits({ events: 0, sinceMs: null });
    let batch: QueuedEvent[] = [];
    let bytes = 0;
    for await (const found of store.streamLog(from, settled.value)) {
      if (!found.ok && found.error.row === undefined) return this.#unread(found.error.message);
      const made = found.ok
        ? await this.#eventOf(found.value)
        : this.#damaged(found.error.row?.id, found.error.message);
      if (made === "history") return;
      if (made === null) continue;
      const size = Buffer.byteLength(made.text);
      if (batch.length > 0 && (bytes + size > maxBytes || batch.length === MAX_EVENTS)) {
        if ((await this.#sendUntil(batch, batch.at(-1)?.row.seq ?? from, settled.value)) !== null) return;
        [batch, bytes] = [[], 0];
      }
      batch.push(made);
      bytes += size;
    }
    if ((await this.#sendUntil(batch, settled.value, settled.value)) !== null) return;
    metrics.waits({ events: 0, sinceMs: null });
  }

  /** Takes or renews the right to deliver. Null: this process delivers. */
  async #hold(): Promise<PassEnd | null> {
    const { store, holder } = this.#deps;
    if (this.#place !== null && performance.now() - this.#place.atMs < RENEW_MS && this.#reported === 0) return null;
    const reported = this.#reported;
    const held = await store.holdLog(holder, LEASE_MS, reported);
    if (!held.ok) {
      this.#unread(held.error.message);
      return "history";
    }
    this.#reported -= reported;
    const before = this.#place?.seq;
    this.#take(held.value);
    // another process may have moved the position, or the removal of the newest decisions may have moved it back
    if (this.#place === null || (before !== undefined && before !== this.#place.seq)) return "not-ours";
    return null;
  }

  #take(held: { readonly deliveredSeq: number; readonly lost: number } | null): void {
    const { log, metrics } = this.#deps;
    this.#place = held === null ? null : { seq: held.deliveredSeq, atMs: performance.now() };
    const lost = (held?.lost ?? 0) - this.#reported;
    if (lost <= 0) return;
    this.#reported += lost;
    metrics.lost("removed", lost);
    log.error(
      { lost, advice: "keep the history for longer (--keep-days, --keep-decisions), or have the receiver answer" },
      "decisions were removed from the history before the decision log was delivered",
    );
  }

  async #eventOf(row: StreamedDecision): Promise<QueuedEvent | "history" | null> {
    const { form, tasks } = this.#deps;
    let snapshot: string | null = null;
    if (wantsSnapshot(form) && row.snapshotId !== null) {
      const read = await this.#snapshotOf(row.snapshotId);
      if (!read.ok) {
        if (read.error.isRow === true) return this.#damaged(row.id, read.error.message);
        this.#unread(read.error.message);
        return "history";
      }
      snapshot = read.value;
    }
    const made = await tasks(async () => eventText(row, snapshot, form), true);
    return made.ok ? { row, text: made.value } : this.#damaged(row.id, made.error);
  }

  /** The text of a snapshot; decisions of one turn share it. */
  async #snapshotOf(id: string) {
    if (this.#snapshot?.id === id) return ok(this.#snapshot.text);
    const read = await this.#deps.store.getSnapshot(id);
    if (!read.ok) return read;
    this.#snapshot = { id, text: read.value?.body ?? null };
    return ok(this.#snapshot.text);
  }

  /** Skips an unreadable row, so that it does not block the ones behind it. */
  #damaged(decisionId: string | undefined, reason: string): null {
    const { log, metrics } = this.#deps;
    metrics.lost("damaged", 1);
    log.error({ decisionId, reason }, "a decision cannot be read, and is not in the decision log");
    return null;
  }

  /** Logged once until the history can be read again: it is tried each second. */
  #unread(reason: string): void {
    if (!this.#isUnread) this.#deps.log.error({ reason }, "decision log: the history cannot be read or written");
    this.#isUnread = true;
  }
  #isUnread = false;

  /** Sends until the receiver has accepted everything, and moves the position to `seq`. Null when done. */
  async #sendUntil(batch: readonly QueuedEvent[], seq: number, settledSeq: number): Promise<PassEnd | null> {
    const { store, holder, metrics } = this.#deps;
    for (let attempt = 0; batch.length > 0; attempt++) {
      if (this.#closing.signal.aborted || (this.#isLast && attempt > 0)) return "ended";
      const cut = await this.#hold();
      if (cut !== null) return cut;
      // more was recorded while the receiver was unavailable
      const settled = attempt === 0 ? null : await store.settledSeq();
      const newest = settled?.ok === true ? settled.value : settledSeq;
      metrics.waits({ events: newest - (this.#place?.seq ?? 0), sinceMs: batch[0]?.row.decidedAtMs ?? null });
      const sent = await this.#deps.receiver.send(
        batch.map(({ text }) => text),
        this.#closing.signal,
      );
      metrics.attempted(sent.state);
      if (sent.state === "taken") break;
      if (sent.state === "failed") await this.#backOff(sent, batch);
      else if (batch.length === 1) return this.#sendLess(batch[0] as QueuedEvent, seq, settledSeq);
      else {
        const half = Math.ceil(batch.length / 2);
        const [first, second] = [batch.slice(0, half), batch.slice(half)];
        const ended = await this.#sendUntil(first, first.at(-1)?.row.seq ?? seq, settledSeq);
        return ended ?? this.#sendUntil(second, seq, settledSeq);
      }
    }
    if (batch.length > 0) this.#taken(batch.length);
    const moved = this.#place === null ? null : await store.moveLog(holder, this.#place.seq, seq);
    if (moved === null) return "not-ours";
    if (!moved.ok) {
      this.#unread(moved.error.message);
      return "history";
    }
    if (!moved.value.moved) {
      this.#place = null;
      return "not-ours";
    }
    if (this.#place !== null) this.#place = { ...this.#place, seq };
    return null;
  }

  /** An event that is too large for the receiver is sent without its snapshot, then without its input, and is finally dropped. */
  async #sendLess({ row, text }: QueuedEvent, seq: number, settledSeq: number): Promise<PassEnd | null> {
    const { form, log, metrics } = this.#deps;
    const smaller = [SNAPSHOT, INPUT].map((pointer) =>
      eventText(row, null, { ...form, erase: [...form.erase, pointer] }),
    );
    const next = smaller.find((one) => one.ok && one.value.length < text.length);
    if (next?.ok) return this.#sendUntil([{ row, text: next.value }], seq, settledSeq);
    metrics.lost("too-large", 1);
    log.error(
      { decisionId: row.id, bytes: Buffer.byteLength(text) },
      "the receiver of the decision log refuses a decision as too large: it is skipped, and stays in the history",
    );
    return this.#sendUntil([], seq, settledSeq);
  }

  #taken(events: number): void {
    const { log, metrics, receiver } = this.#deps;
    metrics.delivered(events);
    if (this.#failures > 0)
      log.info({ receiver: receiver.label, attempts: this.#failures + 1 }, "decision log delivered again");
    this.#failures = 0;
  }

  async #backOff(
    { reason, retryMs }: Extract<DeliveryResult, { state: "failed" }>,
    batch: readonly QueuedEvent[],
  ): Promise<void> {
    const { receiver, log } = this.#deps;
    const { least, most } = BACK_OFF_MS;
    const ms = Math.max(retryMs ?? 0, Math.min(most, least * 2 ** this.#failures));
    this.#failures++;
    log.warn(
      {
        receiver: receiver.label,
        reason,
        events: batch.length,
        since: batch[0]?.row.decidedAtMs,
        againInSeconds: ms / 1000,
      },
      "decision log not delivered: it waits in the history",
    );
    await this.#rest(ms);
  }
}
