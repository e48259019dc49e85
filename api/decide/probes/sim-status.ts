import type { SimContainer } from "./sim-container.ts";
import { RESTART_GRACE_MS } from "./worker.ts";

export interface StatusInput {
  /** When the kubelet restarted; null: it has long run. */
  readonly managerStartMs: number | null;
  /** What the pod's condition Ready was before. */
  readonly wasPodReady: boolean;
  readonly triggers: boolean;
}

/** What one container's status is made of, and readiness probed out of turn if it is not ready. kubelet 1.36: manager.UpdatePodStatus. */
export function updateStatus(container: SimContainer, input: StatusInput): void {
  container.isStarted = isStarted(container);
  if (!container.isStarted) return;
  if (container.storedBy("readiness") === "Success") {
    container.isReady = true;
    return;
  }
  const lane = container.lane("readiness");
  const hasWorker = lane?.isRunning === true;
  let isReady = !hasWorker;
  const startedAtMs = container.run?.startedAtMs ?? 0;
  const { managerStartMs, wasPodReady } = input;
  // what ran before the kubelet did stays as it was until it is probed
  if (managerStartMs !== null && startedAtMs < managerStartMs - RESTART_GRACE_MS) {
    isReady ||= container.storedBy("readiness") === null;
    if (lane !== undefined && !wasPodReady) isReady = false;
  }
  container.isReady = isReady;
  if (hasWorker && input.triggers) lane?.trigger();
}

/** kubelet 1.36: manager.isContainerStarted. */
function isStarted(container: SimContainer): boolean {
  if (container.state !== "running") return false;
  const stored = container.storedBy("startup");
  if (stored !== null) return stored === "Success";
  return container.isStarted || container.lane("startup")?.isRunning !== true;
}
