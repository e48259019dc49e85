import { ok, type Result } from "../../base/result.ts";
import type { Hint, Placement, PodRefusal } from "../../model/managers.ts";
import { type Container, containersOf, type Pod } from "../../model/pod.ts";
import { isPodLevelResourcesSet } from "../resources/pod-resources.ts";
import {
  type AllocateError,
  ANY_NODE,
  type HintProvider,
  idsOf,
  type NumaNodes,
  type ResourceHints,
  type TopologyHint,
} from "./hint.ts";
import { type Merged, type MergeRefusal, mergeHints } from "./merge.ts";
import type { AligningPolicy, TopologyPolicy } from "./policy.ts";

/** A manager and its name in decisions: `devices`, `cpus` or `memory`, which is the kubelet's order. */
export interface NamedProvider {
  readonly name: string;
  readonly provider: HintProvider;
}
/** The hints of a container, or with pod scope of the whole pod (`container` null), and what they merge to. */
export interface HintMerge {
  readonly container: string | null;
  /** The providers' hints, in the providers' order. */
  readonly hints: readonly ResourceHints[];
  readonly merged: TopologyHint;
  readonly admitted: boolean;
}
/** A container, or null for the whole pod, with the names of the managers that assigned everything requested. */
interface Allocated {
  readonly container: string | null;
  readonly by: readonly string[];
}
export interface Admission {
  /** The merges up to the first refusal; none with policy `none`. */
  readonly merges: readonly HintMerge[];
  /**
   * The assignments in the order of the merges; the last container's list is short if a manager refused. After a
   * refusal the kubelet releases nothing at once: the managers keep the assignments, also in their state files, until
   * one of them removes those of inactive pods. The refused pod is inactive once its status is Failed. Then everything is
   * released, and the providers have their original state again.
   */
  readonly allocated: readonly Allocated[];
  readonly refusal: PodRefusal | null;
}

/**
 * Admits a pod: merges the hints of all providers and then allocates according to the merged hint, for the init
 * containers and then the containers. This changes the providers. `podLevel`: the gate PodLevelResourceManagers is
 * on. kubelet 1.36: topologymanager.Scope.Admit.
 */
export function admitPod(
  policy: TopologyPolicy,
  providers: readonly NamedProvider[],
  pod: Pod,
  podLevel = false,
): Result<Admission, MergeRefusal> {
  const query: ProviderQuery = {
    providers,
    pod,
    podLevel: podLevel && isPodLevelResourcesSet(pod),
    merges: [],
    allocated: [],
  };
  if (policy.name === "none") return ok(allocateAll(query, ANY_NODE));
  return policy.scope === "pod" ? admitWhole(policy, query) : admitEach(policy, query);
}

/** The hint providers' answers for one pod so far. */
interface ProviderQuery {
  readonly providers: readonly NamedProvider[];
  readonly pod: Pod;
  /** True: treat it as a pod with pod-level resources. */
  readonly podLevel: boolean;
  readonly merges: HintMerge[];
  readonly allocated: Allocated[];
}

function admitEach(policy: AligningPolicy, query: ProviderQuery): Result<Admission, MergeRefusal> {
  for (const container of containersOf(query.pod)) {
    const merged = calculateAffinity(policy, query, container);
    if (!merged.ok) return merged;
    if (!merged.value.admitted) {
      return ok(refused(query, container.name, query.podLevel ? AFFINITY_OF_CONTAINER : AFFINITY));
    }
    const error = allocate(query, container, merged.value.hint);
    if (error !== undefined) return ok(refused(query, container.name, admissionError(error)));
  }
  return ok(admitted(query));
}

function admitWhole(policy: AligningPolicy, query: ProviderQuery): Result<Admission, MergeRefusal> {
  const merged = calculateAffinity(policy, query, null);
  if (!merged.ok) return merged;
  const { admitted, hint } = merged.value;
  if (query.podLevel) return ok(admitted ? allocatePod(query, hint) : refused(query, null, AFFINITY_OF_POD));
  return ok(admitted ? allocateAll(query, hint) : refused(query, null, AFFINITY));
}

function calculateAffinity(
  policy: AligningPolicy,
  query: ProviderQuery,
  container: Container | null,
): Result<Merged, MergeRefusal> {
  const hints = query.providers.map(({ provider }) =>
    container === null ? provider.podHints(query.pod) : provider.containerHints(query.pod, container),
  );
  const merged = mergeHints(policy, hints);
  if (merged.ok) {
    const { hint, admitted } = merged.value;
    query.merges.push({ container: container?.name ?? null, hints, merged: hint, admitted });
  }
  return merged;
}

function allocateAll(query: ProviderQuery, affinity: TopologyHint): Admission {
  for (const container of containersOf(query.pod)) {
    const error = allocate(query, container, affinity);
    if (error !== undefined) return refused(query, container.name, admissionError(error));
  }
  return admitted(query);
}

function allocate(query: ProviderQuery, container: Container, hint: TopologyHint): AllocateError | undefined {
  return askEach(query, container.name, (provider) => provider.allocate(query.pod, container, hint));
}
function allocatePod(query: ProviderQuery, hint: TopologyHint): Admission {
  const error = askEach(query, null, (provider) => provider.allocatePod?.(query.pod, hint) ?? ok(undefined));
  return error === undefined ? admitted(query) : refused(query, null, admissionError(error));
}

/** Asks the managers in turn until one refuses; those before it keep their assignments. */
function askEach(
  { providers, allocated }: ProviderQuery,
  container: string | null,
  ask: (provider: HintProvider) => Result<void, AllocateError>,
): AllocateError | undefined {
  const by: string[] = [];
  allocated.push({ container, by });
  for (const { name, provider } of providers) {
    const done = ask(provider);
    if (!done.ok) return done.error;
    by.push(name);
  }
  return undefined;
}

const admitted = ({ merges, allocated }: ProviderQuery): Admission => ({ merges, allocated, refusal: null });
const refused = ({ merges, allocated }: ProviderQuery, container: string | null, text: RefusalText): Admission => ({
  merges,
  allocated,
  refusal: { ...text, container },
});

type RefusalText = Pick<PodRefusal, "reason" | "message">;
const affinityError = (message: string): RefusalText => ({ reason: "TopologyAffinityError", message });
const AFFINITY = affinityError("Resources cannot be allocated with Topology locality");
/** The refusal for pods with pod-level resources; the kubelet begins both alike. */
const AFFINITY_OF_CONTAINER = affinityError(
  "Pod Scope pod with pod-level resources failed admission with a container-level topology manager",
);
const AFFINITY_OF_POD = affinityError(
  "Pod Scope pod with pod-level resources failed admission under pod-scope topology manager",
);

/** kubelet 1.36: admission.GetPodAdmitResult. */
function admissionError({ reason, message }: AllocateError): RefusalText {
  if (reason !== undefined) return { reason, message };
  return { reason: "UnexpectedAdmissionError", message: `Allocate failed due to ${message}, which is unexpected` };
}

/** The maximum number of listed hints per resource: all sets of eight nodes. */
const MAX_LISTED = 255;
/** Shortens a longer list, the preferred hints first. */
const hintsShown = (list: readonly TopologyHint[]): readonly TopologyHint[] =>
  list.length <= MAX_LISTED
    ? list
    : [...list.filter((h) => h.preferred), ...list.filter((h) => !h.preferred)].slice(0, MAX_LISTED);

/** A turn as a decision shows it: masks become lists of node ids. */
export function placementOf(numa: NumaNodes, { container, hints, merged, admitted }: HintMerge): Placement {
  const show = (hint: TopologyHint): Hint => ({
    numaNodes: hint.nodes === null ? null : idsOf(numa, hint.nodes),
    preferred: hint.preferred,
  });
  const lists = hints.flatMap((provider) => [...provider]);
  const long = lists.flatMap(([resource, list]) => (list !== null && list.length > MAX_LISTED ? [resource] : []));
  return {
    container,
    hints: Object.fromEntries(
      lists.map(([resource, list]) => [resource, list === null ? null : hintsShown(list).map(show)]),
    ),
    cutShort: long,
    merged: show(merged),
    admitted,
  };
}
