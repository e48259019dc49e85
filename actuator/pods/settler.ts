import { DEADLINE_MESSAGE, DEADLINE_REASON, isStopped, pastDeadline } from "../lifecycle/finished.ts";
import type { PodEnd } from "../lifecycle/pod-end.ts";
import { finishedPhase } from "../lifecycle/pod-status.ts";
import type { PodRecord } from "../lifecycle/record.ts";
import { resizeRestarts } from "../lifecycle/resize-restarts.ts";
import type { Leavers } from "./leavers.ts";
import type { ManagerPorts } from "./manager-ports.ts";
import { endOf, waitingAgain } from "./pod-ends.ts";
import { PodEvents } from "./pod-events.ts";
import type { KnownPod, PodSet } from "./pod-set.ts";

export interface SettlerTies {
  readonly leavers: Pick<Leavers, "forget">;
  readonly end: (uid: string, end: PodEnd) => void;
  readonly roomMade: () => void;
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
    const isBack = comesBack(known);
    this.#set.records.hold(uid, isBack ? waitingAgain(record) : this.#endedRecord(known, nowMs));
    // how it ended says nothing of how it goes on
    if (isBack) this.#set.forget(uid);
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

/**
 * It was displaced, and nobody else would ever start it again. A deadline is final, and so is what its containers say:
 * none of them would be started again.
 */
const comesBack = ({ pod, record: { end }, seen }: KnownPod): boolean =>
  end?.cause !== "deadline" && (pod.isStatic || end?.cause === "drained") && finishedPhase(pod, seen, null) === null;
