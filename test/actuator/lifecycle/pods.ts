import {
  CONTAINER_HASH,
  type RuntimeContainer,
  type RuntimePod,
  type RuntimeSandbox,
} from "../../../actuator/containerd/port.ts";
import type { PodContainer, RunnablePod } from "../../../actuator/lifecycle/pod.ts";
import type { PodRecord } from "../../../actuator/lifecycle/record.ts";
import { PLAIN_CONTAINER, PLAIN_SPEC } from "../pods/plain-pod.ts";

/** The few fields of a v1.Pod that the rules look at. */
export interface SmallPod {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly generation?: number;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: string;
    readonly deletionGracePeriodSeconds?: number;
  };
  readonly spec: {
    readonly containers: readonly SmallContainer[];
    readonly initContainers?: readonly SmallContainer[];
    readonly restartPolicy: "Always" | "OnFailure" | "Never";
    readonly terminationGracePeriodSeconds: number;
    readonly activeDeadlineSeconds?: number;
    readonly hostNetwork?: boolean;
  };
}
export interface SmallContainer {
  readonly name: string;
  readonly image: string;
  readonly restartPolicy?: "Always";
  readonly resources?: Readonly<Record<string, unknown>>;
  readonly resizePolicy?: readonly unknown[];
}

const containerOf = ({ name, image, restartPolicy }: SmallContainer): PodContainer => ({
  ...PLAIN_CONTAINER,
  name,
  image,
  isSidecar: restartPolicy === "Always",
});

export function runnableOf(object: SmallPod): RunnablePod {
  const { metadata, spec } = object;
  return {
    namespace: metadata.namespace,
    name: metadata.name,
    uid: metadata.uid,
    labels: {},
    annotations: metadata.annotations ?? {},
    isStatic: metadata.annotations?.["kubernetes.io/config.source"] === "file",
    deletion:
      metadata.deletionTimestamp === undefined
        ? null
        : { atMs: Date.parse(metadata.deletionTimestamp), graceSeconds: metadata.deletionGracePeriodSeconds ?? 30 },
    spec: {
      ...PLAIN_SPEC,
      containers: spec.containers.map(containerOf),
      initContainers: (spec.initContainers ?? []).map(containerOf),
      restartPolicy: spec.restartPolicy,
      terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds,
      activeDeadlineSeconds: spec.activeDeadlineSeconds ?? null,
      hostNetwork: spec.hostNetwork ?? false,
    },
    object: { ...object },
  };
}

/** All containers of these tests are made from this definition; see CONTAINER_HASH. */
export const HASH = "same";
export const hashOf = (): string => HASH;

/** A pod with containers of these names; a `*` makes an init container a sidecar. */
export function podOf(
  own: readonly string[],
  init: readonly string[] = [],
  spec: Partial<SmallPod["spec"]> = {},
): SmallPod {
  return {
    metadata: { name: "p", namespace: "ns", uid: "u" },
    spec: {
      containers: own.map((name) => ({ name, image: "i" })),
      initContainers: init.map((name) => ({
        name: name.replace("*", ""),
        image: "i",
        ...(name.endsWith("*") && { restartPolicy: "Always" as const }),
      })),
      restartPolicy: "Always",
      terminationGracePeriodSeconds: 30,
      ...spec,
    },
  };
}

/** A ready sandbox, `s0`, with these containers, the newest first. */
export const seenOf = (...containers: readonly RuntimeContainer[]): RuntimePod => ({
  namespace: "ns",
  name: "p",
  uid: "u",
  sandboxes: [sandboxOf("s0")],
  containers,
});
export const sandboxOf = (id: string, more: Partial<RuntimeSandbox> = {}): RuntimeSandbox => ({
  id,
  attempt: 0,
  isReady: true,
  createdAtMs: 0,
  ips: ["10.0.0.2"],
  labels: {},
  annotations: {},
  ...more,
});
export const instanceOf = (name: string, more: Partial<RuntimeContainer> = {}): RuntimeContainer => ({
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
export const recordOf = (object: SmallPod, more: Partial<PodRecord> = {}): PodRecord => ({
  version: 1,
  pod: { ...object },
  state: "active",
  seenAtMs: 0,
  admittedAtMs: 1000,
  refusal: null,
  end: null,
  backOff: {},
  resize: null,
  ...more,
});
