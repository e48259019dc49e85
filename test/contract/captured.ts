import kubeletConfiguration from "../data/real-node/configz.json" with { type: "json" };
import containers from "../data/real-node/containers.json" with { type: "json" };
import imageFilesystems from "../data/real-node/imagefs.json" with { type: "json" };
import images from "../data/real-node/images.json" with { type: "json" };
import machine from "../data/real-node/machine.json" with { type: "json" };
import node from "../data/real-node/node.json" with { type: "json" };
import pods from "../data/real-node/pods.json" with { type: "json" };
import sandboxes from "../data/real-node/sandboxes.json" with { type: "json" };
import snapshot from "../data/real-node/snapshot.json" with { type: "json" };
import stats from "../data/real-node/stats-summary.json" with { type: "json" };

/** The captured node as a caller posts it; without the file system, so that it can be had inside workerd too. */
export const capturedSnapshot = (over: Readonly<Record<string, unknown>> = {}): Record<string, unknown> => ({
  observedAt: snapshot.observedAt,
  node,
  pods,
  kubeletConfiguration,
  stats,
  machine,
  cgroup: { version: 1, driver: "cgroupfs" },
  runtime: { images, containers, sandboxes, imageFilesystems },
  assignments: snapshot.assignments,
  ...over,
});
