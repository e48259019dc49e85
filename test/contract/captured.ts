import allocatedPodsState from "../data/real-node/allocated_pods_state?raw";
import kubeletConfiguration from "../data/real-node/configz.json" with { type: "json" };
import containers from "../data/real-node/containers.json" with { type: "json" };
import cpuManagerState from "../data/real-node/cpu_manager_state?raw";
import imageFilesystems from "../data/real-node/imagefs.json" with { type: "json" };
import images from "../data/real-node/images.json" with { type: "json" };
import machine from "../data/real-node/machine.json" with { type: "json" };
import memoryManagerState from "../data/real-node/memory_manager_state?raw";
import node from "../data/real-node/node.json" with { type: "json" };
import pods from "../data/real-node/pods.json" with { type: "json" };
import sandboxes from "../data/real-node/sandboxes.json" with { type: "json" };
import stats from "../data/real-node/stats-summary.json" with { type: "json" };

/** The captured node as a caller posts it. It is imported, so that workerd, which has no file system, can use it. */
export const capturedSnapshot = (over: Readonly<Record<string, unknown>> = {}): Record<string, unknown> => ({
  observedAt: "2026-11-21T06:24:51.566Z",
  node,
  pods,
  kubeletConfiguration,
  stats,
  machine,
  cgroup: { version: 1, driver: "cgroupfs" },
  runtime: { images, containers, sandboxes, imageFilesystems },
  assignments: {
    cpu_manager_state: cpuManagerState,
    memory_manager_state: memoryManagerState,
    allocated_pods_state: allocatedPodsState,
  },
  ...over,
});
