import { fieldsOf, isObject } from "../../base/own.ts";
import { configurationPath } from "../../model/kubelet-configuration.ts";
import { type DocumentForm, formOf, formText, hasForm, isConfiguration } from "../document-form.ts";
import type { Path } from "../problem.ts";

/** One option per part of a snapshot, with the part's path. */
export const PARTS = [
  { option: "node", path: ["node"], what: "v1.Node (kubectl get node NAME -o json)" },
  { option: "pods", path: ["pods"], what: "pods: a PodList, a List, one Pod, or manifests" },
  { option: "config", path: ["kubeletConfiguration"], what: "KubeletConfiguration, or the kubelet's /configz" },
  { option: "stats", path: ["stats"], what: "the kubelet's /stats/summary" },
  {
    option: "machine",
    path: ["machine"],
    what: "CPUs and NUMA nodes: `lscpu -J` (or `lscpu -J -e`), cAdvisor's MachineInfo, or a name of `nodewise machines`",
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
  {
    option: "resource-claims",
    path: ["dra", "resourceClaims"],
    what: "ResourceClaims (kubectl get resourceclaims -A -o json)",
  },
  {
    option: "resource-slices",
    path: ["dra", "resourceSlices"],
    what: "ResourceSlices (kubectl get resourceslices -o json)",
  },
  {
    option: "device-classes",
    path: ["dra", "deviceClasses"],
    what: "DeviceClasses (kubectl get deviceclasses -o json)",
  },
  {
    option: "dra-drivers",
    path: ["dra", "drivers"],
    what: "DRA drivers: a list of {name, registered, services, answers} (nodewise schema dra-drivers)",
  },
  { option: "dra-state", path: ["assignments", "dra_manager_state"], what: "the kubelet's dra_manager_state" },
  { option: "dra-health", path: ["assignments", "dra_health_state"], what: "the kubelet's dra_health_state" },
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
  { option: "runtime-info", path: ["runtime", "info"], what: "how the runtime is set (crictl info)" },
] as const;
export type PartOption = (typeof PARTS)[number]["option"];

/** The parts with no option of their own, or with more than one. */
const OTHERS: readonly (readonly [path: string, advice: string])[] = [
  ["cgroup.version", "--cgroup-version 1 or 2"],
  ["observedAt", "--observed-at"],
  ["ask.pod", "--pod"],
  ["ask", "--ask"],
  ["stats.node.runtime.imageFs", "--stats, or --capacity and --available of `df -B1`"],
  ["runtime.podLogDirectories", "--snapshot with the names of /var/log/pods"],
  ["runtime.danglingLogLinks", "--snapshot with the dead links of /var/log/containers"],
];

/** The option that gives a path of the snapshot or the ask: `stats.node.fs` -> `--stats`. */
function optionFor(path: string): string {
  if (path.endsWith(".spec.overhead"))
    return "the pod with the overhead.podFixed of its RuntimeClass (`kubectl get runtimeclass NAME -o yaml`), {} where it has none";
  const other = OTHERS.find(([prefix]) => isBelow(path, prefix));
  if (other !== undefined) return other[1];
  // `crictl ps` does not print mounts
  if (/^runtime\.containers\[\d+\]\.mounts$/.test(path)) return "--pods of `kubectl get pods -A -o json`";
  if (path === "runtime")
    return "--images, --containers and --sandboxes of `crictl images`, `ps -a` and `pods` with `-o json`";
  const part = PARTS.find((one) => isBelow(path, one.path.join(".")));
  if (part === undefined) return "--snapshot";
  const command = /\((crictl [^)]*)\)$/.exec(part.what)?.[1];
  return command === undefined ? `--${part.option}` : `--${part.option} of \`${command}\``;
}

/** How to provide a missing input: the option for it, or what is missing in the stats, the Node or the machine that were given. */
export function adviceFor(
  path: string,
  { stats, machine, node }: { readonly stats?: unknown; readonly machine?: unknown; readonly node?: unknown },
): string {
  // the machine was read from lscpu, which does not have memory
  if (path === "machine.numaNodes" && machine !== undefined && machine !== null)
    return "give --machine of a file that has it, in the place of lscpu's";
  if (path.startsWith("node.") && node !== undefined && node !== null)
    return `the Node that was given has no ${path.slice("node.".length)}; give all of it, as \`kubectl get node NAME -o json\` prints it`;
  if (stats === undefined || stats === null || !path.startsWith("stats.")) return `give ${optionFor(path)}`;
  return `the given stats have no ${path.slice("stats.".length)}${optionFor(path).replace("--stats", "")}`;
}
/** Whether a path equals another, or lies below it. */
export const isBelow = (path: string, prefix: string): boolean =>
  path === prefix || path.startsWith(`${prefix}.`) || path.startsWith(`${prefix}[`);

/** The forms that an option accepts; pods have a reader of their own, and a configuration may be any subset. */
const TAKES: Readonly<Record<Exclude<PartOption, "pods">, readonly DocumentForm[]>> = {
  node: ["v1.Node"],
  config: ["KubeletConfiguration", "/configz"],
  stats: ["/stats/summary"],
  machine: ["machine"],
  "cpu-manager-state": ["cpu_manager_state"],
  "memory-manager-state": ["memory_manager_state"],
  "allocated-pods": ["allocated_pods_state"],
  "device-checkpoint": ["kubelet_internal_checkpoint"],
  devices: ["devices"],
  "device-plugins": ["devicePlugins"],
  "resource-claims": ["resourceClaims"],
  "resource-slices": ["resourceSlices"],
  "device-classes": ["deviceClasses"],
  "dra-drivers": ["draDrivers"],
  "dra-state": ["dra_manager_state"],
  "dra-health": ["dra_health_state"],
  images: ["crictl images"],
  containers: ["crictl ps"],
  sandboxes: ["crictl pods"],
  imagefs: ["crictl imagefsinfo"],
  "runtime-info": ["crictl info"],
};

/** Why a document does not suit an option: what it is, what was expected, and which option accepts it. `undefined` if it suits. */
export function misplaced(value: unknown, option: Exclude<PartOption, "pods">): string | undefined {
  if (option === "dra-drivers" && isObject(value) && value["items"] !== undefined)
    return "holds its drivers in `items`, and --dra-drivers takes the list itself: leave out `items` and what stands beside it";
  const listed = asList(value, option);
  const fits = option === "config" ? isConfiguration(value) : TAKES[option].some((form) => hasForm(listed, form));
  // each faulty member is reported later, at its own position
  if (option === "dra-drivers" && Array.isArray(value) && formOf(value) === undefined) return undefined;
  if (fits || (MAY_BE_EMPTY.includes(option) && isEmptyList(listed))) return undefined;
  const wanted = PARTS.find((part) => part.option === option)?.what;
  return `is ${formText(value)}, and --${option} takes ${wanted}${otherOption(value)}`;
}

const MAY_BE_EMPTY: readonly PartOption[] = ["sandboxes", "resource-claims", "resource-slices", "device-classes"];
/** Whether a value is an empty list that does not say what it lists. */
const isEmptyList = (value: unknown): boolean => {
  const { kind, items } = (value ?? {}) as { kind?: unknown; items?: unknown };
  return (kind === undefined || kind === "List") && Array.isArray(items) && items.length === 0;
};

/** The options that accept objects of one kind of resource.k8s.io/v1: a List, a plain list, or a single object. */
const KINDS: Partial<Record<PartOption, string>> = {
  "resource-claims": "ResourceClaim",
  "resource-slices": "ResourceSlice",
  "device-classes": "DeviceClass",
};
/** A plain list of such objects is treated as a List. */
const asList = (value: unknown, option: PartOption): unknown =>
  KINDS[option] !== undefined && Array.isArray(value) ? { items: value as unknown } : value;
/** Whether an option's document is a single object instead of a List. */
export const isAlone = (value: unknown, option: PartOption): boolean =>
  KINDS[option] !== undefined && isObject(value) && value["items"] === undefined;

/**
 * The position of the first object that is not of the option's kind, and what is wrong; undefined if there is none, or if all
 * objects are something else.
 */
export function wrongKind(
  value: unknown,
  option: PartOption,
): { readonly at: Path; readonly message: string } | undefined {
  const kind = KINDS[option];
  const list = asList(value, option);
  if (kind === undefined || !isObject(list) || (list["kind"] !== undefined && list["kind"] !== "List"))
    return undefined;
  const items: readonly unknown[] = Array.isArray(list["items"]) ? list["items"] : [list];
  const first = items.findIndex((item) => fieldsOf(item)["kind"] !== kind);
  if (first < 0) return undefined;
  const at = items[0] === list ? [] : Array.isArray(value) ? [first] : ["items", first];
  const item = items[first];
  if (isObject(item) && item["kind"] === undefined && (at.length > 0 || item["metadata"] !== undefined))
    return { at: [...at, "kind"], message: `is missing: expected ${kind}, beside \`apiVersion: resource.k8s.io/v1\`` };
  const isMixed = items.some((one) => !isObject(one) || one["kind"] === kind);
  return isMixed ? { at, message: `is ${formText(item)}, and --${option} takes ${kind}s` } : undefined;
}

/** What to give instead of forms that no option accepts, as they describe a single thing. */
export const INSTEAD: Partial<Record<DocumentForm, string>> = {
  "crictl inspect": "give what `crictl ps -a -o json` prints",
  "crictl inspectp": "give what `crictl pods -o json` prints",
  "crictl inspecti": "give what `crictl images -o json` prints",
  "v1.Event": "no decision reads it; `nodewise why` does",
  "cpu.stat": "no decision reads it; `nodewise why` does",
  decision: "no decision reads it; `nodewise why` does",
};

/** `: give it with --stats` if an option accepts such a document; otherwise what to give instead. */
export function otherOption(value: unknown): string {
  if (Array.isArray(value) && value.length === 0) return "";
  const form = formOf(value);
  if (form === "snapshot") return ": give it with --snapshot";
  const { kind, items } = (value ?? {}) as { kind?: unknown; items?: unknown };
  const [first] = Array.isArray(items) ? items : [];
  if (kind === "EventList" || (form === "list" && formOf(first) === "v1.Event")) return `: ${INSTEAD["v1.Event"]}`;
  if (form === "v1.Pod" || (form === "list" && kind !== "NodeList")) return ": give it with --pods";
  if (form === "list") return ": give it with --node";
  if (form === undefined) return "";
  const option = optionOfForm(form);
  if (option !== undefined) return `: give it with --${option}`;
  const instead = INSTEAD[form];
  return instead === undefined ? "" : `: ${instead}`;
}

/** The option for documents of a form; `undefined` for pods, lists and whole snapshots, which have readers of their own. */
export const optionOfForm = (form: DocumentForm): Exclude<PartOption, "pods"> | undefined =>
  (Object.keys(TAKES) as Exclude<PartOption, "pods">[]).find((option) => TAKES[option].includes(form));

/** The path in an option's document of what the snapshot needs, as the kubelet and crictl wrap it. */
export function wrapperOf(option: PartOption, value: unknown): readonly string[] {
  if (option === "config") return configurationPath(value);
  const key = WRAPPED[option];
  return key !== undefined && Object.hasOwn(value as object, key) ? [key] : [];
}
/** The member in which crictl and kubectl print a list. */
const WRAPPED: Partial<Record<PartOption, string>> = {
  "resource-claims": "items",
  "resource-slices": "items",
  "device-classes": "items",
  images: "images",
  containers: "containers",
  sandboxes: "items",
  imagefs: "status",
};
