import type { Counterfactual } from "../../model/preemption.ts";
import { amountText, boundText } from "../size.ts";
import { listed, many } from "./words.ts";

/** The smallest changes that turn an admission or a preemption, a sentence each; those that only help together are one. */
export function counterfactualSentences(all: readonly Counterfactual[], isExact = false): readonly string[] {
  const better = all.filter(({ code }) => code === "fewer_pods_would_do" || code === "smaller_pods_would_do");
  const hopeless = all.filter(({ code }) => code === "no_request_helps");
  const lower = all.filter(({ code }) => code === "lower_request_admits" || code === "lower_request_spares_all");
  if (hopeless.length > 0) return [...better.map(betterSet), ...hopeless.map(noRequestHelps)];
  return [...better.map(betterSet), ...(lower.length === 0 ? [] : [lowerRequests(lower, isExact)])];
}

const MAX_NAMES = 6;
function podNames(text: unknown): string {
  const all = String(text).split(" ");
  const rest = all.length - MAX_NAMES;
  return listed(rest > 0 ? [...all.slice(0, MAX_NAMES), `${rest} more`] : all);
}

function betterSet({ code, numbers: n }: Counterfactual): string {
  const resources = Object.keys(n).flatMap((key) => (key.endsWith(NEEDED) ? [key.slice(0, -NEEDED.length)] : []));
  const amount = (resource: string, what: string): string => amountText(resource, Number(n[`${resource}${what}`]));
  const freed = resources.map((r) => `${amount(r, " freed")} ${r} for the ${amount(r, NEEDED)} needed`);
  const freedNow = resources.map((r) => `${amount(r, " freed by the kubelet")} ${r}`);
  const others = `${many(n["count"], "pod")} would be enough: ${podNames(n["pods"])} (${freed.join(", ")})`;
  const kubelets = `the kubelet preempts ${n["kubeletCount"]}: ${podNames(n["kubelet"])} (${freedNow.join(", ")})`;
  const better = code === "fewer_pods_would_do" ? "fewer" : "smaller ones";
  return `${others}; ${kubelets}${n["exact"] === false ? `; perhaps even ${better} would be enough` : ""}`;
}
const NEEDED = " needed";

function noRequestHelps({ numbers: { resource, overhead, atMost } }: Counterfactual): string {
  if (resource === "pods") return "no lower request helps: every pod counts as one of the node's pods";
  const name = String(resource);
  const [own, left] = [overhead, atMost].map((n) => amountText(name, Number(n)));
  return `no lower request for ${name} helps: the pod's overhead alone is ${own}, and ${left} would have to be enough`;
}

function lowerRequests(all: readonly Counterfactual[], isExact: boolean): string {
  const parts = all.map(({ numbers: { resource, atMost, less } }) => {
    const name = String(resource);
    const change = `${amountText(name, Number(less), isExact)} less`;
    return Number(atMost) === 0
      ? `no ${name} (${change})`
      : `at most ${boundText(name, "most", Number(atMost), isExact)} ${name} (${change})`;
  });
  const [first] = all as readonly [Counterfactual];
  const others = Number(first.numbers["otherReasons"]);
  const end = first.code === "lower_request_admits" ? "it would be admitted" : "no pod would have to be preempted";
  // what the resource managers refuse may depend on the same request
  const then =
    others === 0
      ? end
      : `it would fit; ${many(others, "other reason")} would be checked again: ask again with that request`;
  const overhead = all.some(({ numbers }) => Number(numbers["overhead"]) > 0) ? ", its overhead included," : "";
  return `with ${listed(parts)} requested${overhead} ${then}`;
}
