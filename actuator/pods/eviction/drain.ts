import { endOf } from "../../lifecycle/pod-state.ts";
import type { PodState } from "../../lifecycle/record.ts";
import type { PodManager } from "../manager.ts";
import { systemClock } from "../ports.ts";

/** kubelet 1.36: nodeshutdown, of its pods' statuses. */
const REASON = "Terminated";
const MESSAGE = "Pod was terminated in response to imminent node shutdown.";
const LOOK_MS = 250;
/** The longest wait for the last pass over the cgroups. */
const CGROUPS_MS = 10_000;

/**
 * Ends all pods, those of the lowest priority first, and waits until nothing of them runs and their cgroups are gone. What
 * is ending already goes on as it was told to.
 */
export async function drained(manager: PodManager, turn: () => Promise<void>, clock = systemClock): Promise<void> {
  // static pods are all critical, but not of one priority
  const groups = Map.groupBy(manager.set.living(), ({ pod }) => pod.spec.priority ?? 0);
  manager.drain();
  for (const [, group] of [...groups].sort(([a], [b]) => a - b)) {
    const inState = (state: PodState) => group.filter(({ uid }) => manager.set.get(uid)?.record.state === state);
    const end = endOf(REASON, MESSAGE, clock.nowMs());
    for (const { uid } of group) manager.lifecycle.handle(uid, { kind: "Drained", end });
    while (inState("terminating").length > 0) {
      await turn();
      await clock.sleep(LOOK_MS);
    }
  }
  const untilMs = clock.monotonicMs() + CGROUPS_MS;
  while ((manager.view?.pods.size ?? 0) > 0 && clock.monotonicMs() < untilMs) {
    await turn();
    await clock.sleep(LOOK_MS);
  }
}
