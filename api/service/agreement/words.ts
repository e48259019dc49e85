import { value } from "../../model/amount.ts";
import { parseQuantity } from "../../model/quantity.ts";

/** Parses the kubelet's messages, to compare its decision separately from what it measured. */

/** The amounts of a message, `requested: 500, used: 1800`, by the word before each; a repeated word counts once, with its first amount. */
export function amountsIn(message: string): Readonly<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const [, word = "", amount] of message.matchAll(/([A-Za-z]+)\s*[:=]\s*(\d{1,15})(?![\w.])/g)) {
    const name = word.toLowerCase();
    if (!(name in found)) found[name] = Number(amount);
  }
  return found;
}

/** A container, or the whole pod, that used more than it had requested. */
interface Offender {
  readonly name: string;
  readonly usage: string;
  readonly request: string;
}
export interface EvictionWords {
  /** `memory`, `ephemeral-storage`, `inodes` or `pids`. */
  readonly resource: string;
  /** The threshold in whole units; null if the message has none or it is no quantity. */
  readonly threshold: number | null;
  readonly available: number | null;
  readonly offenders: readonly Offender[];
}

const LOW = /^The node was low on resource: (\S+)\. (?:Threshold quantity: (\S+), available: (\S+)\. )?/;
const OFFENDER = /(?:Container|Pod) (\S+) was using (\S+), request is (\S+), has larger consumption of \S+\. /g;

/**
 * The parts of a message about an eviction for a threshold; null if the eviction was for the pod's own limit. kubelet 1.36:
 * evictionMessage.
 */
export function evictionWords(message: string): EvictionWords | null {
  const [, resource, threshold, available] = LOW.exec(message) ?? [];
  if (resource === undefined) return null;
  return {
    resource,
    threshold: unitsOf(threshold),
    available: unitsOf(available),
    offenders: [...message.matchAll(OFFENDER)].map(([, name = "", usage = "", request = ""]) => ({
      name,
      usage,
      request,
    })),
  };
}
/** The whole units of a quantity. */
export function unitsOf(text: string | undefined): number | null {
  const parsed = text === undefined ? undefined : parseQuantity(text);
  return parsed?.ok === true ? value(parsed.value.amount) : null;
}
