import { type Fields, isObject } from "../../base/own.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { milliValue, value } from "../../model/amount.ts";
import type { Decided, DecisionOf, ReasonCode, Refusal } from "../../model/decision.ts";
import type { Numbers, PodRef } from "../../model/forms.ts";
import type { ManagerReason, Placement, PodRefusal } from "../../model/managers.ts";
import { type Container, containersOf, type Pod } from "../../model/pod.ts";
import type { PodAsk } from "../../model/pod-ask.ts";
import type { EffectiveArguments, EffectiveSnapshot } from "../../profiles/effective.ts";
import { type CheckpointV2, type CpuState, hashedV2, sharedCpus, writeCpuState } from "../cpus/checkpoint.ts";
import { exclusiveCpus } from "../cpus/request.ts";
import { common, cpuText } from "../cpus/sets.ts";
import { startState } from "../cpus/start.ts";
import { writeCheckpoint } from "../devices/checkpoint.ts";
import { sharedDevices } from "../devices/inventory.ts";
import { fnv1a } from "../go/fnv1a.ts";
import type { StateForm } from "../go/state-data.ts";
import { memoryStateFile } from "../memory/start.ts";
import { type ReasonRecorder, Reasons } from "../reasons.ts";
import type { Admission, HintMerge } from "../topology/admit.ts";
import { placementOf } from "../topology/admit.ts";
import { mergeHints } from "../topology/merge.ts";
import type { AligningPolicy } from "../topology/policy.ts";
import { asManagersCount } from "./allocated-view.ts";
import {
  admit,
  type ManagedNode,
  type Managers,
  managedNode,
  managersOf,
  podNames,
  podOfAsk,
  providersOf,
  tooManyHints,
} from "./node.ts";

/** The CPU manager's file as the kubelet would write it now. */
const nextFiles = (policyName: string, state: CpuState, form: StateForm): { readonly cpu_manager_state: string } => ({
  cpu_manager_state: writeCpuState(policyName, state, form),
});

/** The kubelet's state files as it would write them now, to post back as `assignments`. */
export function nextState(
  node: ManagedNode,
  after: Managers,
): { readonly assignments: Readonly<Record<string, string>> } {
  const { settings } = node;
  const files: Record<string, string> = {
    ...nextFiles(node.cpuPolicy.name, after.cpus.state(), settings),
    memory_manager_state: memoryStateFile(node.memory.policy, after.memory.state, settings),
  };
  if (node.inventories.size > 0 || node.checkpoint !== undefined) {
    files["kubelet_internal_checkpoint"] = writeCheckpoint(after.devices.checkpoint());
  }
  return { assignments: files };
}

/** One question to a node's managers, answered once for all kinds that show part of it. */
export interface ManagerQuery {
  readonly node: ManagedNode;
  readonly pod: Pod | null;
  /** The managers before the pod was tried. */
  readonly before: Managers;
  /** The managers after the pod was admitted; if it was refused, as before. */
  readonly after: Managers;
  readonly admission: Admission | null;
  readonly placements: readonly Placement[];
  readonly refusal: PodRefusal | null;
  /** The managers as they were when the pod was refused; else as `after`. */
  readonly tried: Managers;
  readonly warnings: readonly string[];
}
/** The answer, or why the kubelet of this node does not start. */
type Answer = Result<ManagerQuery, readonly string[]>;

/** Errors: what cannot be answered at all. */
function askManagers({ snapshot, ask }: EffectiveArguments<PodAsk>, needs: string[]): Result<Answer, Refusal> {
  const given = podOfAsk(snapshot, ask);
  if (!given.ok) return given;
  const started = managedNode(snapshot, needs);
  if (!started.ok) return started;
  if (!started.value.ok) return ok(started.value);
  const node = started.value.value;
  const pod = given.value && asManagersCount(given.value, node.settings);
  const before = managersOf(node, null);
  const nothing = { admission: null, placements: [], refusal: null, tried: before };
  if (pod === null) {
    const warnings = warningsOf(node, before, before, podNames(node.active));
    return ok(ok({ node, pod: null, before, after: before, ...nothing, warnings }));
  }
  const tooLarge = tooManyHints(node.topology, node.numa, [pod], "pod");
  if (tooLarge !== undefined) return err({ code: "too_large", message: tooLarge, needs: [] });
  const tried = managersOf(node, pod);
  const admission = admit(node, tried, pod);
  if (!admission.ok) return err({ code: "too_large", message: admission.error.message, needs: [] });
  const { merges, refusal } = admission.value;
  const placements = merges.map((merge) => placementOf(node.numa, merge));
  const after = refusal === null ? tried : before;
  const warnings = warningsOf(node, before, after, podNames([...node.active, pod]));
  const answered = { node, pod, before, after, admission: admission.value, placements, refusal, tried };
  return ok(ok({ ...answered, warnings }));
}

type ManagerKind = "cpus" | "memory" | "topology" | "devices";
/** The ways a kind merges an answer of the managers into its decision. */
interface Forms<K extends ManagerKind> {
  /** Errors: what cannot be answered at all. */
  readonly decided: (
    answered: ManagerQuery,
    reasons: Reasons<ReasonCode<K> | ManagerReason>,
    needs: string[],
  ) => Result<DecisionOf[K], Refusal>;
  /** Builds the decision for a node whose kubelet does not start. */
  readonly notStarted: (startErrors: readonly string[], warnings: readonly string[]) => DecisionOf[K];
}

/** The decision of a kind that shows a part of what the managers answer. */
export function decideWith<K extends ManagerKind>(
  asked: EffectiveArguments<PodAsk>,
  forms: Forms<K>,
): Result<Decided<DecisionOf[K], ReasonCode<K> | ManagerReason>, Refusal> {
  const reasons = new Reasons<ReasonCode<K> | ManagerReason>(asked.explain);
  const needs: string[] = [];
  const answer = askManagers(asked, needs);
  if (!answer.ok) return answer;
  if (!answer.value.ok) {
    const warnings = fileWarnings(asked.snapshot);
    const decision = forms.notStarted(answer.value.error, warnings);
    for (const message of answer.value.error) reasons.add("kubelet_does_not_start", "node", "startErrors", { message });
    return ok({ decision, verdict: "kubelet-refuses", reasons: reasons.list, needs, next: null });
  }
  const answered = answer.value.value;
  const decision = forms.decided(answered, reasons, needs);
  if (!decision.ok) return decision;
  explainRefusal(answered, reasons);
  const verdict = answered.refusal === null ? "decided" : "refused";
  return ok({
    decision: decision.value,
    verdict,
    reasons: reasons.list,
    needs,
    next: nextState(answered.node, answered.after),
  });
}

/** Explains a refusal: which container, which manager, what was requested and what was left. */
function explainRefusal(
  { node, pod, admission, refusal, tried }: ManagerQuery,
  reasons: ReasonRecorder<ManagerReason>,
): void {
  if (pod === null || refusal === null || admission === null) return;
  const at = refusal.container ?? pod.metadata.name;
  const last = admission.merges.at(-1);
  if (last !== undefined && !last.admitted && node.topology.name !== "none") {
    const blocking = blockingResources(node.topology, last).join(",");
    reasons.add("refused", at, "placement", { reason: refusal.reason, manager: "topology", blocking });
    return;
  }
  const done = admission.allocated.at(-1)?.by ?? [];
  const manager = providersOf(tried)[done.length]?.name ?? "managers";
  const container = containersOf(pod).find((c) => c.name === at);
  const numbers = container === undefined ? {} : numbersOf(manager, tried, node.settings.podLevel, pod, container);
  reasons.add("refused", at, manager, { reason: refusal.reason, manager, ...numbers });
}

function numbersOf(
  manager: string,
  tried: ManagerQuery["tried"],
  podLevel: boolean,
  pod: Pod,
  container: Container,
): Numbers {
  const requests = container.resources?.requests ?? {};
  if (manager === "cpus") {
    const { defaultCpus } = tried.cpus.state();
    return {
      requested: exclusiveCpus(pod, container, podLevel),
      free: tried.cpus.available().size,
      sharedPool: defaultCpus.size,
      requestedMilliCpu: milliValue(requests["cpu"]?.amount ?? 0),
    };
  }
  if (manager === "memory") {
    const free = [...tried.memory.state.machineState].map(([id, { memoryMap }]) => {
      const tables = [...memoryMap].map(([name, table]) => `${name} ${table.free}`);
      return `node ${id}: ${tables.join(", ")}`;
    });
    return { requested: value(requests["memory"]?.amount ?? 0), free: free.join("; ") };
  }
  const asked = Object.entries(container.resources?.limits ?? {}).filter(([name]) =>
    tried.devices.inventories.has(name),
  );
  const inUse = asked.map(([name]) => `${name} ${tried.devices.state.inUse(name).size}`);
  return {
    requested: asked.map(([name, quantity]) => `${name} ${value(quantity.amount)}`).join(", "),
    healthy: asked.map(([name]) => `${name} ${tried.devices.inventories.get(name)?.healthy.size ?? 0}`).join(", "),
    inUse: inUse.join(", "),
  };
}

/** Resources that cannot be placed at all; else those without which the others could be placed together. */
function blockingResources(policy: AligningPolicy, { hints }: HintMerge): readonly string[] {
  const lists = hints.flatMap((of) => [...of]);
  const impossible = lists.filter(([, list]) => list !== null && list.length === 0).map(([name]) => name);
  if (impossible.length > 0) return impossible;
  const alone = lists.filter(([left]) => {
    const others = hints.map((of) => new Map([...of].filter(([name]) => name !== left)));
    const merged = mergeHints(policy, others);
    return merged.ok && merged.value.admitted;
  });
  return (alone.length > 0 ? alone : lists).map(([name]) => name);
}

/** Lists what the kubelet accepts silently on a node as it will be; each warning names the file that it is about. */
function warningsOf(
  node: ManagedNode,
  before: Managers,
  after: Managers,
  nameOf: (uid: string) => PodRef,
): readonly string[] {
  const name = (uid: string): string => {
    const { namespace, name: pod } = nameOf(uid);
    return pod === "" ? `pod ${uid}` : `${namespace}/${pod}`;
  };
  const warnings = [...fileWarnings(node.snapshot)];
  if (node.checkpointError !== null) {
    const lost = "the kubelet logs it, goes on as if no container held a device, and writes it anew";
    warnings.push(`kubelet_internal_checkpoint: ${node.checkpointError}: ${lost}; keep a copy`);
  }
  for (const { cpus, holders } of sharedCpus(before.cpus.state().assignments)) {
    const who = holders.map(({ uid, container }) => `${name(uid)} (${container})`).join(" and ");
    warnings.push(`cpu_manager_state: CPUs ${cpuText(cpus)} belong to ${who} at once`);
  }
  for (const { resource, id, podUids } of sharedDevices(before.devices.checkpoint().entries)) {
    warnings.push(
      `kubelet_internal_checkpoint: ${resource} ${id} belongs to ${podUids.map(name).join(" and ")} at once`,
    );
  }
  return [...warnings, ...restartWarnings(node, after, name)];
}

/** Reserved CPUs that are given away, and a file with which the kubelet would not start again. */
function restartWarnings({ cpuPolicy, settings }: ManagedNode, { cpus }: Managers, name: (uid: string) => string) {
  if (cpuPolicy.name === "none") return [];
  const warnings: string[] = [];
  const state = cpus.state();
  for (const [uid, containers] of state.assignments) {
    for (const [container, own] of containers) {
      const reserved = common(own, cpuPolicy.reserved);
      if (reserved.size === 0) continue;
      warnings.push(
        `reserved CPUs ${cpuText(reserved)} are given to ${name(uid)} (${container}): the kubelet takes a core for free where as many of its threads are free as cores have on average`,
      );
    }
  }
  const { cpu_manager_state: file } = nextFiles(cpuPolicy.name, state, settings);
  const again = startState({ ...settings, policy: cpuPolicy, file });
  if (!again.ok) warnings.push(`cpu_manager_state: with the next one the kubelet does not start again: ${again.error}`);
  return warnings;
}

const parsed = (text: string | undefined): Fields | undefined => {
  try {
    const value = JSON.parse(text ?? "") as unknown;
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
};

/**
 * Warnings about state files of an old version, and about missing or wrong checksums, also if the kubelet ignores
 * them. A file with `data` gets no warning: faults in it prevent the kubelet from starting, and the kubelet does not
 * read the rest of the file.
 */
function fileWarnings({ assignments = {}, kubeletConfiguration }: EffectiveSnapshot): readonly string[] {
  const { stateFiles } = kubeletConfiguration.profile.behaviour;
  const warnings: string[] = [];
  const olderForm = (text: string | undefined): Fields | undefined => {
    const state = parsed(text);
    return stateFiles === "data" && (state?.["data"] || state?.["dataChecksum"]) ? undefined : state;
  };
  const cpus = olderForm(assignments.cpu_manager_state);
  const memory = stateFiles === "containers" ? undefined : olderForm(assignments.memory_manager_state);
  for (const [file, state] of Object.entries({ cpu_manager_state: cpus, memory_manager_state: memory })) {
    if (state !== undefined && (state["checksum"] ?? 0) === 0) {
      warnings.push(`${file}: it has no checksum, and the kubelet takes it as it is`);
    }
  }
  const entries = Object.entries((cpus?.["entries"] ?? {}) as Fields);
  const isV1 = entries.some(([, of]) => typeof of === "string");
  if (isV1 && stateFiles !== "data") {
    warnings.push(
      "cpu_manager_state: version 1, which knows containers by their ids; the kubelet writes it anew as version 2",
    );
  } else if (!isV1 && cpus !== undefined && typeof cpus["checksum"] === "number" && cpus["checksum"] !== 0) {
    const actual = fnv1a(hashedV2(fieldsOf(cpus, entries)));
    if (actual !== cpus["checksum"] && cpus["podEntries"] === undefined) {
      warnings.push(`cpu_manager_state: its checksum is ${cpus["checksum"]}, its content gives ${actual}`);
    }
  }
  return warnings;
}

const fieldsOf = (file: Fields, entries: readonly (readonly [string, unknown])[]): CheckpointV2 => ({
  policyName: String(file["policyName"] ?? ""),
  defaultCpuSet: String(file["defaultCpuSet"] ?? ""),
  entries: new Map(
    entries.map(([uid, of]) => [uid, new Map(Object.entries((of ?? {}) as Fields).map(([c, v]) => [c, String(v)]))]),
  ),
});
