import type { Decider, Kind } from "../model/decision.ts";
import { decideAllocatable } from "./allocatable/decide.ts";
import { decideCgroups } from "./cgroups/decide.ts";

/** The one register: a kind that is not here does not exist. */
export const DECIDERS: { readonly [K in Kind]: Decider<K> } = {
  allocatable: decideAllocatable,
  cgroups: decideCgroups,
};
