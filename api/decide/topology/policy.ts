import { own } from "../../base/own.ts";
import { err, ok, type Result } from "../../base/result.ts";
import type { OptionGates } from "../../profiles/profile.ts";
import { parseBool, parseWhole, quote } from "../go/strconv.ts";
import { type NumaNodes, numaNodes } from "./hint.ts";

interface TopologyOptions {
  readonly preferClosest: boolean;
  /** A machine with more NUMA nodes than this does not get a kubelet with a topology policy. */
  readonly maxNodes: number;
}
const DEFAULT_MAX_NODES = 8;
const DEFAULT_OPTIONS: TopologyOptions = { preferClosest: false, maxNodes: DEFAULT_MAX_NODES };

type Read = (options: TopologyOptions, value: string, name: string) => Result<TopologyOptions, string>;

const preferClosest: Read = (options, value, name) => {
  const parsed = parseBool(value);
  if (!parsed.ok) return err(`bad value for option ${quote(name)}: ${parsed.error}`);
  return ok({ ...options, preferClosest: parsed.value });
};
const maxNodes: Read = (options, value, name) => {
  const parsed = parseWhole(value);
  if (!parsed.ok) return err(`unable to convert policy option to integer ${quote(name)}: ${parsed.error}`);
  const most = Number(parsed.value);
  if (most >= DEFAULT_MAX_NODES) return ok({ ...options, maxNodes: most });
  return err(`the minimum value of ${quote(name)} should not be less than ${DEFAULT_MAX_NODES}`);
};

const OPTIONS: ReadonlyMap<string, Read> = new Map([
  ["prefer-closest-numa-nodes", preferClosest],
  ["max-allowable-numa-nodes", maxNodes],
]);

/**
 * `topologyManagerPolicyOptions`; the error is the kubelet's. Of several faults the kubelet names any one, this the first
 * by the option's name. kubelet 1.36: topologymanager.NewPolicyOptions.
 */
export function topologyOptions(
  values: Readonly<Record<string, string>>,
  gates: OptionGates,
): Result<TopologyOptions, string> {
  let options = DEFAULT_OPTIONS;
  for (const name of Object.keys(values).sort()) {
    const read = OPTIONS.get(name);
    const level = own(gates.behaviour.topologyManagerPolicyOptions, name);
    if (read === undefined || level === undefined) return err(`unknown Topology Manager Policy option: ${quote(name)}`);
    if (level !== "stable" && !gates[level]) {
      const stage = level === "alpha" ? "Alpha" : "Beta";
      return err(`Topology Manager Policy ${stage}-level Options not enabled, but option ${quote(name)} provided`);
    }
    const next = read(options, values[name] as string, name);
    if (!next.ok) return next;
    options = next.value;
  }
  return ok(options);
}

export const TOPOLOGY_POLICIES = ["none", "best-effort", "restricted", "single-numa-node"] as const;
type PolicyName = (typeof TOPOLOGY_POLICIES)[number];
export const TOPOLOGY_SCOPES = ["container", "pod"] as const;
type ScopeName = (typeof TOPOLOGY_SCOPES)[number];

/** A policy that merges hints. */
export interface AligningPolicy {
  readonly name: Exclude<PolicyName, "none">;
  readonly scope: ScopeName;
  readonly numa: NumaNodes;
  /** The distances by the bits of two nodes; null unless the closest nodes are preferred. */
  readonly distances: readonly (readonly number[])[] | null;
}
/** The policy; with `none` no hints are collected, and scope and options have no effect. */
export type TopologyPolicy = AligningPolicy | { readonly name: "none" };

/** A NUMA node in the machine's order; `distances` as the kernel lists them, to every node from 0 up. */
interface NumaNode {
  readonly id: number;
  readonly distances?: readonly number[] | undefined;
}
export interface PolicySetting {
  readonly policy: string;
  readonly scope: string;
  readonly options: Readonly<Record<string, string>>;
  readonly gates: OptionGates;
  readonly nodes: readonly NumaNode[];
}

/**
 * Why there is no policy. `start`: the kubelet does not start, with this message. `panic`: it starts, and crashes on
 * the first pod. `bound`: the input exceeds the limits of this implementation.
 */
export interface PolicyError {
  readonly code: "start" | "panic" | "bound";
  readonly message: string;
}

/** Managers hint at each of 2^n sets of nodes, for each container. The kubelet's default is 8; real machines have up to 16. */
export const MAX_ALIGNED_NODES = 16;
const MAX_BIT = 63;

/** The policy of a kubelet's configuration on a machine. kubelet 1.36: topologymanager.NewManager. */
export function topologyPolicy({
  policy,
  scope,
  options,
  gates,
  nodes,
}: PolicySetting): Result<TopologyPolicy, PolicyError> {
  if (policy === "none") return ok({ name: policy });
  const read = topologyOptions(options, gates);
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
  const far = nodes.find(({ id }) => id > MAX_BIT);
  if (far !== undefined) {
    return err({
      code: "panic",
      message: `NUMA node ${far.id} is above ${MAX_BIT}, the last that the kubelet can name`,
    });
  }
  if (nodes.length <= MAX_ALIGNED_NODES) return undefined;
  const message = `${nodes.length} NUMA nodes have 2^${nodes.length} sets to hint at; answered are at most ${MAX_ALIGNED_NODES} nodes`;
  return err({ code: "bound", message });
}

function withNodes(
  name: AligningPolicy["name"],
  scope: ScopeName,
  nodes: readonly NumaNode[],
  { preferClosest }: TopologyOptions,
): Result<AligningPolicy, PolicyError> {
  const numa = numaNodes(nodes.map(({ id }) => id));
  // with one node at a time distances do not matter, so this policy ignores them
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
