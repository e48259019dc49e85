import type { Json } from "./snapshots.ts";

/** A time as the runtime writes it. */
export const unixNanos = (epochMs: number): string => `${epochMs}000000`;
/** The labels that the kubelet gives each container of a pod. */
export const podLabels = (name: string, namespace = "default", uid = `uid-${name}`): Json => ({
  "io.kubernetes.pod.name": name,
  "io.kubernetes.pod.namespace": namespace,
  "io.kubernetes.pod.uid": uid,
});

/** An image of 100 MiB, as the runtime lists it; `more` joins it. */
export const runtimeImage = (id: string, more: Json = {}): Json => ({ id, size: 100 * 2 ** 20, ...more });
/** An exited container `c`, as the runtime lists it. */
export const runtimeContainer = (id: string, more: Json = {}): Json => ({
  id,
  metadata: { name: "c", attempt: 0 },
  state: "CONTAINER_EXITED",
  createdAt: "1",
  ...more,
});
/** A sandbox of the pod that is not ready, as the runtime lists it. */
export const runtimeSandbox = (id: string, pod: string, more: Json = {}): Json => ({
  id,
  metadata: { name: pod, namespace: "default", uid: `uid-${pod}`, attempt: 0 },
  state: "SANDBOX_NOTREADY",
  createdAt: "1",
  ...more,
});
