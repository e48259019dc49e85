import { err, ok, type Result } from "../../model/result.ts";
import { type NumaNodes, numaNodes } from "./numa-nodes.ts";
import { type TopologyOptions, topologyOptions } from "./options.ts";

export const TOPOLOGY_POLICIES = ["none", "best-effort", "restricted", "single-numa-node"] as const;
type PolicyName = (typeof TOPOLOGY_POLICIES)[number];
export const TOPOLOGY_SCOPES = ["container", "pod"] as const;
type ScopeName = (typeof TOPOLOGY_SCOPES)[number];

/** A policy that merges hints. */
export interface AligningPolicy {
  readonly name: Exclude<PolicyName, "none">;
  readonly scope: ScopeName;
  readonly numa: NumaNodes;
  /** By the bits of two nodes; null unless the closest nodes are preferred. */
  readonly distances: readonly (readonly number[])[] | null;
}
/** With `none` no hint is asked for, and scope and options mean nothing. */
export type TopologyPolicy = AligningPolicy | { readonly name: "none" };

/** A NUMA node in the machine's order; `distances` as the kernel lists them, to every node from 0 up. */
export interface NumaNode {
  readonly id: number;
  readonly distances?: readonly number[] | undefined;
}
export interface PolicySetting {
  readonly policy: string;
  readonly scope: string;
  readonly options: Readonly<Record<string, string>>;
  readonly nodes: readonly NumaNode[];
}

/**
 * Why there is no policy. `start`: the kubelet would not start, and says so in these words. `panic`: it would start, and
 * fall over the first pod. `bound`: more than this answers.
 */
export interface PolicyError {
  readonly code: "start" | "panic" | "bound";
  readonly message: string;
}

/** Managers hint at each of 2^n sets of nodes, for each container. The kubelet's default is 8; real machines have up to 16. */
export const MOST_ALIGNED_NODES = 16;
const MOST_BIT = 63;

/** The policy of a kubelet's configuration on a machine. kubelet 1.36: topologymanager.NewManager. */
export function topologyPolicy({ policy, scope, options, nodes }: PolicySetting): Result<TopologyPolicy, PolicyError> {
  if (policy === "none") return ok({ name: policy });
  const read = topologyOptions(options);
  if (!read.ok) return start(read.error);
  if (read.value.preferClosest && nodes.some((node) => node.distances === undefined)) {
    return start("cannot discover NUMA topology: error getting NUMA distances from cadvisor");
  }
  if (nodes.length > read.value.maxNodes) {
    return start(`unsupported on machines with more than ${read.value.maxNodes} NUMA Nodes`);
  }
  if (!isPolicy(policy)) return start(`unknown policy: "${policy}"`);
  if (!isScope(scope)) return start(`unknown scope: "${scope}"`);
  return unanswered(nodes) ?? withNodes(policy, scope, nodes, read.value);
}
const start = (message: string): Result<never, PolicyError> => err({ code: "start", message });
const isPolicy = (name: string): name is AligningPolicy["name"] =>
  name !== "none" && (TOPOLOGY_POLICIES as readonly string[]).includes(name);
const isScope = (name: string): name is ScopeName => (TOPOLOGY_SCOPES as readonly string[]).includes(name);

function unanswered(nodes: readonly NumaNode[]): Result<never, PolicyError> | undefined {
  const far = nodes.find(({ id }) => id > MOST_BIT);
  if (far !== undefined) {
    return err({
      code: "panic",
      message: `NUMA node ${far.id} is above ${MOST_BIT}, the last that the kubelet can name`,
    });
  }
  if (nodes.length <= MOST_ALIGNED_NODES) return undefined;
  const message = `${nodes.length} NUMA nodes have 2^${nodes.length} sets to hint at; answered are at most ${MOST_ALIGNED_NODES} nodes`;
  return err({ code: "bound", message });
}

function withNodes(
  name: AligningPolicy["name"],
  scope: ScopeName,
  nodes: readonly NumaNode[],
  { preferClosest }: TopologyOptions,
): Result<AligningPolicy, PolicyError> {
  const numa = numaNodes(nodes.map(({ id }) => id));
  // one node is as close as another, so this policy does not ask
  if (!preferClosest || name === "single-numa-node") return ok({ name, scope, numa, distances: null });
  const rows = new Map(nodes.map(({ id, distances = [] }) => [id, distances]));
  const distances: readonly Row[] = numa.ids.map((from) => numa.ids.map((to) => rows.get(from)?.[to]));
  if (distances.every(isWhole)) return ok({ name, scope, numa, distances });
  // a machine with a hole in its ids: the kernel's list is shorter than the kubelet takes it to be
  return err({
    code: "panic",
    message: `prefer-closest-numa-nodes reads past the distances of NUMA nodes ${numa.ids}`,
  });
}
type Row = readonly (number | undefined)[];
const isWhole = (row: Row): row is readonly number[] => row.every((d) => d !== undefined);
