import type { InputIssue } from "../base/input-issue.ts";
import { ok, type Result } from "../base/result.ts";
import type { AskOf, Kind } from "./decision.ts";
import type { PodRef } from "./forms.ts";
import { specOf, traitsOf } from "./kinds.ts";
import { type Pod, podRef } from "./pod.ts";
import { type Assumed, assumedRequests } from "./pod-defaults.ts";

type Decoded<A> = Result<A, readonly InputIssue[]>;

/** Checks what a caller asks of a kind. Errors: every issue with its path. */
export const decodeAsk = (kind: Kind, input: unknown, at = "ask"): Decoded<AskOf[Kind]> =>
  specOf(kind).ask.decode(input, at) as Decoded<AskOf[Kind]>;

/** Checks the facts that a caller remembers and posts. Errors: every issue with its path. */
export const decodeFacts = (kind: Kind, input: unknown, at: string): Decoded<unknown> =>
  specOf(kind).facts?.decode(input, at) ?? ok(undefined);

/** The pod that an ask is about; a pod that no API server has seen has no uid. */
export function askedPodRef(ask: AskOf[Kind]): PodRef | null {
  const pod = ask !== undefined && "pod" in ask ? ask.pod : null;
  if (pod === null) return null;
  if (typeof pod !== "string") {
    return podRef(pod);
  }
  const [namespace, name] = pod.split("/") as [string, string];
  return { namespace, name, uid: "" };
}

/** The requests that decoding filled in, both of the asked pod and of the snapshot's pods. */
export function assumedIn(kind: Kind, pods: readonly Pod[], ask: AskOf[Kind]): readonly Assumed[] {
  const { pods: looksAt } = traitsOf(kind);
  if (looksAt !== "requests" && looksAt !== "overhead") return [];
  const pod = ask !== undefined && "pod" in ask ? ask.pod : null;
  const asked = pod !== null && typeof pod === "object" ? [pod] : [];
  return [...assumedRequests(asked, () => "ask.pod"), ...assumedRequests(pods, (i) => `snapshot.pods[${i}]`)];
}
