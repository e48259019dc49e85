import type { PodRecord } from "../lifecycle/record.ts";
import { systemClock } from "./clock.ts";
import type { PodManager } from "./manager.ts";
import { endOf } from "./pod-ends.ts";

/** kubelet 1.36: nodeshutdown, of its pods' statuses. */
const REASON = "Terminated";
const MESSAGE = "Pod was terminated in response to imminent node shutdown.";
const LOOK_MS = 250;
/** How long the last pass over the cgroups is waited for. */
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
    const inState = (state: PodRecord["state"]) =>
      group.filter(({ uid }) => manager.set.get(uid)?.record.state === state);
    for (const { uid } of inState("lives")) manager.end(uid, endOf("drained", REASON, MESSAGE, clock.nowMs()));
    while (inState("ends").length > 0) {
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
