import { byKey, byText } from "../../base/order.ts";
import { err, ok, type Result } from "../../base/result.ts";
import type { ContainerGcAsk, ContainerGcDecision } from "../../model/container-gc.ts";
import type { DecidedOf, ReasonCode, Refusal } from "../../model/decision.ts";
import { podUid } from "../../model/pod.ts";
import type { Runtime, RuntimeContainer, RuntimeSandbox } from "../../model/runtime.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import type { EffectiveArguments, EffectiveSnapshot } from "../../profiles/effective.ts";
import { evictContainers } from "../container-gc/containers.ts";
import { GcPlan, type KeepReason } from "../container-gc/gc-plan.ts";
import { type PodState, podRemovalReason, podStates } from "../container-gc/pod-states.ts";
import {
  isPodLogsName,
  logLinkTarget,
  podLogsTarget,
  type SandboxTarget,
  sandboxTarget,
} from "../container-gc/targets.ts";
import { byAge, isAfter, isTied, nanosOf, newestOldEnough } from "../container-gc/unix-nanos.ts";
import { goDurationText } from "../go/strconv.ts";
import { podsOfNode } from "../pods/node-pods.ts";
import { Reasons } from "../reasons.ts";

interface GcInput {
  readonly now: bigint;
  readonly runtime: Runtime;
  readonly containers: readonly RuntimeContainer[];
  readonly sandboxes: readonly RuntimeSandbox[];
  readonly sandboxIds: ReadonlySet<string>;
  readonly minAgeMs: number;
  readonly maxPerPodContainer: number;
  readonly maxContainers: number;
}

interface WithId {
  readonly id: string;
}
const NOTHING_LISTED: Pick<Snapshot, "runtime" | "pods"> = { runtime: { containers: [], sandboxes: [] }, pods: [] };

/** Reads the inputs that every pass needs; incomplete runtime lists are refused. */
function inputOf(snapshot: EffectiveSnapshot, isListed = true): Result<GcInput, Refusal> {
  const { observedAt, kubelet } = snapshot;
  const { flags } = snapshot.kubeletConfiguration.profile;
  const { runtime, pods } = isListed ? snapshot : NOTHING_LISTED;
  const { containers, sandboxes } = runtime ?? {};
  const needs: string[] = [];
  if (observedAt === undefined) needs.push("observedAt");
  if (pods === undefined) needs.push("pods");
  if (containers === undefined) needs.push("runtime.containers");
  if (sandboxes === undefined) needs.push("runtime.sandboxes");
  const nameless = podsOfNode({ ...snapshot, pods }).find((p) => podUid(p) === undefined);
  if (nameless !== undefined) needs.push(`pods[${pods?.indexOf(nameless)}].metadata.uid`);
  if (
    observedAt === undefined ||
    runtime === undefined ||
    containers === undefined ||
    sandboxes === undefined ||
    needs.length > 0
  ) {
    return err({ code: "needs_input", message: `a pass over containers needs ${needs.join(", ")}`, needs });
  }
  const sandboxIds = new Set(sandboxes.map(({ id }) => id));
  const twin =
    repeated("containers", containers, differentIds(containers)) ?? repeated("sandboxes", sandboxes, sandboxIds.size);
  if (twin !== undefined) return err({ code: "invalid_state", message: twin, needs: [] });
  const minAgeMs = kubelet?.minimumContainerTTLMs ?? flags.minimumContainerTTLMs;
  if (minAgeMs < 0) {
    // kubelet 1.36: NewContainerGC
    const message = `invalid minimum garbage collection age: ${goDurationText(BigInt(minAgeMs) * 1_000_000n)}`;
    return err({ code: "invalid_configuration", message, needs: [] });
  }
  return ok({
    now: nanosOf(observedAt),
    runtime,
    containers,
    sandboxes,
    sandboxIds,
    minAgeMs,
    maxPerPodContainer: kubelet?.maximumDeadContainersPerContainer ?? flags.maximumDeadContainersPerContainer,
    maxContainers: kubelet?.maximumDeadContainers ?? flags.maximumDeadContainers,
  });
}

function repeated(list: string, entries: readonly WithId[], count: number): string | undefined {
  if (count === entries.length) return undefined;
  const seen = new Map<string, number>();
  for (const [i, { id }] of entries.entries()) {
    const first = seen.get(id);
    if (first !== undefined) return `runtime.${list}[${i}].id \`${id}\` is also that of runtime.${list}[${first}]`;
    seen.set(id, i);
  }
  return undefined;
}

/**
 * The number of different ids. Hashing each to a number first mostly proves that all differ, faster than a set of ten
 * thousand texts.
 */
function differentIds(entries: readonly WithId[]): number {
  const prints = new Int32Array(entries.length);
  for (let i = 0; i < prints.length; i++) prints[i] = printOf((entries[i] as WithId).id);
  prints.sort();
  for (let i = 1; i < prints.length; i++) {
    if (prints[i] === prints[i - 1]) return new Set(entries.map(({ id }) => id)).size;
  }
  return entries.length;
}
/** FNV-1a of the end of an id. */
function printOf(id: string): number {
  let print = 0x811c9dc5;
  for (let i = Math.max(0, id.length - PRINTED); i < id.length; i++) {
    print = Math.imul(print ^ id.charCodeAt(i), 0x01000193);
  }
  return print;
}
const PRINTED = 24;

const sortedOnce = (names: readonly string[] | undefined): readonly string[] => [...new Set(names)].sort(byText);

/**
 * Removes the log directories of removed pods, by name; none until all sources of pods are ready. A pod that has only
 * ended keeps its logs, even under pressure. A directory of another form (`backup`, `lost+found`) stays here; the
 * kubelet takes its whole name for an unknown uid and removes it. kubelet 1.36: evictPodLogsDirectories.
 */
function evictPodLogs(
  { podLogDirectories }: Runtime,
  stateOf: (uid: string) => PodState,
  allSourcesReady: boolean,
  ledger: GcPlan,
): void {
  for (const directory of sortedOnce(podLogDirectories)) {
    const target = podLogsTarget(directory);
    const { presence, because: code } = stateOf(target.pod.uid);
    if (!isPodLogsName(directory)) ledger.leave(target, { why: "not-pod-logs", code: "not_pod_logs" });
    else if (!allSourcesReady) ledger.leave(target, { why: "sources-not-ready", code: "sources_not_ready" });
    else if (presence === "removed") ledger.take(target, { why: "pod-removed", code }, false, false);
    else ledger.leave(target, { why: "pod-exists", code });
  }
}

/**
 * Removes dangling log links, by name; `left`: the containers that the pass keeps. During log rotation a link dangles
 * for a moment, so a container that is listed and not exited keeps its link. A link with another kind of name is
 * removed. kubelet 1.36: evictPodLogsDirectories.
 */
function evictLogLinks({ danglingLogLinks }: Runtime, left: readonly RuntimeContainer[], ledger: GcPlan): void {
  if (danglingLogLinks === undefined) return;
  const containerOf = finder(left);
  for (const link of sortedOnce(danglingLogLinks)) {
    const container = containerOf(containerIdOf(link));
    const target = logLinkTarget(link, container);
    if (container === undefined || container.state === "CONTAINER_EXITED") {
      ledger.take(target, { why: "dangling", code: "link_leads_nowhere" }, false, false);
    } else ledger.leave(target, { why: "container-not-exited", code: "container_not_exited" });
  }
}

const SHORTEST_ID = 6;
/** The container id in a link's name; undefined: there is none. kubelet 1.36: getContainerIDFromLegacyLogSymlink. */
function containerIdOf(link: string): string | undefined {
  const last = link.slice(link.lastIndexOf("-") + 1);
  if (!last.endsWith(".log")) return undefined;
  const id = last.slice(0, -".log".length);
  return id.length < SHORTEST_ID ? undefined : id;
}

/**
 * Finds a container by id, or by an id prefix, since long link names are truncated. If several match, the first that
 * has not exited.
 */
function finder(containers: readonly RuntimeContainer[]): (id: string | undefined) => RuntimeContainer | undefined {
  const byId = new Map<string, RuntimeContainer>();
  const others: RuntimeContainer[] = [];
  const exited: RuntimeContainer[] = [];
  for (const c of containers) {
    byId.set(c.id, c);
    if (c.state === "CONTAINER_EXITED") exited.push(c);
    else others.push(c);
  }
  for (const list of [others, exited]) list.sort((a, b) => byText(a.id, b.id));
  return (id) => {
    if (id === undefined) return undefined;
    return byId.get(id) ?? firstWithPrefix(others, id) ?? firstWithPrefix(exited, id);
  };
}

/** The first container whose id has the prefix. */
function firstWithPrefix(sorted: readonly RuntimeContainer[], id: string): RuntimeContainer | undefined {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as RuntimeContainer).id < id) low = middle + 1;
    else high = middle;
  }
  const found = sorted[low];
  return found?.id.startsWith(id) ? found : undefined;
}

/**
 * One pass over dead containers, then sandboxes, log directories and dangling log links; `delete-unused` also removes
 * those of pods that have ended. Refused: a runtime's list, the pods, a pod's uid or the time is missing; a duplicate
 * id; flags with which the kubelet does not start (its words). `error` and events occur only if the ask says that the
 * runtime's lists failed: the kubelet only logs single failures. kubelet 1.36: containerGC.GarbageCollect,
 * realContainerGC.DeleteAllUnusedContainers.
 */
export function decideContainerGc(
  asked: EffectiveArguments<ContainerGcAsk>,
): Result<DecidedOf<"container-gc">, Refusal> {
  const { snapshot, ask } = asked;
  const given = inputOf(snapshot, ask.error === undefined);
  if (!given.ok) return given;
  if (ask.error !== undefined) return ok(unlisted(asked, given.value, ask.error));
  const { now, runtime, containers, sandboxes, minAgeMs, maxPerPodContainer, maxContainers } = given.value;
  const reasons = new Reasons<ReasonCode<"container-gc">>(asked.explain);
  const needs: string[] = [];
  const allSourcesReady = snapshot.kubelet?.sourcesReady ?? true;
  const underPressure = ask.operation === "delete-unused";
  const stateOf = podStates(snapshot, containers, sandboxes);
  const ledger = new GcPlan(ask.done, reasons);
  const limits = { minAgeMs, newest: newestOldEnough(now, minAgeMs), maxPerPodContainer, maxContainers };
  const left = evictContainers({ containers, stateOf, allSourcesReady, underPressure, ...limits }, ledger);
  evictSandboxes({ sandboxes, containers: left, stateOf, underPressure }, ledger);
  evictPodLogs(runtime, stateOf, allSourcesReady, ledger);
  evictLogLinks(runtime, left, ledger);
  ledger.close();
  doubts(given.value, reasons, needs);
  const decision: ContainerGcDecision = {
    operation: ask.operation,
    policy: { minAgeMs, maxPerPodContainer, maxContainers },
    allSourcesReady,
    remove: ledger.remove,
    keep: ledger.keep,
    error: null,
    events: [],
  };
  const verdict = ledger.remove.some(({ end }) => end === "planned" || end === "removed") ? "removes" : "keeps";
  return ok({ decision, verdict, reasons: reasons.list, needs, next: null });
}

/** Lists impossible or incomplete parts of the runtime's lists, each by name. None of them leads to more removals. */
function doubts(
  { now, containers, sandboxes, sandboxIds, runtime }: GcInput,
  reasons: Reasons<ReasonCode<"container-gc">>,
  needs: string[],
): void {
  const nowText = now < 0n ? "0" : now.toString();
  // entries of one sandbox are mostly adjacent
  let listed: string | undefined;
  for (const { id, podSandboxId, metadata, createdAt } of containers) {
    if (podSandboxId !== undefined && (podSandboxId === listed || sandboxIds.has(podSandboxId))) listed = podSandboxId;
    else reasons.add("sandbox_not_listed", id, "podSandboxId", { podSandboxId });
    if (metadata.attempt === undefined) reasons.add("attempt_missing", id, "attempt");
    if (isAfter(createdAt, nowText)) reasons.add("created_in_future", id, "createdAt", { createdAt });
  }
  for (const { id, metadata, createdAt } of sandboxes) {
    if (metadata.attempt === undefined) reasons.add("attempt_missing", id, "attempt");
    if (isAfter(createdAt, nowText)) reasons.add("created_in_future", id, "createdAt", { createdAt });
  }
  for (const list of ["podLogDirectories", "danglingLogLinks"] as const) {
    if (runtime[list] === undefined) needs.push(`runtime.${list}`);
  }
}

/**
 * A pass that failed because the runtime's lists failed: nothing is removed, and the timer's pass records an event
 * each time. kubelet 1.36: StartGarbageCollection.
 */
function unlisted(
  { snapshot, ask: { operation }, explain }: EffectiveArguments<ContainerGcAsk>,
  { minAgeMs, maxPerPodContainer, maxContainers }: GcInput,
  error: string,
): DecidedOf<"container-gc"> {
  const reasons = new Reasons<ReasonCode<"container-gc">>(explain);
  reasons.add("runtime_list_failed", "container-gc", "error", { message: error });
  const isTimed = operation === "garbage-collect";
  const decision: ContainerGcDecision = {
    operation,
    policy: { minAgeMs, maxPerPodContainer, maxContainers },
    allSourcesReady: snapshot.kubelet?.sourcesReady ?? true,
    remove: [],
    keep: [],
    error,
    events: isTimed ? [{ type: "Warning", reason: "ContainerGCFailed", message: error }] : [],
  };
  return { decision, verdict: "fails", reasons: reasons.list, needs: [], next: null };
}

interface SandboxPass {
  readonly sandboxes: readonly RuntimeSandbox[];
  /** The containers that the pass kept. */
  readonly containers: readonly RuntimeContainer[];
  readonly stateOf: (uid: string) => PodState;
  readonly underPressure: boolean;
}

/**
 * Removes sandboxes that are not ready and hold no container: all of a removed pod, else all but the pod's newest,
 * which stays in any state. Each is stopped first. Unlike for logs, not all sources must be ready, but without that no
 * pod counts as removed because it is not posted.
 *
 * Where Go's maps have no order: pods by uid; within a pod oldest first, of equal age the smaller id. kubelet 1.36:
 * evictSandboxes.
 */
function evictSandboxes(pass: SandboxPass, ledger: GcPlan): void {
  const holding = new Map<string, number>();
  for (const { podSandboxId } of pass.containers) {
    if (podSandboxId !== undefined) holding.set(podSandboxId, (holding.get(podSandboxId) ?? 0) + 1);
  }
  const kept: (readonly [SandboxTarget, KeepReason])[] = [];
  for (const [uid, list] of byPod(pass.sandboxes)) {
    const pod = pass.stateOf(uid);
    const gone = podRemovalReason(pod, pass.underPressure);
    for (let i = 0; i < list.length; i++) {
      const entry = list[i] as SandboxTarget;
      const newer = list.length - 1 - i;
      const keeping =
        inUse(entry.made, holding.get(entry.made.id) ?? 0) ?? (gone === null && newer === 0 ? newest(pod) : null);
      if (keeping !== null) {
        kept.push([entry, keeping]);
        continue;
      }
      const because = gone ?? ({ why: "older-sandbox", code: "older_sandbox", numbers: { newer } } as const);
      ledger.take(entry, because, true, isTied(list, i));
    }
  }
  for (const [entry, because] of kept) ledger.leave(entry, because);
}

function inUse(s: RuntimeSandbox, containers: number): KeepReason | null {
  if (s.state === "SANDBOX_READY") return { why: "sandbox-ready", code: "sandbox_ready" };
  if (containers === 0) return null;
  return { why: "sandbox-has-containers", code: "sandbox_has_containers", numbers: { containers } };
}
const newest = ({ presence, because }: PodState): KeepReason =>
  presence === "unsynced"
    ? { why: "sources-not-ready", code: because }
    : { why: "newest-sandbox", code: "newest_sandbox" };

function byPod(sandboxes: readonly RuntimeSandbox[]): readonly (readonly [string, readonly SandboxTarget[]])[] {
  const byUid = new Map<string, SandboxTarget[]>();
  for (const s of sandboxes) {
    const list = byUid.get(s.metadata.uid);
    if (list === undefined) byUid.set(s.metadata.uid, [sandboxTarget(s)]);
    else list.push(sandboxTarget(s));
  }
  for (const list of byUid.values()) list.sort(byAge);
  return [...byUid].sort(byKey);
}
