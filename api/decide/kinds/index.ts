import type { Asked, AskOf, Decided, DecidedOf, DecisionOf, Kind, Refusal } from "../../model/decision.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { type EffectiveAsked, effectiveSnapshot } from "../../profiles/effective.ts";
import type { Profile } from "../../profiles/profile.ts";
import { othersPods, podsLeftOut, unknownOverheads } from "../pods/whose-pods.ts";
import { decideWithManagers } from "./admission.ts";
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

/** INVARIANT: a pure function of its argument. Same input, same answer, same reasons. */
type Decider<K extends Kind> = (asked: EffectiveAsked<AskOf[K]>) => Result<DecidedOf<K>, Refusal>;

/** The decider of each kind; all else of a kind is in its spec (`api/model/kinds.ts`). */
export const DECIDERS: { readonly [K in Kind]: Decider<K> } = {
  allocatable: decideAllocatable,
  cgroups: decideCgroups,
  cpus: decideCpus,
  memory: decideMemory,
  topology: decideTopology,
  devices: decideDevices,
  claims: decideClaims,
  admission: decideWithManagers,
  preemption: decidePreemption,
  resize: decideResize,
  eviction: decideEviction,
  "image-gc": decideImageGc,
  "container-gc": decideContainerGc,
  probes: decideProbes,
  "probe-guard": decideProbeGuard,
};

/**
 * A kind's decision under a profile, that of the snapshot's kubelet unless told otherwise, for a caller that has kind and ask from outside; `ask` is what
 * `decodeAsk` made for this kind. Whoever asks several kinds about one snapshot makes it effective once and for all. What
 * holds of every kind that looks at pods is told here: whose pods they are, and which of them lack their overhead.
 */
export function decideKind(
  kind: Kind,
  asked: Asked<AskOf[Kind]>,
  profile?: Profile,
): Result<Decided<DecisionOf[Kind]>, Refusal> {
  const { snapshot, ask, explain } = asked;
  const others = othersPods(kind, snapshot, ask);
  if (others !== undefined) return err(others);
  const decider = DECIDERS[kind] as (asked: EffectiveAsked<AskOf[Kind]>) => Result<Decided<DecisionOf[Kind]>, Refusal>;
  const answer = decider({ ...asked, snapshot: effectiveSnapshot(snapshot, profile) });
  if (!answer.ok) return answer;
  const { reasons, needs } = answer.value;
  const left = explain === "off" ? undefined : podsLeftOut(kind, snapshot);
  const unknown = unknownOverheads(kind, snapshot, ask);
  if (left === undefined && unknown.length === 0) return answer;
  const told = left === undefined ? reasons : [{ at: "snapshot.pods", because: [left] }, ...reasons];
  return ok({ ...answer.value, reasons: told, needs: [...needs, ...unknown] });
}
