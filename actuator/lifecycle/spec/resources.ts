import { compare, isNegative, isWhole, isZero } from "../../../api/model/amount.ts";
import { own } from "../../../api/model/own.ts";
import type { Quantity } from "../../../api/model/quantity.ts";
import type { At } from "./at.ts";
import { quantityAt } from "./quantity.ts";
import { checkFields } from "./rule.ts";
import { RULES } from "./rules.ts";

type Amounts = Readonly<Record<string, Quantity>>;
const SHARED = ["cpu", "memory", "ephemeral-storage"];
const isShared = (name: string): boolean => SHARED.includes(name);
const isGiven = (name: string): boolean => isShared(name) || name.startsWith("hugepages-");
const notGiven = (name: string): string =>
  name.includes("/")
    ? "devices are not given to containers by this daemon, which has no device manager yet: remove it"
    : "must be a standard resource for containers: cpu, memory, ephemeral-storage or hugepages-SIZE";

/**
 * Amounts that can be, and requests within their limits. The decisions read them from the object.
 * kubernetes 1.36: validateResourceRequirements.
 */
export function checkResources(at: At): void {
  if (at.isAbsent || !checkFields(at, RULES.ResourceRequirements)) return;
  const limits = amountsOf(at.field("limits"));
  const requests = amountsOf(at.field("requests"));
  for (const [name, { amount }] of Object.entries(limits))
    if (!isGiven(name) && !isZero(amount)) at.field("limits").field(name).fault(notGiven(name));
  for (const [name, request] of Object.entries(requests)) {
    const limit = own(limits, name);
    const place = at.field("requests");
    const value = JSON.stringify(request.text);
    if (limit === undefined) {
      if (!isShared(name)) at.field("limits").required("Limit must be set for non overcommitable resources");
    } else if (!isShared(name) && compare(request.amount, limit.amount) !== 0) {
      place.fault(`Invalid value: ${value}: must be equal to ${name} limit of ${limit.text}`);
    } else if (compare(request.amount, limit.amount) > 0) {
      place.fault(`Invalid value: ${value}: must be less than or equal to ${name} limit of ${limit.text}`);
    }
  }
}

function amountsOf(list: At): Amounts {
  if (list.isAbsent || !list.isObject()) return {};
  return Object.fromEntries(
    list.keys.flatMap((name) => {
      const at = list.field(name);
      const quantity = quantityAt(at);
      if (quantity === null) return [];
      if (isNegative(quantity.amount)) at.invalid("must be greater than or equal to 0");
      else if (!isShared(name) && !isWhole(quantity.amount)) at.invalid("must be an integer");
      return [[name, quantity] as const];
    }),
  );
}
