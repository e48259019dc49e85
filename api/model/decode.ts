import * as z from "zod";
import { perObject } from "../base/cache.ts";
import { type InputIssue, joinPath } from "../base/input-issue.ts";
import { LIMITS } from "../base/limits.ts";
import { nearNames } from "../base/near-name.ts";
import { withoutNulls } from "../base/nulls.ts";
import { type Fields, fieldsOf, isObject } from "../base/own.ts";
import { err, ok, type Result } from "../base/result.ts";
import { milliValue, value } from "./amount.ts";
import { parseCpuSet } from "./cpu-set.ts";
import { isVersion, pathPart, type ResourceList } from "./fields.ts";
import { deviceIssues, type Machine } from "./machine.ts";
import {
  type ContainerStatus,
  MIRROR_ANNOTATION,
  type Pod,
  podNamespace,
  podUid,
  type ResourceRequirements,
} from "./pod.ts";
import { withDefaultRequests } from "./pod-defaults.ts";
import { parseQuantity } from "./quantity.ts";
import { isPodList, pageField, type Snapshot, snapshot as snapshotSchema } from "./snapshot.ts";

/** A sum in whole units and in thousandths of a CPU; beyond the limits it only has to be large, not exact. */
type Total = { units: number; milliCpu: number };

/**
 * Finds amounts that are valid one by one but whose sum is not exact. INVARIANT: after this check every sum of a
 * decision is exact.
 */
function amountIssues(snapshot: Snapshot, at: string, podsAt: string, checks = POD_CHECKS): readonly InputIssue[] {
  const allocated: Total = { units: 0, milliCpu: 0 };
  for (const entry of Object.values(snapshot.assignments?.allocated_pods_state?.entries ?? {})) {
    addRequirements(allocated, entry.PodLevelResources);
    for (const resources of Object.values(entry.ContainerResources ?? {})) addRequirements(allocated, resources);
  }
  const found: InputIssue[] = [...amountsOfPods(snapshot.pods ?? [], podsAt, checks)];
  if (isTooMuch(allocated)) found.push({ path: joinPath(at, ["assignments", "allocated_pods_state"]), message });
  if (snapshot.machine !== undefined && machineUnits(snapshot.machine) > LIMITS.units) {
    found.push({ path: joinPath(at, ["machine", "numaNodes"]), message });
  }
  return found;
}
/** The check of `amountIssues` for pods alone. `at`: the path of the pods. */
export function amountsOfPods(pods: readonly Pod[], at: string, checks = POD_CHECKS): readonly InputIssue[] {
  const total: Total = { units: 0, milliCpu: 0 };
  for (const pod of pods) {
    const { units, milliCpu } = checks.totalOf(pod);
    total.units += units;
    total.milliCpu += milliCpu;
  }
  return isTooMuch(total) ? [{ path: at, message }] : [];
}
const message = "the amounts add up to more than exact arithmetic holds";
const isTooMuch = (t: Total): boolean => t.units > LIMITS.units || t.milliCpu > LIMITS.milliCpu;

function totalOf(pod: Pod): Readonly<Total> {
  const total: Total = { units: 0, milliCpu: 0 };
  for (const c of pod.spec.containers) addRequirements(total, c.resources);
  for (const c of pod.spec.initContainers ?? []) addRequirements(total, c.resources);
  addRequirements(total, pod.spec.resources);
  addList(total, pod.spec.overhead);
  for (const s of pod.status?.containerStatuses ?? []) addStatus(total, s);
  for (const s of pod.status?.initContainerStatuses ?? []) addStatus(total, s);
  addList(total, pod.status?.allocatedResources);
  addRequirements(total, pod.status?.resources);
  return total;
}
/** Checks of one pod by itself: the sum of its amounts, and its duplicates. */
interface PodChecks {
  readonly totalOf: (pod: Pod) => Readonly<Total>;
  readonly repeatedIn: (pod: Pod) => { readonly id: string | undefined; readonly name: string | undefined };
}
const NO_REPETITION = { id: undefined, name: undefined };
const POD_CHECKS: PodChecks = {
  totalOf,
  repeatedIn: (pod) => {
    const [id, name] = [repeatedContainerId(pod), repeatedName(pod)];
    return id === undefined && name === undefined ? NO_REPETITION : { id, name };
  },
};
/**
 * The same checks with their results cached by pod object, for a node that is posted again with mostly the same
 * objects.
 */
const CACHED_POD_CHECKS: PodChecks = { totalOf: perObject(totalOf), repeatedIn: perObject(POD_CHECKS.repeatedIn) };
function addStatus(total: Total, status: ContainerStatus): void {
  addList(total, status.allocatedResources);
  addRequirements(total, status.resources);
}
function addRequirements(total: Total, r: ResourceRequirements | undefined): void {
  addList(total, r?.requests);
  addList(total, r?.limits);
}
function addList(total: Total, list: ResourceList | undefined): void {
  for (const name in list) {
    const amount = (list[name] as ResourceList[string]).amount;
    if (name === "cpu") total.milliCpu += milliValue(amount);
    else total.units += value(amount);
  }
}

/** The sum of a machine's memory and huge pages of every size, in bytes. */
function machineUnits({ numaNodes }: Machine): number {
  let units = 0;
  for (const { memoryBytes, hugepages } of numaNodes ?? []) {
    units += memoryBytes ?? 0;
    for (const [page, pages] of Object.entries(hugepages ?? {})) {
      const size = parseQuantity(page);
      if (size.ok) units += value(size.value.amount) * pages;
    }
  }
  return units;
}

/** Checks a posted snapshot and parses it once. Errors: every issue with its path, at most `LIMITS.issues`. */
export function decodeSnapshot(input: unknown, at = ""): Result<Snapshot, readonly InputIssue[]> {
  const parsed = parseLenient(compiledSchema(), input);
  if (!parsed.success) return err(issuesOf(parsed.error, input, at));
  const pods = parsed.data.pods?.map(withDefaultRequests);
  const snapshot: Snapshot = pods === undefined ? parsed.data : { ...parsed.data, pods };
  const podsAt = podsPath(input, at);
  const machineAt = joinPath(at, ["machine"]);
  const ofOthers = othersStats(input, at);
  const issues = [
    ...podIssues(pods ?? [], (i) => `${podsAt}[${i}]`),
    ...(snapshot.machine === undefined ? [] : machineIssues(snapshot.machine, machineAt)),
    ...deviceIssues(snapshot.devices ?? [], joinPath(at, ["devices"])),
    ...amountIssues(snapshot, at, podsAt),
    ...(ofOthers === undefined ? [] : [ofOthers]),
    ...pageIssues(input, at),
  ];
  return issues.length > 0 ? err(issues.slice(0, LIMITS.issues)) : ok(snapshot);
}

/**
 * Finds faults that only the whole snapshot has, if it is assembled from parts that were checked before: duplicates
 * among pods, and amounts that are too large together. Each pod is checked once. `podsAt`: the path of the pods.
 */
export const crossFieldIssues = (snapshot: Snapshot, at: string, podsAt: string): readonly InputIssue[] => [
  ...podIssues(snapshot.pods ?? [], (i) => `${podsAt}[${i}]`, CACHED_POD_CHECKS),
  ...amountIssues(snapshot, at, podsAt, CACHED_POD_CHECKS),
];

/**
 * Converts a snapshot of the history to the current form. Earlier versions accepted any text as the kubelet's version,
 * and if it was not a version answered as the newest kubelet, as for a node without one.
 */
export function inFormOfNow(stored: Fields): Fields {
  const node = fieldsOf(stored["node"]);
  const status = fieldsOf(node["status"]);
  const nodeInfo = fieldsOf(status["nodeInfo"]);
  const version = nodeInfo["kubeletVersion"];
  if (typeof version !== "string" || version === "" || isVersion(version)) return stored;
  return { ...stored, node: { ...node, status: { ...status, nodeInfo: { ...nodeInfo, kubeletVersion: "" } } } };
}
/** `decodeSnapshot` for a snapshot of the history. */
export const decodeStored = (stored: unknown): ReturnType<typeof decodeSnapshot> =>
  decodeSnapshot(isObject(stored) ? inFormOfNow(stored) : stored);

/**
 * An issue if the snapshot's `/stats/summary` is of another node, since a decision would then use the wrong memory and
 * disks. The check is here, because no decision reads the stats' node name and it is not stored. Undefined: the stats
 * are this node's, or no name is given.
 */
export function othersStats(input: unknown, at: string): InputIssue | undefined {
  const { stats, node, pods } = fieldsOf(input);
  const named = nameIn(fieldsOf(fieldsOf(stats)["node"])["nodeName"]);
  if (named === undefined) return undefined;
  const own = nameIn(fieldsOf(fieldsOf(node)["metadata"])["name"]) ?? nodeOfAll(pods);
  if (own === undefined || own === named) return undefined;
  const [its, name] = [named, own].map((text) => text.slice(0, LONGEST_NAME));
  const message = `the stats are of node ${its}, the snapshot is of node ${name}: post the /stats/summary of ${name}'s kubelet`;
  return { path: joinPath(at, ["stats", "node", "nodeName"]), message };
}
const LONGEST_NAME = 253;
/** A name, or undefined for the "" that the actuator writes on a machine without a name. */
const nameIn = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);

/** The node name that all pods share. */
function nodeOfAll(posted: unknown): string | undefined {
  const items = Array.isArray(posted) ? posted : fieldsOf(posted)["items"];
  if (!Array.isArray(items)) return undefined;
  const name = nameIn(fieldsOf(fieldsOf(items[0])["spec"])["nodeName"]);
  return items.every((pod) => fieldsOf(fieldsOf(pod)["spec"])["nodeName"] === name) ? name : undefined;
}

/** Refuses one page of a pod list, since a decision on it would miss the node's other pods. */
function pageIssues(input: unknown, at: string): readonly InputIssue[] {
  const { pods } = input as { readonly pods?: unknown };
  const field = isPodList(pods) ? pageField(pods) : null;
  if (field === null) return [];
  const message =
    "the list is one page of several, and each pod of the node counts: post the whole list, as an API server answers it when it is asked without `limit`";
  return [{ path: joinPath(at, ["pods", "metadata", field]), message }];
}

/** Parses as Go does, which reads null as absent. Nulls are rare, so they are removed only if the first parse fails. */
function parseLenient<S extends z.ZodType>(schema: S, input: unknown): z.ZodSafeParseResult<z.output<S>> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed;
  const rest = withoutNulls(input);
  return rest === input ? parsed : schema.safeParse(rest);
}

/** Checks a posted value by its form and parses it once; a null counts as absent. Errors: every issue with its path. */
export function decodeForm<S extends z.ZodType>(
  form: S,
  input: unknown,
  at: string,
): Result<z.output<S>, readonly InputIssue[]> {
  const parsed = parseLenient(form, input);
  return parsed.success ? ok(parsed.data) : err(issuesOf(parsed.error, input, at));
}

let compiled: typeof snapshotSchema | undefined;
/** Compiling the schema takes as long as it saves on so many snapshots of a small node: most programs end before. */
const COMPILED_AFTER = 100;
let decodings = 0;
/** The compiled schema once it pays, if code generation is allowed. */
function compiledSchema(): typeof snapshotSchema {
  // z.compile itself does not heed the setting
  if (z.config().jitless === true || decodings++ < COMPILED_AFTER) return snapshotSchema;
  compiled ??= z.compile(snapshotSchema);
  return compiled;
}

/** Compiles the schema ahead (some 50 ms), so that no request waits for it. */
export function prepareDecoding(): void {
  decodings = COMPILED_AFTER;
  compiledSchema().safeParse({});
}

export function issuesOf(error: z.ZodError, input: unknown, at: string): readonly InputIssue[] {
  return error.issues.slice(0, LIMITS.issues).map((issue) => ({
    // a missing member is reported at its own path
    path: pathText(
      issue.code === "unrecognized_keys" ? [...issue.path, ...issue.keys.slice(0, 1)] : issue.path,
      input,
      at,
    ),
    message: cut(missingText(issue, input) ?? lowerFirst(issue.message)),
  }));
}

/**
 * The message for a missing required field, with the similar field that may have been meant; undefined: the issue is
 * of another sort.
 */
function missingText(issue: z.core.$ZodIssue, input: unknown): string | undefined {
  const { code, path, message } = issue;
  const name = path.at(-1);
  if (code !== "invalid_type" || !message.endsWith(", received undefined") || typeof name !== "string")
    return undefined;
  const beside = Object.keys(fieldsOf(postedAt(input, path.slice(0, -1)))).filter((one) => one !== name);
  const [near] = nearNames(name, beside, 1);
  const meant = near === undefined ? "" : `; there is \`${near}\`: did you mean \`${name}\`?`;
  return `is missing: expected ${issue.expected}${meant}`;
}
/**
 * The value at a path of the checked form: the posted document may have a List in place of its items, or a single
 * object in place of a list.
 */
function postedAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let at = input;
  for (const step of path) {
    const members = Array.isArray(at) ? at : fieldsOf(at);
    if (typeof step !== "number" || Array.isArray(at)) at = (members as Readonly<Record<PropertyKey, unknown>>)[step];
    else if ("items" in members) at = (members["items"] as readonly unknown[])[step];
  }
  return at;
}
/** Bounds the message, since it lists unknown members by name, and there may be a million of them. */
const LONGEST_MESSAGE = 1000;
const cut = (s: string): string => (s.length > LONGEST_MESSAGE ? `${s.slice(0, LONGEST_MESSAGE)}…` : s);
const lowerFirst = (s: string): string => s.charAt(0).toLowerCase() + s.slice(1);

/** The path as the caller posted it: a PodList's path includes `items`. */
function pathText(path: readonly PropertyKey[], input: unknown, at: string): string {
  const pods = (input as { pods?: unknown } | null)?.pods;
  const posted = path[0] === "pods" && path.length > 1 && isPodList(pods) ? ["pods", "items", ...path.slice(1)] : path;
  return joinPath(at, posted);
}
const podsPath = (input: unknown, at: string): string =>
  joinPath(at, isPodList((input as { pods?: unknown }).pods) ? ["pods", "items"] : ["pods"]);

/**
 * Finds faults that no single field's schema can see: two pods with one uid, two containers with one name, an
 * annotation that serves as uid. `place`: the path of a pod.
 */
export function podIssues(
  pods: readonly Pod[],
  place: (i: number) => string,
  checks = POD_CHECKS,
): readonly InputIssue[] {
  const issues: InputIssue[] = [];
  const seen = new Map<string, number>();
  for (const [i, pod] of pods.entries()) {
    const here = place(i);
    const uid = podUid(pod);
    const first = uid === undefined ? undefined : seen.get(uid);
    if (first !== undefined) {
      const other = `${place(first)} (${nameOf(pods[first])})`;
      issues.push({ path: `${here}.metadata.uid`, message: `uid \`${uid}\` is also that of ${other}` });
    } else if (uid !== undefined) seen.set(uid, i);
    if (pod.metadata.annotations?.[MIRROR_ANNOTATION] !== undefined && !pathPart.safeParse(uid).success) {
      const path = joinPath(`${here}.metadata.annotations`, [MIRROR_ANNOTATION]);
      issues.push({ path, message: "names the pod's cgroup: must be letters, digits, `-` or `.`, at most 253" });
    }
    const { id, name: twin } = checks.repeatedIn(pod);
    if (id !== undefined) issues.push({ path: `${here}.status`, message: `two containers have the id \`${id}\`` });
    if (twin !== undefined) issues.push({ path: `${here}.spec`, message: `two containers are named \`${twin}\`` });
    if (issues.length >= LIMITS.issues) break;
  }
  return issues;
}
const nameOf = (p: Pod | undefined): string => (p === undefined ? "" : `${podNamespace(p)}/${p.metadata.name}`);

function repeatedContainerId(pod: Pod): string | undefined {
  const ids = new Set<string>();
  for (const { containerID = "" } of [
    ...(pod.status?.initContainerStatuses ?? []),
    ...(pod.status?.containerStatuses ?? []),
  ]) {
    if (containerID !== "" && ids.has(containerID)) return containerID;
    ids.add(containerID);
  }
  return undefined;
}

function repeatedName(pod: Pod): string | undefined {
  const init = pod.spec.initContainers ?? [];
  if (pod.spec.containers.length + init.length === 1) return undefined;
  const names = new Set<string>();
  for (const c of [...init, ...pod.spec.containers]) {
    if (names.has(c.name)) return c.name;
    names.add(c.name);
  }
  return undefined;
}

/**
 * Finds faults that no single field's schema can see: a topology that no machine has. `at`: the path of the machine.
 */
export function machineIssues(machine: Machine, at: string): readonly InputIssue[] {
  const issues = [...cpuIssues(machine, at), ...numaIssues(machine, at), ...distanceIssues(machine, at)];
  return issues.slice(0, LIMITS.issues);
}

type Cpu = NonNullable<Machine["cpus"]>[number];

function cpuIssues({ cpus = [], offlineCpus }: Machine, at: string): readonly InputIssue[] {
  const issues: InputIssue[] = [];
  const seen = new Map<number, number>();
  const cores = new Map<string, Cpu>();
  for (const [i, cpu] of cpus.entries()) {
    const first = seen.get(cpu.cpu);
    if (first === undefined) seen.set(cpu.cpu, i);
    else issues.push({ path: `${at}.cpus[${i}].cpu`, message: `CPU ${cpu.cpu} is also ${at}.cpus[${first}]` });
    const core = `${cpu.socket}/${cpu.core}`;
    const sibling = cores.get(core);
    if (sibling === undefined) cores.set(core, cpu);
    else if (sibling.numa !== cpu.numa) {
      const message = `core ${cpu.core} is on NUMA node ${sibling.numa} (CPU ${sibling.cpu}) and on ${cpu.numa}`;
      issues.push({ path: `${at}.cpus[${i}].numa`, message });
    } else if (sibling.uncoreCache !== cpu.uncoreCache) {
      const message = `core ${cpu.core} has two uncore caches, ${sibling.uncoreCache ?? "none"} (CPU ${sibling.cpu}) and ${cpu.uncoreCache ?? "none"}`;
      issues.push({ path: `${at}.cpus[${i}].uncoreCache`, message });
    }
  }
  const offline = parseCpuSet(offlineCpus ?? "");
  const both = offline?.find((cpu) => seen.has(cpu));
  if (offline === undefined) issues.push({ path: `${at}.offlineCpus`, message: "must be a CPU list such as 0-3,8" });
  if (both !== undefined) {
    issues.push({ path: `${at}.offlineCpus`, message: `CPU ${both} is also ${at}.cpus[${seen.get(both)}]` });
  }
  return [...issues, ...gapIssues(seen, new Set(offline ?? []), at)];
}

/**
 * Reports CPU numbers that the machine does not list: each may be offline or forgotten, and only the sender knows
 * which.
 */
function gapIssues(seen: ReadonlyMap<number, number>, offline: ReadonlySet<number>, at: string): readonly InputIssue[] {
  const last = Math.max(-1, ...seen.keys());
  for (let cpu = 0; cpu < last; cpu++) {
    if (seen.has(cpu) || offline.has(cpu)) continue;
    return [
      {
        path: `${at}.cpus`,
        message: `CPU ${cpu} is missing below CPU ${last}; list it, or name it in ${at}.offlineCpus if it is offline`,
      },
    ];
  }
  return [];
}

function numaIssues({ cpus = [], numaNodes }: Machine, at: string): readonly InputIssue[] {
  if (numaNodes === undefined) return [];
  const issues: InputIssue[] = [];
  const seen = new Map<number, number>();
  for (const [i, { id }] of numaNodes.entries()) {
    const first = seen.get(id);
    if (first === undefined) seen.set(id, i);
    else
      issues.push({ path: `${at}.numaNodes[${i}].id`, message: `NUMA node ${id} is also ${at}.numaNodes[${first}]` });
  }
  for (const [i, { cpu, numa }] of cpus.entries()) {
    if (seen.has(numa)) continue;
    issues.push({
      path: `${at}.cpus[${i}].numa`,
      message: `CPU ${cpu} is on NUMA node ${numa}, which ${at}.numaNodes does not list`,
    });
    if (issues.length >= LIMITS.issues) break;
  }
  return issues;
}

function distanceIssues({ cpus = [], numaNodes, distances }: Machine, at: string): readonly InputIssue[] {
  if (distances === undefined) return [];
  const nodes = numaNodes?.length ?? new Set(cpus.map((cpu) => cpu.numa)).size;
  const issues: InputIssue[] = [];
  if (nodes > 0 && distances.length !== nodes) {
    issues.push({ path: `${at}.distances`, message: `has ${distances.length} rows for ${nodes} NUMA nodes` });
  }
  for (const [i, row] of distances.entries()) {
    if (row.length === distances.length) continue;
    issues.push({ path: `${at}.distances[${i}]`, message: `has ${row.length} entries in ${distances.length} rows` });
  }
  return issues;
}
