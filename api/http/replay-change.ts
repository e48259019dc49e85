import { decodeSnapshot } from "../model/decode.ts";
import { configurationPath } from "../model/kubelet-configuration.ts";
import { err, ok, type Result } from "../model/result.ts";
import { inputProblem, invalid, type Problem } from "../service/problem.ts";
import { type Change, changed, isObject } from "../service/replay/parsed.ts";

export type Members = Readonly<Record<string, unknown>>;

/** Null is absent, as in Go. */
export const isGiven = (value: unknown): boolean => value !== undefined && value !== null;

/** The change that a request's body asks about. Errors: two of them, a patch that is none. */
export function changeIn(body: Members): Result<Change, Problem> {
  const { kubeletConfiguration, kubeletConfigurationPatch } = body;
  if (isGiven(kubeletConfiguration) && isGiven(kubeletConfigurationPatch)) {
    return invalid("kubeletConfigurationPatch", "it is one or the other: kubeletConfiguration was given as well");
  }
  if (isGiven(kubeletConfigurationPatch) && !isObject(kubeletConfigurationPatch)) {
    return invalid("kubeletConfigurationPatch", 'expected an object such as {"kubeReserved": {"cpu": "500m"}}');
  }
  return ok({
    kubeletConfiguration: kubeletConfiguration ?? undefined,
    kubeletConfigurationPatch: kubeletConfigurationPatch ?? undefined,
  });
}

const FIELD = "kubeletConfiguration";

/** Looks at a change by itself, before it is tried on thousands of decisions. Errors: every fault with its place in the body. */
export function checkedChange(change: Change): Result<Change, Problem> {
  const snapshot = decodeSnapshot(changed({}, change));
  if (snapshot.ok) return ok(change);
  const { kubeletConfigurationPatch: patch } = change;
  const field = isObject(patch) ? ["kubeletConfigurationPatch", ...configurationPath(patch)].join(".") : FIELD;
  const issues = snapshot.error.map(({ path, message }) => ({ path: field + path.slice(FIELD.length), message }));
  return err(inputProblem(issues));
}
