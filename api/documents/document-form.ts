import { type Fields, isObject } from "../base/own.ts";
import { isKind } from "../model/decision.ts";
import { isLscpu } from "./lscpu.ts";

const hasAny = (value: unknown, ...names: readonly string[]): boolean =>
  isObject(value) && names.some((name) => value[name] !== undefined);
const ofKind =
  (...kinds: readonly string[]) =>
  ({ kind }: Fields): boolean =>
    typeof kind === "string" && kinds.includes(kind);
/** A test for a form that has no kind. */
const bare =
  (test: (fields: Fields) => boolean) =>
  (fields: Fields): boolean =>
    fields["kind"] === undefined && test(fields);

const isStats = bare(({ node }) =>
  hasAny(node, "nodeName", "cpu", "memory", "fs", "runtime", "rlimit", "swap", "systemContainers"),
);
const SNAPSHOT_FIELDS = ["node", "kubeletConfiguration", "pods", "stats", "machine", "cgroup", "runtime"] as const;
const MACHINE_FIELDS = [
  "cpus",
  "offlineCpus",
  "numaNodes",
  "distances",
  "memoryBytes",
  "swapBytes",
  "hugetlb",
] as const;
const MACHINE_INFO_FIELDS = ["topology", "num_cores", "memory_capacity", "swap_capacity", "pageSizeBytes"] as const;

/** An empty one does not differ from any other List. */
const isSandboxes = ({ items }: Fields): boolean =>
  Array.isArray(items) && items.length > 0 && items.every((item) => hasAny(item, "id") && !hasAny(item, "spec"));

const isFileSystems = (f: Fields): boolean =>
  [f, f["status"]].some((of) => hasAny(of, "imageFilesystems", "containerFilesystems"));

const NODE_SPEC = ["podCIDR", "podCIDRs", "providerID", "taints", "unschedulable"] as const;
const NODE_STATUS = ["capacity", "allocatable", "nodeInfo", "addresses", "daemonEndpoints", "volumesAttached"] as const;
const OBJECT_FIELDS: readonly string[] = ["apiVersion", "metadata", "spec", "status"];
/** Whether the value is absent, empty or has one of a node's fields. */
const isEmptyOr = (value: unknown, ...names: readonly string[]): boolean =>
  !isObject(value) || Object.keys(value).length === 0 || hasAny(value, ...names);
/** Only the fields of every Kubernetes object, with metadata or something that only a node has. */
const isNode = (f: Fields): boolean =>
  Object.keys(f).every((name) => OBJECT_FIELDS.includes(name)) &&
  (isObject(f["metadata"]) || hasAny(f["spec"], ...NODE_SPEC) || hasAny(f["status"], ...NODE_STATUS)) &&
  isEmptyOr(f["spec"], ...NODE_SPEC) &&
  isEmptyOr(f["status"], ...NODE_STATUS, "conditions", "images");

/** Tests for the details of one image, sandbox or container, or of the runtime itself. */
const isInspected = ({ status }: Fields): boolean => hasAny(status, "id");
const isImage = ({ status }: Fields): boolean => hasAny(status, "repoTags", "repoDigests");
const isSandbox = ({ status }: Fields): boolean =>
  isObject(status) && (hasAny(status["metadata"], "uid", "namespace") || hasAny(status, "network"));
const isRuntime = (f: Fields): boolean => {
  const conditions = isObject(f["status"]) ? f["status"]["conditions"] : undefined;
  if (!Array.isArray(conditions)) return false;
  return (
    hasAny(f, "config", "runtimeHandlers", "features") ||
    conditions.some((one) => isObject(one) && (one["type"] === "RuntimeReady" || one["type"] === "NetworkReady"))
  );
};

/** A decision as the history has it, and as the API and `nodewise decide` return it. */
const isDecision = ({ kind, decision }: Fields): boolean =>
  typeof kind === "string" && isKind(kind) && isObject(decision);
/** core/v1 and events.k8s.io/v1 have different names for an event's object. */
const isEvent = (f: Fields): boolean => hasAny(f, "involvedObject", "regarding") && hasAny(f, "reason");

/** A list of the kind, by its own kind or its items', or one such object. */
const listsKind =
  (kind: string) =>
  (f: Fields): boolean =>
    f["kind"] === kind ||
    f["kind"] === `${kind}List` ||
    (Array.isArray(f["items"]) &&
      f["items"].length > 0 &&
      f["items"].every((item) => isObject(item) && item["kind"] === kind));

/** The documents of a node that their own fields identify; the first match counts. */
const FORMS = {
  decision: isDecision,
  "v1.Event": (f) => ofKind("Event")(f) || bare(isEvent)(f),
  "crictl images": bare((f) => "images" in f && !hasAny(f, "containers")),
  "crictl ps": bare((f) => "containers" in f && !hasAny(f, "images")),
  "crictl pods": bare(isSandboxes),
  "crictl imagefsinfo": bare(isFileSystems),
  "crictl inspecti": bare((f) => isInspected(f) && isImage(f)),
  "crictl inspectp": bare((f) => isInspected(f) && isSandbox(f)),
  "crictl inspect": bare((f) => isInspected(f) && !isImage(f) && !isSandbox(f)),
  "crictl info": bare(isRuntime),
  "v1.Node": (f) => ofKind("Node")(f) || bare(isNode)(f),
  "v1.Pod": (f) => ofKind("Pod")(f) || bare((b) => hasAny(b["spec"], "containers"))(f),
  resourceClaims: listsKind("ResourceClaim"),
  resourceSlices: listsKind("ResourceSlice"),
  deviceClasses: listsKind("DeviceClass"),
  list: (f) => ofKind("List", "PodList", "NodeList", "EventList")(f) || bare(({ items }) => Array.isArray(items))(f),
  KubeletConfiguration: ofKind("KubeletConfiguration"),
  "/configz": bare(({ kubeletconfig }) => isObject(kubeletconfig)),
  "/stats/summary": isStats,
  snapshot: bare((f) => !isStats(f) && hasAny(f, ...SNAPSHOT_FIELDS)),
  machine: bare((f) => isLscpu(f) || hasAny(f, ...MACHINE_FIELDS, ...MACHINE_INFO_FIELDS)),
  cpu_manager_state: bare((f) => hasAny(f, "policyName") && !hasAny(f, "machineState")),
  memory_manager_state: bare((f) => hasAny(f, "policyName") && !hasAny(f, "defaultCpuSet")),
  allocated_pods_state: bare(
    (f) => !hasAny(f, "policyName") && (typeof f["data"] === "string" || isObject(f["entries"])),
  ),
  dra_manager_state: bare((f) => typeof f["Data"] === "string" && f["Data"].includes("ClaimInfoStateList")),
  dra_health_state: bare((f) => Object.keys(f).length > 0 && Object.values(f).every((of) => hasAny(of, "Devices"))),
  kubelet_internal_checkpoint: bare((f) => hasAny(f["Data"], "PodDeviceEntries", "RegisteredDevices")),
} satisfies Readonly<Record<string, (fields: Fields) => boolean>>;

const DRIVER_FIELDS: readonly string[] = ["name", "services", "registered", "answers"];
const PLUGIN_FIELDS = ["registered", "stoppedAt", "options", "preferred"] as const;
/** The forms that are lists; an item with only its resource or name matches both. */
const LISTS = {
  devices: (item: unknown) => hasAny(item, "resource") && !hasAny(item, ...PLUGIN_FIELDS),
  devicePlugins: (item: unknown) => hasAny(item, "resource") && !hasAny(item, "id", "health", "numaNodes"),
  draDrivers: (item: unknown) =>
    hasAny(item, "name") && Object.keys(item as object).every((key) => DRIVER_FIELDS.includes(key)),
} as const;
export type DocumentForm = keyof typeof FORMS | keyof typeof LISTS | "cpu.stat";

/** The text of the file; a YAML parser reads its lines as one string. */
const isCpuStat = (value: unknown): boolean =>
  typeof value === "string" && /(?:^|\s)nr_throttled \d+(?:\s|$)/.test(value);

/** The first form that matches; `undefined` if none does. */
export function formOf(value: unknown): DocumentForm | undefined {
  if (isCpuStat(value)) return "cpu.stat";
  if (Array.isArray(value)) return (Object.keys(LISTS) as (keyof typeof LISTS)[]).find((form) => isListOf(value, form));
  if (!isObject(value)) return undefined;
  return (Object.keys(FORMS) as (keyof typeof FORMS)[]).find((form) => FORMS[form](value));
}

/** Whether a document can be of a form; some documents match more than one. */
export const hasForm = (value: unknown, form: DocumentForm): boolean =>
  form === "cpu.stat"
    ? isCpuStat(value)
    : form in LISTS
      ? isListOf(value, form as keyof typeof LISTS)
      : isObject(value) && FORMS[form as keyof typeof FORMS](value);

const isListOf = (value: unknown, form: keyof typeof LISTS): boolean =>
  Array.isArray(value) && value.every((item) => LISTS[form](item));

/** Describes a document: its `kind`, its form, or the names of its fields. */
export function formText(value: unknown): string {
  if (isObject(value)) {
    if (typeof value["kind"] === "string") return `an object of kind \`${value["kind"].slice(0, MAX_CHARACTERS)}\``;
    const form = formOf(value);
    if (form !== undefined) return TEXT[form];
    const names = Object.keys(value).map((name) => `\`${name.slice(0, MAX_CHARACTERS)}\``);
    const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : "";
    return names.length === 0 ? "an empty object" : `an object with ${names.slice(0, MAX_NAMES).join(", ")}${more}`;
  }
  if (Array.isArray(value)) {
    const form = value.length === 0 ? undefined : formOf(value);
    return form === undefined ? "a list" : TEXT[form];
  }
  if (isCpuStat(value)) return TEXT["cpu.stat"];
  return typeof value === "string" ? "text" : `a ${typeof value}`;
}
const MAX_CHARACTERS = 60;
const MAX_NAMES = 4;
const TEXT: Readonly<Record<DocumentForm, string>> = {
  "crictl images": "what `crictl images` prints",
  "crictl ps": "what `crictl ps` prints",
  "crictl pods": "what `crictl pods` prints",
  "crictl imagefsinfo": "what `crictl imagefsinfo` prints",
  "crictl inspecti": "what `crictl inspecti` prints",
  "crictl inspectp": "what `crictl inspectp` prints",
  "crictl inspect": "what `crictl inspect` prints",
  "crictl info": "what `crictl info` prints",
  "v1.Node": "a v1.Node",
  "v1.Pod": "a v1.Pod",
  list: "a list",
  KubeletConfiguration: "a KubeletConfiguration",
  "/configz": "the kubelet's /configz",
  "/stats/summary": "the kubelet's /stats/summary",
  snapshot: "a NodeSnapshot",
  machine: "the description of a machine",
  cpu_manager_state: "a cpu_manager_state",
  memory_manager_state: "a memory_manager_state",
  allocated_pods_state: "an allocated_pods_state",
  kubelet_internal_checkpoint: "a kubelet_internal_checkpoint",
  devices: "a list of devices",
  devicePlugins: "a list of device plugins",
  draDrivers: "a list of DRA drivers",
  dra_manager_state: "a dra_manager_state",
  dra_health_state: "a dra_health_state",
  resourceClaims: "ResourceClaims",
  resourceSlices: "ResourceSlices",
  deviceClasses: "DeviceClasses",
  decision: "a decision",
  "v1.Event": "a v1.Event",
  "cpu.stat": "a cgroup's cpu.stat",
};

/** Any subset of KubeletConfiguration is valid, so only what is clearly something else is rejected. */
export function isConfiguration(value: unknown): boolean {
  if (!isObject(value)) return false;
  const form = formOf(value);
  if (form === "KubeletConfiguration" || form === "/configz") return true;
  return form === undefined && !hasAny(value, "kind", "metadata", "status");
}

/**
 * The items of a v1.PodList or v1.List, or of a list without a kind; undefined for anything else. A list with a kind may have
 * `null` items: an empty Go slice, which a kubelet without pods returns.
 */
export function podItems(value: unknown): readonly unknown[] | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const { kind, items } = value as { readonly kind?: unknown; readonly items?: unknown };
  const isList = kind === "PodList" || kind === "List";
  if (isList && items === null) return [];
  return Array.isArray(items) && (isList || kind === undefined) ? items : undefined;
}
