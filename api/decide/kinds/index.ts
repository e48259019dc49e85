import { err, ok, type Result } from "../../base/result.ts";
import type { AskOf, DecideArguments, Decided, DecidedOf, DecisionOf, Kind, Refusal } from "../../model/decision.ts";
import { type EffectiveArguments, effectiveSnapshot } from "../../profiles/effective.ts";
import type { Profile } from "../../profiles/profile.ts";
import { othersPods, podsLeftOut, unknownOverheads } from "../pods/pods-of-other-nodes.ts";
import { decideAdmission } from "./admission.ts";
import { decideAllocatable } from "./allocatable.ts";
import { decideCgroups } from "./cgroups.ts";
import { decideClaims } from "./claims.ts";
import { decideContainerGc } from "./container-gc.ts";
import { decideCpus } from "./cpus.ts";
import { decideDevices } from "./devices.ts";
import { decideEviction } from "./eviction.ts";
import { decideImageGc } from "./image-gc.ts";
import { decideMemory } from "./memory.ts";
import { decidePreemption } from "./preemption.ts";
import { decideProbeGuard } from "./probe-guard.ts";
import { decideProbes } from "./probes.ts";
import { decideResize } from "./resize.ts";
import { decideTopology } from "./topology.ts";

/** A decider. INVARIANT: it is a pure function of its argument: same input, same answer, same reasons. */
type Decider<K extends Kind> = (asked: EffectiveArguments<AskOf[K]>) => Result<DecidedOf<K>, Refusal>;

/** The decider of each kind; everything else about a kind is in its spec (`api/model/kinds.ts`). */
export const DECIDERS: { readonly [K in Kind]: Decider<K> } = {
  allocatable: decideAllocatable,
  cgroups: decideCgroups,
  cpus: decideCpus,
  memory: decideMemory,
  topology: decideTopology,
  devices: decideDevices,
  claims: decideClaims,
  admission: decideAdmission,
  preemption: decidePreemption,
  resize: decideResize,
  eviction: decideEviction,
  "image-gc": decideImageGc,
  "container-gc": decideContainerGc,
  probes: decideProbes,
  "probe-guard": decideProbeGuard,
};

/**
 * Decides a kind under a profile: that of the snapshot's kubelet unless another is given. For callers that receive
 * kind and ask from outside; `ask` comes from `decodeAsk` for this kind. A caller that asks several kinds about one
 * snapshot computes the effective snapshot once. This also adds what applies to every kind that reads pods: pods of
 * other nodes, and pods that lack their overhead.
 */
export function decideKind(
  kind: Kind,
  asked: DecideArguments<AskOf[Kind]>,
  profile?: Profile,
): Result<Decided<DecisionOf[Kind]>, Refusal> {
  const { snapshot, ask, explain } = asked;
  const others = othersPods(kind, snapshot, ask);
  if (others !== undefined) return err(others);
  const decider = DECIDERS[kind] as (
    asked: EffectiveArguments<AskOf[Kind]>,
  ) => Result<Decided<DecisionOf[Kind]>, Refusal>;
  const answer = decider({ ...asked, snapshot: effectiveSnapshot(snapshot, profile) });
  if (!answer.ok) return answer;
  const { reasons, needs } = answer.value;
  const left = explain === "off" ? undefined : podsLeftOut(kind, snapshot);
  const unknown = unknownOverheads(kind, snapshot, ask);
  if (left === undefined && unknown.length === 0) return answer;
  const allReasons = left === undefined ? reasons : [{ at: "snapshot.pods", because: [left] }, ...reasons];
  return ok({ ...answer.value, reasons: allReasons, needs: [...needs, ...unknown] });
}
