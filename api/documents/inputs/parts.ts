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
  { option: "images", path: ["runtime", "images"], what: "the runtime's images (crictl images -o json)" },
  {
    option: "containers",
    path: ["runtime", "containers"],
    what: "the runtime's containers of every state (crictl ps -a -o json)",
  },
  { option: "sandboxes", path: ["runtime", "sandboxes"], what: "the runtime's pod sandboxes (crictl pods -o json)" },
  {
    option: "imagefs",
    path: ["runtime", "imageFilesystems"],
    what: "the runtime's file systems (crictl imagefsinfo -o json)",
  },
] as const;
export type PartOption = (typeof PARTS)[number]["option"];

/** The parts that no option of their own gives, or more than one. */
const OTHERS: readonly (readonly [path: string, advice: string])[] = [
  ["cgroup.version", "--cgroup-version 1 or 2"],
  ["observedAt", "--observed-at"],
  ["ask.pod", "--pod"],
  ["ask", "--ask"],
  ["stats.node.runtime.imageFs", "--stats, or --capacity and --available of `df -B1`"],
  ["runtime.podLogDirectories", "--snapshot with the names of /var/log/pods"],
  ["runtime.danglingLogLinks", "--snapshot with the dead links of /var/log/containers"],
];

/** The option that would have given a path of the snapshot or the ask: `stats.node.fs` -> `--stats`. */
export function optionFor(path: string): string {
  if (path.endsWith(".spec.overhead"))
    return "the pod with the overhead.podFixed of its RuntimeClass (`kubectl get runtimeclass NAME -o yaml`), {} where it has none";
  const other = OTHERS.find(([prefix]) => isBelow(path, prefix));
  if (other !== undefined) return other[1];
  // crictl ps does not print them
  if (/^runtime\.containers\[\d+\]\.mounts$/.test(path)) return "--pods of `kubectl get pods -A -o json`";
  if (path === "runtime")
    return "--images, --containers and --sandboxes of `crictl images`, `ps -a` and `pods` with `-o json`";
  const part = PARTS.find((one) => isBelow(path, one.path.join(".")));
  if (part === undefined) return "--snapshot";
  const command = /\((crictl [^)]*)\)$/.exec(part.what)?.[1];
  return command === undefined ? `--${part.option}` : `--${part.option} of \`${command}\``;
}
const isBelow = (path: string, prefix: string): boolean =>
  path === prefix || path.startsWith(`${prefix}.`) || path.startsWith(`${prefix}[`);
