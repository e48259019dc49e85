import { type Amount, milliValue, value } from "../../model/amount.ts";

/** An amount as admission and preemption count it: thousandths of a CPU, else whole units; each rounded up. */
export const unitsOf = (resource: string, amount: Amount): number =>
  resource === "cpu" ? milliValue(amount) : value(amount);
