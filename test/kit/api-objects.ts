import { container } from "./containers.ts";
import type { Json } from "./snapshots.ts";

/** Objects of an API server for a running pod: the pod, its node, and the events of both. */
export const AT = "2026-01-31T12:00:00Z";
export const LATER = "2026-01-31T12:10:00Z";
export interface Made {
  readonly containers?: readonly Json[];
  readonly spec?: Json;
  readonly status?: Json;
  readonly metadata?: Json;
}
/** `shop/web` on node n1, by default running and ready since `AT`. */
export function pod({ containers = [container("app")], spec, status, metadata }: Made = {}): Json {
  const statuses = containers.map(({ name }) => ({
    name,
    ready: true,
    started: true,
    restartCount: 0,
    state: { running: { startedAt: AT } },
  }));
  return {
    kind: "Pod",
    metadata: { name: "web", namespace: "shop", uid: "u-web", creationTimestamp: AT, ...metadata },
    spec: { nodeName: "n1", containers, ...spec },
    status: { phase: "Running", startTime: AT, qosClass: "Burstable", containerStatuses: statuses, ...status },
  };
}
export const node = (name = "n1", more: Json = {}, metadata: Json = {}): Json => ({
  kind: "Node",
  metadata: { name, ...metadata },
  status: {
    capacity: { cpu: "4", memory: "8Gi", pods: "110" },
    allocatable: { cpu: "4", memory: "8Gi", pods: "110" },
    conditions: [{ type: "Ready", status: "True" }],
    nodeInfo: { kubeletVersion: "v1.36.3" },
    ...more,
  },
});
export const event = (reason: string, message: string, more: Json = {}): Json => ({
  kind: "Event",
  involvedObject: { kind: "Pod", namespace: "shop", name: "web", uid: "u-web", fieldPath: "spec.containers{app}" },
  type: "Warning",
  reason,
  message,
  count: 1,
  firstTimestamp: AT,
  lastTimestamp: AT,
  source: { component: "kubelet", host: "n1" },
  ...more,
});
