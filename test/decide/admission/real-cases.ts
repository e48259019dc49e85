import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Json } from "../../kit/snapshots.ts";

/** A kubelet 1.36.3, and a pod that was posted to its node of two CPUs. */
interface RealCase {
  readonly name: string;
  readonly snapshot: Json;
  /** The pod as it was posted to the API server. */
  readonly applied: Json;
  /** The pod's status. */
  readonly outcome: { readonly phase: string; readonly reason?: string; readonly message?: string };
  /** Names of the victims in the order of their events; present in preemption cases. */
  readonly victims?: readonly string[];
}
interface File {
  readonly nodes: readonly Json[];
  readonly pods: readonly Json[];
  readonly cases: readonly (Omit<RealCase, "snapshot"> & { readonly node: number; readonly pods: readonly number[] })[];
}

export function realCases(dir: "real-admission" | "real-preemption"): readonly RealCase[] {
  const path = join(import.meta.dirname, "../../data", dir, "cases.json");
  const { nodes, pods, cases } = JSON.parse(readFileSync(path, "utf8")) as File;
  return cases.map(({ node, pods: indexes, ...rest }) => ({
    ...rest,
    snapshot: { node: nodes[node], pods: indexes.map((i) => pods[i]) },
  }));
}

const PREFIX = "Pod was rejected: ";
/** The message as the event contains it. */
export const eventMessage = ({ outcome }: RealCase): string => (outcome.message ?? "").slice(PREFIX.length);
