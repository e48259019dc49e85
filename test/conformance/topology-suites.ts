import type { ResourceHints, TopologyHint } from "../../api/decide/topology/hint.ts";
import { mergeHints } from "../../api/decide/topology/merge.ts";
import { idsOf, maskOf } from "../../api/decide/topology/numa-nodes.ts";
import { type AligningPolicy, topologyPolicy } from "../../api/decide/topology/policy.ts";
import { type Suite, suite } from "./suite.ts";

interface Hint {
  readonly numaNodes: readonly number[] | null;
  readonly preferred: boolean;
}
interface MergeInput {
  readonly policy: string;
  readonly policyOptions: Readonly<Record<string, string>>;
  readonly distances: readonly (readonly number[])[];
  readonly providerHints: readonly Readonly<Record<string, readonly Hint[] | null>>[];
}
interface MergeRead {
  readonly policy: AligningPolicy;
  readonly hints: readonly ResourceHints[];
}

function readMerge({ policy: name, policyOptions: options, distances, providerHints }: MergeInput): MergeRead {
  const nodes = distances.map((row, id) => ({ id, distances: row }));
  const policy = topologyPolicy({ policy: name, scope: "container", options, nodes });
  if (!policy.ok) throw new Error(policy.error.message);
  if (policy.value.name === "none") throw new Error("policy none merges nothing");
  const { numa } = policy.value;
  const read = ({ numaNodes, preferred }: Hint): TopologyHint => ({
    nodes: numaNodes === null ? null : maskOf(numa, numaNodes),
    preferred,
  });
  const hints = providerHints.map(
    (provider) => new Map(Object.entries(provider).map(([name, list]) => [name, list?.map(read) ?? null])),
  );
  return { policy: policy.value, hints };
}

const topologyMerge = suite({
  read: readMerge,
  decide: ({ policy, hints }) => ({ numa: policy.numa, merged: mergeHints(policy, hints) }),
  show: ({ numa, merged }) => {
    if (!merged.ok) throw new Error(merged.error.message);
    const { hint, admitted } = merged.value;
    const numaNodes = hint.nodes === null ? null : idsOf(numa, hint.nodes);
    return { admit: admitted, hint: { numaNodes, preferred: hint.preferred } };
  },
});

export const TOPOLOGY_SUITES: Readonly<Record<string, Suite>> = { "topology-merge": topologyMerge };
