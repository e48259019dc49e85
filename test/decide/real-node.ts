import { readFileSync } from "node:fs";
import { join } from "node:path";

const DIR = join(import.meta.dirname, "..", "data", "real-node");
const text = (file: string): string => readFileSync(join(DIR, file), "utf8");
// biome-ignore lint/suspicious/noExplicitAny: captured objects, looked into freely by tests
export const captured = (file: string): any => JSON.parse(text(file));

/** A node with a real kubelet 1.36.3 as its tools print it: 11 pods, static CPU and memory managers, cgroup v1. */
export const realSnapshot = (): Record<string, unknown> => ({
  node: captured("node.json"),
  pods: captured("pods.json"),
  kubeletConfiguration: captured("configz.json"),
  stats: captured("stats-summary.json"),
  machine: captured("machine.json"),
  cgroup: { version: 1, driver: "cgroupfs" },
  assignments: {
    cpu_manager_state: text("cpu_manager_state"),
    memory_manager_state: text("memory_manager_state"),
    allocated_pods_state: text("allocated_pods_state"),
  },
});
