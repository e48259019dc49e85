import { amountsOfPods } from "./amount-issues.ts";
import type { AskOf, Kind } from "./decision.ts";
import { issuesOf } from "./decode.ts";
import { type InputIssue, joinPath } from "./input-issue.ts";
import type { PodRef } from "./managers.ts";
import { withoutNulls } from "./nulls.ts";
import { type Pod, podNamespace, pod as podSchema, podUid } from "./pod.ts";
import { withDefaultRequests } from "./pod-defaults.ts";
import { podIssues } from "./pod-issues.ts";
import { err, ok, type Result } from "./result.ts";

/** What a kind that decides about one pod is asked. */
export interface PodAsk {
  /** A pod that asks to come in, `NAMESPACE/NAME` of one of the snapshot, or null: what is there already. */
  readonly pod: Pod | string | null;
}

/** Checks what a caller asks of a kind. Errors: every issue with its path. */
export function decodeAsk(kind: Kind, input: unknown, at = "ask"): Result<AskOf[Kind], readonly InputIssue[]> {
  if (kind !== "allocatable" && kind !== "cgroups") return decodePodAsk(input, at);
  if (input === undefined || input === null) return ok(undefined);
  return fault(at, `kind \`${kind}\` takes no ask; leave it out`);
}

const POD_NAME = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\/[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/;
const fault = (path: string, message: string): Result<never, readonly InputIssue[]> => err([{ path, message }]);

/** Checks a posted ask for a pod and parses it once. Errors: every issue with its path. */
export function decodePodAsk(input: unknown, at: string): Result<PodAsk, readonly InputIssue[]> {
  if (input === undefined || input === null) return ok({ pod: null });
  if (typeof input !== "object" || Array.isArray(input)) return fault(at, 'expected an object such as {"pod": {...}}');
  for (const name in input) if (name !== "pod") return fault(joinPath(at, [name]), "there is no such field, only pod");
  const { pod } = input as { pod?: unknown };
  const here = joinPath(at, ["pod"]);
  if (pod === undefined || pod === null) return ok({ pod: null });
  if (typeof pod === "string") {
    return POD_NAME.test(pod) ? ok({ pod }) : fault(here, "must be a v1.Pod, or NAMESPACE/NAME of one of the snapshot");
  }
  return decodePod(pod, here);
}

function decodePod(input: unknown, at: string): Result<PodAsk, readonly InputIssue[]> {
  const first = podSchema.safeParse(input);
  const parsed = first.success ? first : podSchema.safeParse(withoutNulls(input));
  if (!parsed.success) return err(issuesOf(parsed.error, input, at));
  const pod = withDefaultRequests(parsed.data);
  const issues = [...podIssues([pod], () => at), ...amountsOfPods([pod], at)];
  return issues.length > 0 ? err(issues) : ok({ pod });
}

/** Whom an ask speaks of; a pod that no API server has seen has no uid. */
export function askedPodRef(ask: AskOf[Kind]): PodRef | null {
  const pod = ask?.pod ?? null;
  if (pod === null) return null;
  if (typeof pod !== "string") {
    return { namespace: podNamespace(pod), name: pod.metadata.name, uid: podUid(pod) ?? "" };
  }
  const [namespace, name] = pod.split("/") as [string, string];
  return { namespace, name, uid: "" };
}
