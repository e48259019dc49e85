import { podManifest } from "../../kit/manifests.ts";

/** The fields of a container that tests set; the others have default values. */
export interface TestContainer {
  readonly name?: string;
  /** Commands for busybox's shell; absent: the container runs, and exits on SIGTERM. */
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
/** Exits at once on SIGTERM. */
export const SERVES = "trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done";
/** Ignores SIGTERM. */
export const STUBBORN = "trap '' TERM; while :; do sleep 0.2; done";

/** A pod on the host network with one container, `app`, and a short grace period. */
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
