import { ok, type Result, unreachable } from "../../api/base/result.ts";
import type { Problem } from "../core/interfaces.ts";
import { type PodAction, type PodLifecycleEvent, podTransition, type Transition } from "../lifecycle/pod-state.ts";
import type { Counters } from "../status/counters.ts";
import type { PodClock } from "./pod-clock.ts";
import type { KnownPod, PodSet } from "./records/pod-set.ts";
import type { PodEventRecorder, PodRecords } from "./records/records.ts";

interface Parts {
  readonly records: PodRecords;
  readonly set: PodSet;
  readonly queue: { interrupt(uid: string): void };
  /** Removes what a pod leaves; `then` is called when everything is gone. */
  readonly cleanup: { remove(known: KnownPod, then: () => void): void; reopen(uid: string): void };
  readonly capacity: { free(): void };
  readonly backOff: { forget(uid: string): void };
}
interface Deps {
  readonly clock: PodClock;
  readonly eventsOf: PodEventRecorder;
  readonly onProblem: (problem: Problem) => void;
  /** The counters; absent: nothing is counted. */
  readonly counters?: Pick<Counters, "refused" | "evicted" | "preempted">;
}

/**
 * Carries out the transitions of pods (`podTransition`).
 * INVARIANT: a record is persisted before anything of its pod is started, stopped or reported because of it.
 */
export class PodLifecycle {
  readonly #deps: Deps;
  readonly #parts: Parts;

  constructor(deps: Deps, parts: Parts) {
    this.#deps = deps;
    this.#parts = parts;
  }

  /**
   * Handles an event; an event that does not apply in the pod's state changes nothing. Returns why the record could not be
   * persisted; null: it is. A full disk does not prevent a pod's end or its wait for a restart: those events always
   * succeed (`durabilityOf`).
   */
  handle(uid: string, event: PodLifecycleEvent): string | null {
    const { records, set } = this.#parts;
    const known = set.get(uid);
    const next = podTransition(records.get(uid) ?? null, event);
    if (next.kind === "ignored") return null;
    const persisted = this.#persist(uid, known, next);
    if (!persisted.ok) return persisted.error;
    for (const action of next.actions) this.#execute(uid, known, action);
    return null;
  }

  /** Adds the last status to the record once nothing of the pod runs any more. Error: nothing has changed. */
  #persist(uid: string, known: KnownPod | null, next: Transition): Result<null, string> {
    const { records, set } = this.#parts;
    if (next.kind === "removed") return records.delete(uid);
    if (next.kind !== "becomes") return ok(null);
    const { record, durability } = next;
    if (!next.isFinal || known === null) return records.persist(uid, record, durability);
    const status = { ...set.statusOf({ ...known, record }, this.#deps.clock.nowMs()) };
    return records.persist(uid, { ...record, status }, durability);
  }

  #execute(uid: string, known: KnownPod | null, action: PodAction): void {
    const { set, queue, cleanup, capacity, backOff } = this.#parts;
    switch (action.kind) {
      case "interruptSync":
        queue.interrupt(uid);
        break;
      case "recordEvent":
        if (known !== null) this.#deps.eventsOf(known.pod).record(action.type, action.reason, action.message);
        break;
      case "count":
        this.#count(action);
        break;
      case "cleanUp":
        if (known === null) this.#cleanedUp(uid);
        else cleanup.remove(known, () => this.#cleanedUp(uid));
        break;
      case "forgetRun":
        set.forget(uid);
        cleanup.reopen(uid);
        break;
      case "freeCapacity":
        capacity.free();
        break;
      case "retryAdmission":
        backOff.forget(uid);
        break;
      default:
        unreachable(action);
    }
  }

  #cleanedUp(uid: string): void {
    const fault = this.handle(uid, { kind: "CleanedUp" });
    if (fault !== null) this.#deps.onProblem({ from: "pods", message: fault });
  }

  #count(action: Extract<PodAction, { readonly kind: "count" }>): void {
    const { counters } = this.#deps;
    if (action.of === "preempted") counters?.preempted();
    else counters?.[action.of](action.label);
  }
}
