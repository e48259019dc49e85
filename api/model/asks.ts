import { decodePodAsk } from "./ask.ts";
import { decodeContainerGcAsk } from "./container-gc.ts";
import type { AskOf, Kind } from "./decision.ts";
import { decodeEvictionAsk, decodeEvictionFacts } from "./eviction.ts";
import type { PodRef } from "./forms.ts";
import { decodeImageGcAsk, decodeImageGcFacts } from "./image-gc.ts";
import type { InputIssue } from "./input-issue.ts";
import { type Pod, podRef } from "./pod.ts";
import { type Assumed, assumedRequests } from "./pod-defaults.ts";
import { decodePreemptionAsk } from "./preemption.ts";
import { decodeProbeGuardAsk } from "./probe-guard.ts";
import { decodeProbesAsk } from "./probes-ask.ts";
import { err, ok, type Result } from "./result.ts";

type Decoded<A> = Result<A, readonly InputIssue[]>;
type Decode<A> = (input: unknown, at: string) => Decoded<A>;

const nothing: Decode<undefined> = (input, at) =>
  input === undefined || input === null
    ? ok(undefined)
    : err([{ path: at, message: "this kind takes no ask; leave it out" }]);

/** How each kind's ask is checked. */
const DECODERS: { readonly [K in Kind]: Decode<AskOf[K]> } = {
  allocatable: nothing,
  cgroups: nothing,
  cpus: decodePodAsk,
  memory: decodePodAsk,
  topology: decodePodAsk,
  devices: decodePodAsk,
  admission: decodePodAsk,
  preemption: decodePreemptionAsk,
  eviction: decodeEvictionAsk,
  "image-gc": decodeImageGcAsk,
  "container-gc": decodeContainerGcAsk,
  probes: decodeProbesAsk,
  "probe-guard": decodeProbeGuardAsk,
};

/** Checks what a caller asks of a kind. Errors: every issue with its path. */
export const decodeAsk = (kind: Kind, input: unknown, at = "ask"): Decoded<AskOf[Kind]> => DECODERS[kind](input, at);

const REMEMBERED: Partial<Record<Kind, Decode<unknown>>> = {
  eviction: decodeEvictionFacts,
  "image-gc": decodeImageGcFacts,
};
/** Kinds whose answer also depends on what is remembered of the node: their `next`, under the kind's name. */
export const REMEMBERING: ReadonlySet<Kind> = new Set(Object.keys(REMEMBERED) as Kind[]);
/** A boot ends what they remember; images lie on the disk, and what is learnt of them goes on. */
export const FORGETS_AT_BOOT: ReadonlySet<Kind> = new Set<Kind>(["eviction"]);
/** Checks what a caller remembers for itself. Errors: every issue with its path. */
export const decodeFacts = (kind: Kind, input: unknown, at: string): Decoded<unknown> =>
  REMEMBERED[kind]?.(input, at) ?? ok(undefined);

/** Whom an ask speaks of; a pod that no API server has seen has no uid. */
export function askedPodRef(ask: AskOf[Kind]): PodRef | null {
  const pod = ask !== undefined && "pod" in ask ? ask.pod : null;
  if (pod === null) return null;
  if (typeof pod !== "string") {
    return podRef(pod);
  }
  const [namespace, name] = pod.split("/") as [string, string];
  return { namespace, name, uid: "" };
}

/** Kinds that count what pods request. */
const COUNTING: ReadonlySet<Kind> = new Set<Kind>([
  "cgroups",
  "cpus",
  "memory",
  "topology",
  "devices",
  "admission",
  "preemption",
  "eviction",
]);
/** The requests that decoding filled in, of the pod that is asked about and of the snapshot's. */
export function assumedIn(kind: Kind, pods: readonly Pod[], ask: AskOf[Kind]): readonly Assumed[] {
  if (!COUNTING.has(kind)) return [];
  const pod = ask !== undefined && "pod" in ask ? ask.pod : null;
  const asked = pod !== null && typeof pod === "object" ? [pod] : [];
  return [...assumedRequests(asked, () => "ask.pod"), ...assumedRequests(pods, (i) => `snapshot.pods[${i}]`)];
}
