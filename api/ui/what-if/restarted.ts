import { decideKind } from "../../decide/index.ts";
import type { QuantityList } from "../../model/decision.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type Fields, fieldsOf } from "./assemble.ts";

const LISTS = ["capacity", "allocatable"] as const;

/**
 * The input with the node's status as the kubelet writes it once it runs with another configuration: what becomes another
 * amount of its capacity and allocatable, by which it admits. The input itself where nothing does, or nobody can tell.
 */
export function withNewStatus(input: Fields, before: Snapshot, after: Snapshot): Fields {
  const node = fieldsOf(input["node"]);
  const status = fieldsOf(node["status"]);
  const then = allocatableOf(before);
  const now = allocatableOf(after);
  if (then === null || now === null) return input;
  let written = status;
  for (const name of LISTS) {
    const others = Object.entries(now[name]).filter(([resource, amount]) => then[name][resource] !== amount);
    if (status[name] !== undefined && others.length > 0)
      written = { ...written, [name]: { ...fieldsOf(status[name]), ...Object.fromEntries(others) } };
  }
  return written === status ? input : { ...input, node: { ...node, status: written } };
}

function allocatableOf(snapshot: Snapshot): Readonly<Record<(typeof LISTS)[number], QuantityList>> | null {
  const decided = decideKind("allocatable", { snapshot, facts: {}, ask: undefined, explain: "off" });
  if (!decided.ok || decided.value.verdict !== "decided") return null;
  const { decision } = decided.value;
  return "kubepods" in decision ? decision : null;
}
