import {
  CONTAINER_HASH,
  type RuntimeContainer,
  type RuntimePod,
  type RuntimeSandbox,
} from "../../actuator/containerd/cri.ts";

/** The hash of the definition of all seen containers; see CONTAINER_HASH. */
export const HASH = "same";
export const hashOf = (): string => HASH;

/** The pod `p` as the daemon sees it in the runtime: a ready sandbox, `s0`, with these containers, the newest first. */
export const seenPod = (...containers: readonly RuntimeContainer[]): RuntimePod => ({
  namespace: "ns",
  name: "p",
  uid: "u",
  sandboxes: [seenSandbox("s0")],
  containers,
});
/** A ready sandbox as the daemon sees it. */
export const seenSandbox = (id: string, more: Partial<RuntimeSandbox> = {}): RuntimeSandbox => ({
  id,
  attempt: 0,
  isReady: true,
  createdAtMs: 0,
  ips: ["10.0.0.2"],
  labels: {},
  annotations: {},
  ...more,
});
/** The running container of this name in `s0`, as the daemon sees it. */
export const seenContainer = (name: string, more: Partial<RuntimeContainer> = {}): RuntimeContainer => ({
  id: `${name}-${more.attempt ?? 0}`,
  name,
  attempt: 0,
  sandboxId: "s0",
  state: "running",
  createdAtMs: 1000,
  startedAtMs: 2000,
  finishedAtMs: more.state === "exited" ? 3000 : null,
  exitCode: 0,
  reason: "",
  message: "",
  image: "i",
  imageId: "sha256:i",
  logPath: "",
  labels: {},
  annotations: { [CONTAINER_HASH]: HASH },
  ...more,
});
