import { decideAllocatable } from "../decide/allocatable/decide.ts";
import { parseQuantity, type Quantity } from "../model/quantity.ts";
import type { Snapshot } from "../model/snapshot.ts";

/**
 * The node as it would report itself with the changed configuration: pods come in by `status.allocatable`, which a kubelet
 * writes anew when it starts. Of a resource whose recorded amount is not what the recorded configuration makes of it, somebody
 * else has a say, so it stays as recorded.
 */
export function withNewStatus(before: Snapshot, after: Snapshot): Snapshot {
  const { node } = after;
  const told = node?.status?.allocatable;
  if (node === undefined || told === undefined) return after;
  const was = allocatableOf(before);
  const is = allocatableOf(after);
  const allocatable = Object.fromEntries(
    Object.entries(told).map(([name, amount]) => [name, renewed(amount, was[name], is[name])]),
  );
  return { ...after, node: { ...node, status: { ...node.status, allocatable } } };
}

/** Empty where it cannot be decided. */
function allocatableOf(snapshot: Snapshot): Readonly<Record<string, string>> {
  const decided = decideAllocatable({ snapshot, facts: {}, ask: undefined, explain: "off" });
  return decided.ok ? decided.value.decision.allocatable : {};
}

function renewed(told: Quantity, was: string | undefined, is: string | undefined): Quantity {
  if (was === undefined || is === undefined || was === is) return told;
  const [old, now] = [parseQuantity(was), parseQuantity(is)];
  return old.ok && now.ok && old.value.amount === told.amount ? now.value : told;
}
