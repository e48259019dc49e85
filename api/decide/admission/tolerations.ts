import type { Taint, Toleration } from "../../model/placement.ts";
import { parseWhole } from "../go/strconv.ts";

/** `comparing`: the gate TaintTolerationComparisonOperators is on. kubernetes 1.36: TolerationsTolerateTaint. */
export const tolerates = (tolerations: readonly Toleration[], taint: Taint, comparing: boolean): boolean =>
  tolerations.some((t) => toleratesOne(t, taint, comparing));

/** An empty effect or key is any; an empty operator is Equal. */
function toleratesOne({ key, operator, value, effect }: Toleration, taint: Taint, comparing: boolean): boolean {
  if (isSet(effect) && effect !== taint.effect) return false;
  if (isSet(key) && key !== taint.key) return false;
  switch (operator ?? "") {
    case "":
    case "Equal":
      return (value ?? "") === (taint.value ?? "");
    case "Exists":
      return true;
    case "Lt":
    case "Gt":
      return comparing && compares(operator === "Lt", taint.value ?? "", value ?? "");
    default:
      return false;
  }
}
const isSet = (text: string | undefined): boolean => text !== undefined && text !== "";

const DECIMAL = /^(?:0|-?[1-9]\d*)$/;
function compares(less: boolean, taint: string, toleration: string): boolean {
  const [a, b] = [parseWhole(taint), parseWhole(toleration)];
  if (!DECIMAL.test(taint) || !DECIMAL.test(toleration) || !a.ok || !b.ok) return false;
  return less ? a.value < b.value : a.value > b.value;
}
