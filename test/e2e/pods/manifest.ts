import { podManifest } from "../../kit/manifests.ts";

/** Where a test says what it needs of a container; the rest is as in most. */
export interface TestContainer {
  readonly name?: string;
  /** Commands of busybox's shell; absent: it runs, and ends when it is told to. */
  readonly script?: string;
  readonly requests?: object;
  readonly limits?: object;
  readonly [field: string]: unknown;
}
export interface TestPod {
  readonly metadata?: object;
  readonly uid?: string;
  readonly containers?: readonly TestContainer[];
  readonly [field: string]: unknown;
}

export const IMAGE = "localhost/busybox:1";
export const NODE_NAME = "e2e";
/** Ends at once when it is told to, as one that is asked to wait for a signal does. */
export const SERVES = "trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done";
/** Does not hear. */
export const STUBBORN = "trap '' TERM; while :; do sleep 0.2; done";

/** A pod on the host's network with one container, `app`, of little grace. */
export function podOf(name: string, { metadata, uid, containers = [{}], ...spec }: TestPod = {}): object {
  return podManifest(name, {
    metadata: { namespace: "default", ...(uid === undefined ? {} : { uid }), ...metadata },
    spec: {
      hostNetwork: true,
      terminationGracePeriodSeconds: 2,
      ...spec,
      containers: containers.map(containerOf),
      ...("initContainers" in spec
        ? { initContainers: (spec["initContainers"] as readonly TestContainer[]).map(containerOf) }
        : {}),
    },
  });
}

function containerOf({ name = "app", script = SERVES, requests, limits, ...more }: TestContainer): object {
  const resources = { ...(requests === undefined ? {} : { requests }), ...(limits === undefined ? {} : { limits }) };
  return { name, image: IMAGE, imagePullPolicy: "IfNotPresent", command: ["sh", "-c", script], resources, ...more };
}
