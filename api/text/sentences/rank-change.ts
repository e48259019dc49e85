import type { Counterfactual, Ranking, StarvedResource } from "../../model/eviction.ts";
import type { PodRef } from "../../model/managers.ts";
import { exactAmountText } from "../amount-text.ts";
import { ordinal } from "./words.ts";

/** Of each pod and each value the change after which another one goes first, else the smallest there is. */
export function rankChangeSentences({ counterfactuals, resource }: Ranking): readonly string[] {
  const groups = Map.groupBy(counterfactuals, ({ pod, change }) => `${pod.uid} ${change}`);
  return [...groups.values()].map((group) => {
    const saving = group.find(({ pod, victim }) => victim !== null && victim.uid !== pod.uid);
    return sentence(saving ?? (group[0] as Counterfactual), resource);
  });
}

function sentence({ pod, change, from, to, place, victim }: Counterfactual, resource: StarvedResource): string {
  const isOther = victim !== null && victim.uid !== pod.uid;
  const then = victim === null ? "nobody" : isOther ? nameOf(victim) : "still the same pod";
  const amount = (units: number): string => exactAmountText(resource, units);
  const how = {
    request: `with a request of ${amount(to)} for ${resource}`,
    usage: `if it took up ${amount(to)} instead of ${amount(from)}`,
    priority: `with a priority of ${to}`,
  }[change];
  return `${how}, ${nameOf(pod)} would rank ${ordinal(place)}: ${then} would go first`;
}
const nameOf = ({ namespace, name }: PodRef): string => `${namespace}/${name}`;
