import type { PodContainer, RunnablePod } from "../../../actuator/lifecycle/pod.ts";
import type { PodRecord } from "../../../actuator/lifecycle/record.ts";
import { container, sidecar } from "../../kit/containers.ts";
import { podOf } from "../../kit/pods.ts";
import { runnable, runnableContainer } from "../../kit/runnable-pods.ts";

/** The few fields of a v1.Pod that the rules use. */
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

const listed = (containers: readonly SmallContainer[]): readonly PodContainer[] =>
  containers.map(({ name, image, restartPolicy }) =>
    runnableContainer(name, { image, isSidecar: restartPolicy === "Always" }),
  );

export function runnableOf(object: SmallPod): RunnablePod {
  const { metadata, spec } = object;
  return runnable(
    {
      containers: listed(spec.containers),
      initContainers: listed(spec.initContainers ?? []),
      restartPolicy: spec.restartPolicy,
      terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds,
      activeDeadlineSeconds: spec.activeDeadlineSeconds ?? null,
      hostNetwork: spec.hostNetwork ?? false,
    },
    {
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
      object: { ...object },
    },
  );
}

/** A pod with containers of these names; `*` marks an init container as a sidecar. */
export function smallPod(
  own: readonly string[],
  init: readonly string[] = [],
  spec: Partial<SmallPod["spec"]> = {},
): SmallPod {
  const image = { image: "i" };
  const initContainers = init.map((name) =>
    name.endsWith("*")
      ? sidecar(name.slice(0, -1), undefined, undefined, image)
      : container(name, undefined, undefined, image),
  );
  return podOf(
    own.map((name) => container(name, undefined, undefined, image)),
    { initContainers, restartPolicy: "Always", terminationGracePeriodSeconds: 30, ...spec },
    { metadata: { name: "p", namespace: "ns", uid: "u" } },
  ) as unknown as SmallPod;
}

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
