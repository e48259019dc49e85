import { setTimeout as sleep } from "node:timers/promises";
import type { PodManager } from "./manager.ts";
import { endOf } from "./pod-ends.ts";

/** kubelet 1.36: nodeshutdown, of its pods' statuses. */
const REASON = "Terminated";
const MESSAGE = "Pod was terminated in response to imminent node shutdown.";
const LOOK_MS = 250;

/** Ends all pods, those of the lowest priority first, and waits until nothing of them runs. */
export async function drained(manager: PodManager, turn: () => Promise<void>): Promise<void> {
  // static pods are all critical, but not of one priority
  const groups = Map.groupBy(manager.set.living(), ({ pod }) => pod.spec.priority ?? 0);
  manager.drain();
  for (const [, group] of [...groups].sort(([a], [b]) => a - b)) {
    for (const { uid } of group) manager.end(uid, endOf("drained", REASON, MESSAGE, Date.now()));
    const isLeft = () => group.some(({ uid }) => manager.set.get(uid)?.record.state === "ends");
    while (isLeft()) {
      await turn();
      await sleep(LOOK_MS);
    }
  }
}
