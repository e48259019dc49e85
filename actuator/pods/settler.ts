import { DEADLINE_MESSAGE, DEADLINE_REASON, isStopped, pastDeadline } from "../lifecycle/finished.ts";
import type { PodEnd } from "../lifecycle/pod-end.ts";
import { finishedPhase } from "../lifecycle/pod-status.ts";
import type { PodRecord } from "../lifecycle/record.ts";
import { resizeRestarts } from "../lifecycle/resize-restarts.ts";
import type { PodStatus } from "../lifecycle/status/status.ts";
import type { Leavers } from "./leavers.ts";
import type { ManagerPorts } from "./manager-ports.ts";
import { endOf, waitingAgain } from "./pod-ends.ts";
import { PodEvents } from "./pod-events.ts";
import type { KnownPod, PodSet } from "./pod-set.ts";

export interface SettlerTies {
  readonly leavers: Pick<Leavers, "forget" | "isCleared" | "reopen">;
  readonly end: (uid: string, end: PodEnd) => void;
  readonly roomMade: () => void;
  /** The node is under pressure, by the last eviction pass. */
  readonly isShort: () => boolean;
  readonly retryMs: () => number;
}

/** Notes what has come to its end since the last turn, and has what is past its deadline end. */
export class Settler {
  readonly #ports: ManagerPorts;
  readonly #set: PodSet;
  readonly #ties: SettlerTies;

  constructor(ports: ManagerPorts, set: PodSet, ties: SettlerTies) {
    this.#ports = ports;
    this.#set = set;
    this.#ties = ties;
  }

  settle(untouched: (uid: string) => boolean, nowMs: number): void {
    for (const known of this.#set.living()) {
      if (!untouched(known.uid)) continue;
      if (known.record.state === "ends") this.#ending(known, nowMs);
      else this.#living(known, nowMs);
    }
    for (const known of this.#set.all())
      if (untouched(known.uid) && this.#isDueBack(known, nowMs)) this.#bringBack(known);
  }

  #ending(known: KnownPod, nowMs: number): void {
    const { uid, record, seen } = known;
    const { leavers, roomMade } = this.#ties;
    if (!isStopped(seen)) return;
    if (record.end?.cause === "deleted") {
      // it holds its room for as long as its record is there
      leavers.forget(uid, roomMade);
      return;
    }
    roomMade();
    if (comesBack(known)) this.#bringBack(known);
    else this.#set.records.hold(uid, this.#endedRecord(known, nowMs));
  }

  /**
   * What was evicted from a file: once all that it had is gone, the node is short of nothing, and the time between two
   * tries has passed, so that one that fills the disk does not do so all the time.
   */
  #isDueBack({ uid, pod, record, seen }: KnownPod, nowMs: number): boolean {
    const { state, end, file } = record;
    if (state !== "ended" || end?.cause !== "evicted" || file === undefined) return false;
    const { leavers, isShort, retryMs } = this.#ties;
    if (!leavers.isCleared(uid) || !isStopped(seen) || isShort()) return false;
    const age = nowMs - end.sinceMs;
    if (age >= 0 && age < retryMs()) return false;
    return finishedPhase(pod, seen, lastWords(record)) === null;
  }

  #bringBack({ uid, record }: KnownPod): void {
    this.#ties.leavers.reopen(uid);
    this.#set.records.hold(uid, waitingAgain(record));
    // how it ended says nothing of how it goes on
    this.#set.forget(uid);
  }

  #living(known: KnownPod, nowMs: number): void {
    const { uid, pod, record, seen } = known;
    const { end, roomMade } = this.#ties;
    if (pastDeadline(pod, record.admittedAtMs, nowMs)) {
      new PodEvents(pod, this.#ports.clock, this.#ports.onEvent).normal(DEADLINE_REASON, DEADLINE_MESSAGE);
      end(uid, endOf("deadline", DEADLINE_REASON, DEADLINE_MESSAGE, nowMs));
      return;
    }
    if (seen === null || !isStopped(seen) || resizeRestarts(record, seen).size > 0) return;
    if (finishedPhase(pod, seen, this.#set.statusOf(known, nowMs)) === null) return;
    roomMade();
    this.#set.records.hold(uid, this.#endedRecord(known, nowMs));
  }

  #endedRecord(known: KnownPod, nowMs: number): PodRecord {
    const record: PodRecord = { ...known.record, state: "ended" };
    return { ...record, status: { ...this.#set.statusOf({ ...known, record }, nowMs) } };
  }
}

/** What its containers said, without the end that the node put to it. */
const lastWords = ({ status }: PodRecord): PodStatus | null =>
  status === undefined ? null : { ...(status as unknown as PodStatus), phase: "Running" };

/**
 * It was displaced, and nobody else would ever start it again, as a controller does for a pod of an API. A deadline is
 * final, and so is what its containers say: none of them would be started again.
 */
function comesBack({ pod, record: { end, file }, seen }: KnownPod): boolean {
  const cause = end?.cause;
  const isAlone = pod.isStatic || cause === "drained" || (file !== undefined && cause === "preempted");
  return isAlone && cause !== "deadline" && finishedPhase(pod, seen, null) === null;
}
