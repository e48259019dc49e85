import type { Counterfactual, Ranking, StarvedResource } from "../../model/eviction.ts";
import type { PodRef } from "../../model/managers.ts";
import { humanBytes } from "../size.ts";
import { ordinal } from "./words.ts";

/** A usage or a request of what is starved, for the eye. */
export const starvedText = (resource: StarvedResource, units: number): string =>
  resource === "memory" || resource === "ephemeral-storage" ? humanBytes(units) : `${units}`;

/** Of each pod and each value the change after which another one goes first, else the smallest there is. */
export function rankChangeSentences({ counterfactuals, resource }: Ranking): readonly string[] {
  const groups = Map.groupBy(counterfactuals, ({ pod, change }) => `${pod.uid} ${change}`);
  return [...groups.values()].map((group) => {
    const saving = group.find(({ pod, victim }) => victim !== null && victim.uid !== pod.uid);
    return sentence(saving ?? (group[0] as Counterfactual), resource);
  });
}

function sentence({ pod, change, from, to, quantity, place, victim }: Counterfactual, resource: StarvedResource): string {
  const isOther = victim !== null && victim.uid !== pod.uid;
  const then = victim === null ? "nobody" : isOther ? nameOf(victim) : "still the same pod";
  const amount = (units: number): string => starvedText(resource, units);
  const how = {
    request: `with a ${resource} request of ${quantity ?? amount(to)}`,
    usage: `if it took up ${amount(to)} instead of ${amount(from)}`,
    priority: `with a priority of ${to}`,
  }[change];
  return `${how} ${nameOf(pod)} would rank ${ordinal(place)}: ${then} would go first`;
}
const nameOf = ({ namespace, name }: PodRef): string => `${namespace}/${name}`;
