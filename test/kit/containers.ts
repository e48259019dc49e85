import type { Json } from "./snapshots.ts";

/** A container as in a pod's spec; `more` adds fields. */
export const container = (name: string, requests?: Json, limits?: Json, more: Json = {}): Json => ({
  name,
  ...((requests ?? limits) !== undefined && {
    resources: { ...(requests && { requests }), ...(limits && { limits }) },
  }),
  ...more,
});
/** An init container with restartPolicy Always, which keeps running beside the others. */
export const sidecar = (name: string, requests?: Json, limits?: Json, more: Json = {}): Json =>
  container(name, requests, limits, { restartPolicy: "Always", ...more });

/** The status of a running container. */
export const running = (name: string, id: string): Json => ({
  name,
  containerID: `containerd://${id}`,
  state: { running: { startedAt: "2026-01-31T12:00:00Z" } },
});
