import { decideAllocatable } from "../../decide/kinds/allocatable.ts";
import type { AllocatableDecision, QuantityList } from "../../model/allocatable.ts";
import type { ResourceList } from "../../model/fields.ts";
import { parseQuantity } from "../../model/quantity.ts";
import { hugePageBytes } from "../../model/snapshot.ts";
import { type EffectiveSnapshot, gateOn } from "../../profiles/effective.ts";

const LISTS = ["capacity", "allocatable"] as const;

/** The node as its kubelet measures and reports it once it has started anew with the configuration and the version of `after`. */
export const asReported = (before: EffectiveSnapshot, after: EffectiveSnapshot): EffectiveSnapshot =>
  withNewStatus(before, withNewStats(before, after));

/**
 * The node as its kubelet reports it once it has started anew with the configuration and the version of `after`: pods come in by
 * `status.allocatable`. Such a kubelet writes every amount of its own again, in both lists (kubelet 1.36: nodestatus.MachineInfo),
 * adds what it did not tell before, and takes nothing away. An amount that is not what the recorded configuration makes of it
 * was written by somebody else, such as a webhook, or follows from what the snapshot does not hold: what it would become
 * nobody can tell, so it stays as recorded. `after` itself where nothing becomes another amount, or where `allocatable` says that
 * the kubelet does not start with one of both configurations: who does not run writes no status.
 */
export function withNewStatus(before: EffectiveSnapshot, after: EffectiveSnapshot): EffectiveSnapshot {
  const { node } = after;
  const status = node?.status;
  if (node === undefined || status === undefined) return after;
  const was = allocatableOf(before);
  if (was === null) return after;
  const is = allocatableOf(isPodsExplained(before, was) ? withoutPods(after) : after);
  if (is === null) return after;
  let written = status;
  for (const list of LISTS) {
    const told = status[list];
    if (told === undefined) continue;
    const others = renewed(told, was[list], is[list]);
    if (Object.keys(others).length > 0) written = { ...written, [list]: { ...told, ...others } };
  }
  return written === status ? after : { ...after, node: { ...node, status: written } };
}

/**
 * Checks that the recorded configuration made the node's number of pods, which then says nothing of another configuration.
 * Where it names none, the node's own is all there is to know: it may come from the flag `--max-pods`.
 */
function isPodsExplained(before: EffectiveSnapshot, was: AllocatableDecision): boolean {
  const { given, podsPerCore } = before.kubeletConfiguration;
  const isNamed = given.maxPods !== undefined || podsPerCore > 0;
  return isNamed && before.node?.status?.capacity?.["pods"]?.amount === amountOf(was.capacity["pods"]);
}

function withoutPods(snapshot: EffectiveSnapshot): EffectiveSnapshot {
  const { node } = snapshot;
  if (node === undefined) return snapshot;
  const { pods: _, ...capacity } = node.status?.capacity ?? {};
  return { ...snapshot, node: { ...node, status: { ...node.status, capacity } } };
}

/** Null where it cannot be decided, or the kubelet does not start. */
function allocatableOf(snapshot: EffectiveSnapshot): AllocatableDecision | null {
  const decided = decideAllocatable({ snapshot, facts: {}, ask: undefined, explain: "off" });
  return decided.ok && decided.value.verdict === "decided" ? decided.value.decision : null;
}

/** Lists the told amounts that become other ones. */
function renewed(told: ResourceList, was: QuantityList, is: QuantityList): ResourceList {
  const others: { [name: string]: ResourceList[string] } = {};
  for (const [name, amount] of Object.entries(is)) {
    if (was[name] === amount || told[name]?.amount !== amountOf(was[name])) continue;
    const now = parseQuantity(amount);
    if (now.ok) others[name] = now.value;
  }
  return others;
}

/** A resource that a node has none of is undefined, as one that is not told. */
function amountOf(text: string | undefined): ResourceList[string]["amount"] | undefined {
  const parsed = text === undefined ? undefined : parseQuantity(text);
  return parsed?.ok === true ? parsed.value.amount : undefined;
}

/**
 * The same with the stats that its kubelet measures: the gate HugepageAwareEviction takes the memory that is set aside for huge pages
 * from what is available. Where nobody knows how much that is, it stays as measured. kubelet 1.37: adjustForHugePages.
 */
export function withNewStats(before: EffectiveSnapshot, after: EffectiveSnapshot): EffectiveSnapshot {
  const [spared, spares] = [before, after].map(({ kubeletConfiguration }) =>
    gateOn(kubeletConfiguration, "HugepageAwareEviction"),
  );
  const { stats } = after;
  const available = stats?.node?.memory?.availableBytes;
  const bytes = hugePageBytes(after);
  if (spared === spares || available === undefined || bytes === null) return after;
  const availableBytes = Math.max(0, spares === true ? available - bytes : available + bytes);
  const memory = { ...stats?.node?.memory, availableBytes };
  return { ...after, stats: { ...stats, node: { ...stats?.node, memory } } };
}
