import type { ReasonCode } from "../../model/decision.ts";
import type { Numbers } from "../../model/forms.ts";
import { amountText, distanceText } from "../size.ts";

/** Writes the sentence for one reason code, with the numbers that it was given. */
export type Words = (n: Numbers) => string;
/** Code -> its sentence. */
export type Sentences = Readonly<Record<ReasonCode, Words>>;

/** `1 pod`, `3 pods`. */
export const many = (count: unknown, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

/** `a`, `a and b`, `a, b and c`. */
export const listed = (items: readonly string[]): string =>
  items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;

/** `n1, n2, n3 and 7 more`. */
export const namesText = (all: readonly string[]): string =>
  all.length > FEW + 1 ? `${all.slice(0, FEW).join(", ")} and ${all.length - FEW} more` : listed(all);
const FEW = 3;

const ORDINALS = new Intl.PluralRules("en", { type: "ordinal" });
const SUFFIX: Readonly<Record<string, string>> = { one: "st", two: "nd", few: "rd" };
/** `1st`, `12th`. */
export const ordinal = (n: number): string => `${n}${SUFFIX[ORDINALS.select(n)] ?? "th"}`;

const names = (text: unknown): string => listed(String(text).split(" "));
/** `cpu 100, memory 1024`, in units, for the eye. */
const amounts = (text: unknown): string =>
  String(text)
    .split(", ")
    .map((part) => {
      const [resource = "", quantity] = part.split(" ");
      return `${resource} ${amountText(resource, Number(quantity))}`;
    })
    .join(", ");

/** The sentences for the reasons of `admission` and `preemption`. */
export const ADMISSION_SENTENCES = {
  asked_again: () =>
    "it is on the node already: checked as at a kubelet's restart, with what is allocated to it, and not counted twice",
  candidates: (n) => `${many(n["candidates"], "pod")} may be preempted for it`,
  ended_pods: (n) => `${many(n["ended"], "ended pod")} of the list no longer ${n["ended"] === 1 ? "counts" : "count"}`,
  extended_resource_not_counted: () =>
    "the node does not list this resource, or a claim gives it: the kubelet does not check it",
  host_port_taken: (n) => `${n["by"]} has ${n["protocol"]} port ${n["port"]} of ${n["ip"]}`,
  kubelet_does_not_start: (n) => `no pod is admitted, since the kubelet does not start: ${n["message"]}`,
  nearest: (n) =>
    `the nearest of ${many(n["among"], `${n["qos"]} pod`)} to what is still to be freed (${amounts(n["open"])}): distance ${distanceText(Number(n["distance"]))}`,
  node_under_pressure: (n) =>
    `the node has ${names(n["conditions"])}; the pod is ${n["qosClass"]}${n["critical"] === true ? " and critical" : ""}`,
  not_allocated: (n) =>
    `${many(n["pods"], "pod")} of the list ${n["pods"] === 1 ? "does" : "do"} not count: nothing is allocated to ${n["pods"] === 1 ? "it" : "them"} yet`,
  not_critical: () => "the kubelet preempts pods only for a critical pod",
  pod_has_ended: (n) => `its phase is ${n["phase"]}: it does not count, and is checked like a new pod`,
  preempted_in_vain: (n) => `${many(n["pods"], "pod")} preempted in vain: ${n["handler"]} refuses it after that`,
  priority_of_class: (n) =>
    `the API server gives priorityClassName ${n["priorityClassName"]} priority ${n["priority"]}`,
  resource_fits: (n) => `${n["requested"]} fits beside ${n["used"]} used of ${n["capacity"]}`,
  resource_short: (n) => `${n["requested"]} does not fit beside ${n["used"]} used of ${n["capacity"]}`,
  safe_since_kernel: (n) => `counts as safe since kernel ${n["since"]}; this one is ${n["kernel"]}`,
  search_cut_short: (n) => `the search for better sets ended after ${n["bound"]} steps: there may be better ones`,
  taint_not_tolerated: (n) => {
    const value = n["value"] === undefined || n["value"] === "" ? "" : `=${n["value"]}`;
    return `the node has the taint ${n["key"]}${value}:${n["effect"]}, which the pod does not tolerate`;
  },
  tied: (n) =>
    `equally near and equally large: ${names(n["tied"])}; a kubelet may preempt any of them, this answer names the last one listed`,
} satisfies Partial<Sentences>;
