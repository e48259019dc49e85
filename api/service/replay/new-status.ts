import { decideAllocatable } from "../../decide/kinds/allocatable.ts";
import type { AllocatableDecision, QuantityList } from "../../model/allocatable.ts";
import type { ResourceList } from "../../model/fields.ts";
import { parseQuantity } from "../../model/quantity.ts";
import { hugePageBytes } from "../../model/snapshot.ts";
import { type EffectiveSnapshot, gateOn } from "../../profiles/effective.ts";

const LISTS = ["capacity", "allocatable"] as const;

/** The node as its kubelet measures and reports it after a restart with the configuration and version of `after`. */
export const asReported = (before: EffectiveSnapshot, after: EffectiveSnapshot): EffectiveSnapshot =>
  withNewStatus(before, withNewStats(before, after));

/**
 * The node as its kubelet reports it after a restart with the configuration and version of `after`, since pods are admitted by
 * `status.allocatable`. The kubelet rewrites each of its own amounts in both lists (kubelet 1.36: nodestatus.MachineInfo), adds
 * missing ones, and removes none. An amount that does not follow from the recorded configuration was written by something else,
 * such as a webhook, or depends on data outside the snapshot; its new value is unknown, so it stays. Returns `after` itself if no
 * amount changes, or if the kubelet does not start with one of the configurations, since it then writes no status.
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
    const reported = status[list];
    if (reported === undefined) continue;
    const others = renewed(reported, was[list], is[list]);
    if (Object.keys(others).length > 0) written = { ...written, [list]: { ...reported, ...others } };
  }
  return written === status ? after : { ...after, node: { ...node, status: written } };
}

/**
 * Whether the recorded configuration determines the node's number of pods. If it does not set one, the node's number
 * stays, since it may come from the flag `--max-pods`.
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

/** The decision; null if there is none, or the kubelet does not start. */
function allocatableOf(snapshot: EffectiveSnapshot): AllocatableDecision | null {
  const decided = decideAllocatable({ snapshot, facts: {}, ask: undefined, explain: "off" });
  return decided.ok && decided.value.verdict === "decided" ? decided.value.decision : null;
}

/** Lists the reported amounts that change. */
function renewed(reported: ResourceList, was: QuantityList, is: QuantityList): ResourceList {
  const others: { [name: string]: ResourceList[string] } = {};
  for (const [name, amount] of Object.entries(is)) {
    if (was[name] === amount || reported[name]?.amount !== amountOf(was[name])) continue;
    const now = parseQuantity(amount);
    if (now.ok) others[name] = now.value;
  }
  return others;
}

/** The amount; undefined if the node has none or does not report it. */
function amountOf(text: string | undefined): ResourceList[string]["amount"] | undefined {
  const parsed = text === undefined ? undefined : parseQuantity(text);
  return parsed?.ok === true ? parsed.value.amount : undefined;
}

/**
 * The node with the stats that its kubelet measures: the gate HugepageAwareEviction subtracts huge page memory from
 * the available memory. If its size is not known, the measured value stays. kubelet 1.37: adjustForHugePages.
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
