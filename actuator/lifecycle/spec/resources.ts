import { compare, isNegative, isWhole, isZero } from "../../../api/model/amount.ts";
import { own } from "../../../api/model/own.ts";
import type { Quantity } from "../../../api/model/quantity.ts";
import { isExtendedResource } from "../../../api/model/resource-name.ts";
import type { At } from "./at.ts";
import { quantityAt } from "./quantity.ts";
import { isHugePages, isOfKubernetes, mayOvercommit, type NameCheck, ofContainers, ofPods } from "./resource-names.ts";
import { checkFields } from "./rule.ts";
import { RULES } from "./rules.ts";

type Amounts = Readonly<Record<string, Quantity>>;

/** Of a container; devices of plugins among them. */
export const checkResources = (at: At): void => check(at, ofContainers);
/** Of a whole pod, which has no devices. kubernetes 1.36: validatePodResources. */
export const checkPodResources = (at: At): void => check(at, ofPods);

/**
 * Names and amounts that can be, and requests that fit their limits: of devices they are whole and equal. The decisions read
 * them from the object. kubernetes 1.36: validateResourceRequirements, ValidateResourceQuantityValue.
 */
function check(at: At, names: NameCheck): void {
  if (at.isAbsent || !checkFields(at, RULES.ResourceRequirements)) return;
  const limits = amountsOf(at.field("limits"), names);
  const requests = amountsOf(at.field("requests"), names);
  for (const [name, request] of Object.entries(requests)) {
    const limit = own(limits, name);
    const place = at.field("requests");
    const value = JSON.stringify(request.text);
    if (limit === undefined) {
      if (!mayOvercommit(name)) at.field("limits").required("Limit must be set for non overcommitable resources");
    } else if (!mayOvercommit(name) && compare(request.amount, limit.amount) !== 0) {
      place.fault(`Invalid value: ${value}: must be equal to ${name} limit of ${limit.text}`);
    } else if (compare(request.amount, limit.amount) > 0) {
      place.fault(`Invalid value: ${value}: must be less than or equal to ${name} limit of ${limit.text}`);
    }
  }
}

function amountsOf(list: At, names: NameCheck): Amounts {
  if (list.isAbsent || !list.isObject()) return {};
  return Object.fromEntries(
    list.keys.flatMap((name) => {
      const at = list.field(name);
      const wrong = names(name);
      for (const fault of wrong) at.fault(fault);
      const quantity = quantityAt(at);
      if (quantity === null) return [];
      if (isNegative(quantity.amount)) at.invalid("must be greater than or equal to 0");
      const isCounted = isHugePages(name) || isExtendedResource(name);
      if (isCounted && !isWhole(quantity.amount)) at.invalid("must be an integer");
      // a kubelet takes the name, and no node has any of it
      if (wrong.length === 0 && isOfKubernetes(name) && !isZero(quantity.amount)) at.fault(NOBODYS);
      return [[name, quantity] as const];
    }),
  );
}
const NOBODYS = "no device plugin may have a name of kubernetes.io, and nothing else gives it to containers: remove it";
