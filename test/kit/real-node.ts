import { readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * The path of a file of the captured node: a node with a real kubelet 1.36.3, 11 pods, static CPU and memory managers,
 * and cgroup v1.
 */
export const realNode = (file: string): string => join(import.meta.dirname, "../data/real-node", file);
export const capturedText = (file: string): string => readFileSync(realNode(file), "utf8");
// biome-ignore lint/suspicious/noExplicitAny: captured objects, looked into freely by tests
export const captured = (file: string): any => JSON.parse(capturedText(file));

/**
 * The captured node, assembled from its tools' output; `snapshot.json` contains it as a caller posts it.
 * test/contract/captured.ts contains it without files.
 */
export const realSnapshot = (): Record<string, unknown> => ({
  node: captured("node.json"),
  pods: captured("pods.json"),
  kubeletConfiguration: captured("configz.json"),
  stats: captured("stats-summary.json"),
  machine: captured("machine.json"),
  cgroup: { version: 1, driver: "cgroupfs" },
  assignments: {
    cpu_manager_state: capturedText("cpu_manager_state"),
    memory_manager_state: capturedText("memory_manager_state"),
    allocated_pods_state: capturedText("allocated_pods_state"),
  },
});
/** The lists of the captured node's runtime, as crictl prints them. */
export const realRuntime = (): Record<string, unknown> => ({
  images: captured("images.json"),
  containers: captured("containers.json"),
  sandboxes: captured("sandboxes.json"),
  imageFilesystems: captured("imagefs.json"),
});
/** The lists of the captured node's runtime, as a caller posts them. */
export const realLists = (): Record<string, unknown> => ({
  images: captured("images.json").images,
  containers: captured("containers.json").containers,
  sandboxes: captured("sandboxes.json").items,
});

export interface NodeAndPods {
  node: { metadata: { name: string } };
  pods?: { spec: object }[];
  stats?: { node?: object };
}
/** The same snapshot under another node's name, which its pods and stats also have. */
export function renamed<S extends NodeAndPods>(snapshot: S, name: string): S {
  snapshot.node.metadata.name = name;
  for (const pod of snapshot.pods ?? []) pod.spec = { ...pod.spec, nodeName: name };
  if (snapshot.stats?.node !== undefined) snapshot.stats.node = { ...snapshot.stats.node, nodeName: name };
  return snapshot;
}
/**
 * The captured node under another name, optionally with another kubelet version; then without the one field that not
 * every version knows.
 */
export function capturedNode(name: string, kubeletVersion?: string): NodeAndPods & Record<string, unknown> {
  const snapshot = captured("snapshot.json");
  if (kubeletVersion !== undefined) {
    snapshot.node.status.nodeInfo.kubeletVersion = kubeletVersion;
    snapshot.kubeletConfiguration.memoryReservationPolicy = undefined;
  }
  return renamed(snapshot, name);
}
