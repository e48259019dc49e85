import type { Asked, AskOf, Decided, Decider, DecisionOf, Kind, Refusal } from "../model/decision.ts";
import type { Result } from "../model/result.ts";
import { decideWithManagers } from "./admission/with-managers.ts";
import { decideAllocatable } from "./allocatable/decide.ts";
import { decideCgroups } from "./cgroups/decide.ts";
import { decideContainerGc } from "./container-gc/decide.ts";
import { decideCpus } from "./cpus/decide.ts";
import { decideDevices } from "./devices/decide.ts";
import { decideEviction } from "./eviction/decide.ts";
import { decideImageGc } from "./image-gc/decide.ts";
import { decideMemory } from "./memory/decide.ts";
import { decidePreemption } from "./preemption/decide.ts";
import { decideProbes } from "./probes/decide.ts";
import { decideProbeGuard } from "./probes/decide-guard.ts";
import { decideTopology } from "./topology/decide.ts";

/** The one register: a kind that is not here does not exist. */
export const DECIDERS: { readonly [K in Kind]: Decider<K> } = {
  allocatable: decideAllocatable,
  cgroups: decideCgroups,
  cpus: decideCpus,
  memory: decideMemory,
  topology: decideTopology,
  devices: decideDevices,
  admission: decideWithManagers,
  preemption: decidePreemption,
  eviction: decideEviction,
  "image-gc": decideImageGc,
  "container-gc": decideContainerGc,
  probes: decideProbes,
  "probe-guard": decideProbeGuard,
};

/** A kind's decision, for a caller that has kind and ask from outside; `ask` is what `decodeAsk` made for this kind. */
export function decideKind(kind: Kind, asked: Asked<AskOf[Kind]>): Result<Decided<DecisionOf[Kind]>, Refusal> {
  const decider = DECIDERS[kind] as (asked: Asked<AskOf[Kind]>) => Result<Decided<DecisionOf[Kind]>, Refusal>;
  return decider(asked);
}
