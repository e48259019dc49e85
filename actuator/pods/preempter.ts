import type { Victim } from "../../api/model/preemption.ts";
import type { PodEnd } from "../lifecycle/pod-end.ts";
import type { ManagerPorts } from "./manager-ports.ts";
import { PodEvents } from "./pod-events.ts";
import type { PodSet } from "./pod-set.ts";

/** kubelet 1.36: evictPodsToFreeRequests. */
const PREEMPTED = { reason: "Preempting", message: "Preempted in order to admit critical pod" };

/** Ends pods that must make room for another one. */
export class Preempter {
  readonly #ports: Pick<ManagerPorts, "clock" | "onEvent" | "counters">;
  readonly #set: PodSet;
  /** Who ends a pod: the manager. */
  onEnd: (uid: string, end: PodEnd) => void = () => {};

  constructor(ports: Pick<ManagerPorts, "clock" | "onEvent" | "counters">, set: PodSet) {
    this.#ports = ports;
    this.#set = set;
  }

  /** Ends them all. Answers their names. */
  preemptAll(victims: readonly Victim[], decisionId: string | null): string {
    for (const victim of victims) this.#preempt(victim, decisionId);
    return victims.map(({ namespace, name }) => `${namespace}/${name}`).join(", ");
  }

  #preempt({ uid }: Victim, decisionId: string | null): void {
    const victim = this.#set.get(uid);
    if (victim === null || victim.record.state !== "lives") return;
    const { clock, onEvent, counters } = this.#ports;
    new PodEvents(victim.pod, clock, onEvent).warning(PREEMPTED.reason, PREEMPTED.message);
    this.onEnd(uid, { cause: "preempted", ...PREEMPTED, sinceMs: clock.nowMs(), graceSeconds: null, decisionId });
    counters?.preempted();
  }
}
