import * as z from "zod";
import { type InputIssue, joinPath } from "../base/input-issue.ts";
import { ref } from "../base/json-schema.ts";
import { err, ok, type Result } from "../base/result.ts";
import { amountsOfPods, decodeForm, podIssues } from "./decode.ts";
import { optional } from "./fields.ts";
import type { AskSpec } from "./kind-spec.ts";
import { type Pod, pod as podSchema } from "./pod.ts";
import { withDefaultRequests } from "./pod-defaults.ts";

/** The ask of a kind that decides about one pod. */
export interface PodAsk {
  /**
   * The pod to admit: an object, `NAMESPACE/NAME` of a pod in the snapshot, or null for the snapshot's pods as they
   * are.
   */
  readonly pod: Pod | string | null;
}

/** NAMESPACE/NAME. */
export const podName = z
  .string()
  .regex(
    /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\/[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/,
    "must be NAMESPACE/NAME of a pod of the snapshot",
  );
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
    return podName.safeParse(pod).success
      ? ok({ pod })
      : fault(here, "must be a v1.Pod, or NAMESPACE/NAME of one of the snapshot");
  }
  return decodePod(pod, here);
}

function decodePod(input: unknown, at: string): Result<PodAsk, readonly InputIssue[]> {
  const parsed = decodeForm(podSchema, input, at);
  if (!parsed.ok) return parsed;
  const pod = withDefaultRequests(parsed.value);
  const issues = [...podIssues([pod], () => at), ...amountsOfPods([pod], at)];
  return issues.length > 0 ? err(issues) : ok({ pod });
}

/** The form of an ask for a pod. `schema`: the name of the pod's schema in the OpenAPI document. */
export const podAskForm = (schema: "Pod" | "ProbedPod") =>
  z.strictObject({
    pod: optional(z.union([z.unknown().meta(ref(schema)), podName])).describe(
      "the pod to be admitted, or NAMESPACE/NAME of a pod in the snapshot; absent: the decision is about the pods in the snapshot as they are",
    ),
  });
/** The ask of a kind whose only question is a pod. */
export const podAsk = {
  decode: decodePodAsk,
  schema: { name: "PodAsk", form: podAskForm("Pod") },
  pod: "object",
} as const satisfies AskSpec;
