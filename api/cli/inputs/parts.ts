/** One option a part of a snapshot, and where it stands in it. */
export const PARTS = [
  { option: "node", path: ["node"], what: "v1.Node (kubectl get node NAME -o json)" },
  { option: "pods", path: ["pods"], what: "pods: a PodList, a List, one Pod, or manifests" },
  { option: "config", path: ["kubeletConfiguration"], what: "KubeletConfiguration, or the kubelet's /configz" },
  { option: "stats", path: ["stats"], what: "the kubelet's /stats/summary" },
  {
    option: "machine",
    path: ["machine"],
    what: "CPUs and NUMA nodes, cAdvisor's MachineInfo, or a name of `nodewise machines`",
  },
  { option: "cpu-manager-state", path: ["assignments", "cpu_manager_state"], what: "the kubelet's file of that name" },
  {
    option: "memory-manager-state",
    path: ["assignments", "memory_manager_state"],
    what: "the kubelet's file of that name",
  },
  {
    option: "allocated-pods",
    path: ["assignments", "allocated_pods_state"],
    what: "the kubelet's allocated_pods_state",
  },
  {
    option: "device-checkpoint",
    path: ["assignments", "kubelet_internal_checkpoint"],
    what: "the device manager's kubelet_internal_checkpoint",
  },
  { option: "devices", path: ["devices"], what: "devices as plugins list them" },
  {
    option: "device-plugins",
    path: ["devicePlugins"],
    what: "plugins: whether they are registered, their options, what they prefer",
  },
] as const;
export type PartOption = (typeof PARTS)[number]["option"];

/** The option that would have given a path of the snapshot or the ask: `stats.node.fs` -> `--stats`. */
export function optionFor(path: string): string {
  if (path === "cgroup.version") return "--cgroup-version 1 or 2";
  if (path === "observedAt") return "--observed-at";
  if (isBelow(path, "ask.pod")) return "--pod";
  if (isBelow(path, "ask")) return "--ask";
  const part = PARTS.find((one) => isBelow(path, one.path.join(".")));
  return part === undefined ? "--snapshot" : `--${part.option}`;
}
const isBelow = (path: string, prefix: string): boolean =>
  path === prefix || path.startsWith(`${prefix}.`) || path.startsWith(`${prefix}[`);
