import * as z from "zod";
import { amountIssues } from "./amount-issues.ts";
import { deviceIssues } from "./devices.ts";
import { type InputIssue, joinPath } from "./input-issue.ts";
import { LIMITS } from "./limits.ts";
import { machineIssues } from "./machine-issues.ts";
import { withoutNulls } from "./nulls.ts";
import { withDefaultRequests } from "./pod-defaults.ts";
import { podIssues } from "./pod-issues.ts";
import { err, ok, type Result } from "./result.ts";
import { isPodList, type Snapshot, snapshot as snapshotSchema } from "./snapshot.ts";

export type { InputIssue } from "./input-issue.ts";

/** Checks a posted snapshot and parses it once. Errors: every issue with its path, at most `LIMITS.issues`. */
export function decodeSnapshot(input: unknown, at = ""): Result<Snapshot, readonly InputIssue[]> {
  const parsed = parseLenient(input);
  if (!parsed.success) return err(issuesOf(parsed.error, input, at));
  const pods = parsed.data.pods?.map(withDefaultRequests);
  const snapshot: Snapshot = pods === undefined ? parsed.data : { ...parsed.data, pods };
  const podsAt = podsPath(input, at);
  const machineAt = joinPath(at, ["machine"]);
  const issues = [
    ...podIssues(pods ?? [], (i) => `${podsAt}[${i}]`),
    ...(snapshot.machine === undefined ? [] : machineIssues(snapshot.machine, machineAt)),
    ...deviceIssues(snapshot.devices ?? [], joinPath(at, ["devices"])),
    ...amountIssues(snapshot, at, podsAt),
  ];
  return issues.length > 0 ? err(issues.slice(0, LIMITS.issues)) : ok(snapshot);
}

/** Go reads null as absent. Nulls are rare where a decision looks, so they are taken out only when the check stumbles. */
function parseLenient(input: unknown): z.ZodSafeParseResult<Snapshot> {
  const schema = quickest();
  const parsed = schema.safeParse(input);
  return parsed.success ? parsed : schema.safeParse(withoutNulls(input));
}

let compiled: typeof snapshotSchema | undefined;
let isFirst = true;
/** Zod compiles the schema where code may be made at run time; one snapshot alone would not pay for it. */
function quickest(): typeof snapshotSchema {
  if (isFirst) {
    isFirst = false;
    return snapshotSchema;
  }
  compiled ??= z.compile(snapshotSchema);
  return compiled;
}

export function issuesOf(error: z.ZodError, input: unknown, at: string): readonly InputIssue[] {
  return error.issues.slice(0, LIMITS.issues).map((issue) => ({
    path: pathText(issue.path, input, at),
    message: lowerFirst(issue.message),
  }));
}
const lowerFirst = (s: string): string => s.charAt(0).toLowerCase() + s.slice(1);

/** The path as the caller posted it: a PodList keeps its `items`. */
function pathText(path: readonly PropertyKey[], input: unknown, at: string): string {
  const pods = (input as { pods?: unknown } | null)?.pods;
  const posted = path[0] === "pods" && path.length > 1 && isPodList(pods) ? ["pods", "items", ...path.slice(1)] : path;
  return joinPath(at, posted);
}
const podsPath = (input: unknown, at: string): string =>
  joinPath(at, isPodList((input as { pods?: unknown }).pods) ? ["pods", "items"] : ["pods"]);
