import type * as z from "zod";
import { milliValue, value } from "./amount.ts";
import type { ResourceList } from "./fields.ts";
import { LIMITS } from "./limits.ts";
import { withoutNulls } from "./nulls.ts";
import { type Pod, podNamespace, podUid, type ResourceRequirements } from "./pod.ts";
import { withDefaultRequests } from "./pod-defaults.ts";
import { err, ok, type Result } from "./result.ts";
import { isPodList, type Snapshot, snapshot as snapshotSchema } from "./snapshot.ts";

/** A fault of the input: where (a JSON path such as `pods[3].spec.containers`) and what. */
export interface InputIssue {
  readonly path: string;
  readonly message: string;
}

/** Checks a posted snapshot and parses it once. Errors: every issue with its path, at most `LIMITS.issues`. */
export function decodeSnapshot(input: unknown, at = ""): Result<Snapshot, readonly InputIssue[]> {
  const parsed = parseLenient(input);
  if (!parsed.success) return err(issuesOf(parsed.error, input, at));
  const pods = parsed.data.pods?.map(withDefaultRequests) ?? null;
  const issues = pods === null ? [] : podIssues(pods, podsPath(input, at));
  if (issues.length > 0) return err(issues);
  return ok(pods === null ? parsed.data : { ...parsed.data, pods });
}

/** Go reads null as absent. Nulls are rare where a decision looks, so they are taken out only when the check stumbles. */
function parseLenient(input: unknown): z.ZodSafeParseResult<Snapshot> {
  const parsed = snapshotSchema.safeParse(input);
  return parsed.success ? parsed : snapshotSchema.safeParse(withoutNulls(input));
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
export function joinPath(at: string, path: readonly PropertyKey[]): string {
  let out = at;
  for (const key of path) {
    if (typeof key === "number") out += `[${key}]`;
    else if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(String(key))) out += out === "" ? String(key) : `.${String(key)}`;
    else out += `[${JSON.stringify(String(key))}]`;
  }
  return out === "" ? "$" : out;
}
const podsPath = (input: unknown, at: string): string =>
  joinPath(at, isPodList((input as { pods?: unknown }).pods) ? ["pods", "items"] : ["pods"]);

/** What only the whole list shows: pods with one uid, containers with one name, sums beyond exact arithmetic. */
function podIssues(pods: readonly Pod[], at: string): InputIssue[] {
  const issues: InputIssue[] = [];
  const seen = new Map<string, number>();
  const total = { units: 0, milliCpu: 0 };
  for (const [i, pod] of pods.entries()) {
    const uid = podUid(pod);
    const first = uid === undefined ? undefined : seen.get(uid);
    if (first !== undefined) {
      issues.push({
        path: `${at}[${i}].metadata.uid`,
        message: `uid \`${uid}\` is also that of ${at}[${first}] (${nameOf(pods[first])})`,
      });
    } else if (uid !== undefined) seen.set(uid, i);
    const twin = repeatedName(pod);
    if (twin !== undefined) issues.push({ path: `${at}[${i}].spec`, message: `two containers are named \`${twin}\`` });
    addPod(total, pod);
    if (issues.length >= LIMITS.issues) break;
  }
  if (total.units > LIMITS.units || total.milliCpu > LIMITS.milliCpu) {
    issues.push({ path: at, message: "the resources of all pods add up to more than exact arithmetic holds" });
  }
  return issues;
}
const nameOf = (p: Pod | undefined): string => (p === undefined ? "" : `${podNamespace(p)}/${p.metadata.name}`);

function repeatedName(pod: Pod): string | undefined {
  const init = pod.spec.initContainers;
  if (pod.spec.containers.length === 1 && (init === undefined || init === null)) return undefined;
  const names = new Set<string>();
  for (const c of [...(init ?? []), ...pod.spec.containers]) {
    if (names.has(c.name)) return c.name;
    names.add(c.name);
  }
  return undefined;
}

type Total = { units: number; milliCpu: number };
function addPod(total: Total, pod: Pod): void {
  for (const c of pod.spec.containers) addRequirements(total, c.resources);
  for (const c of pod.spec.initContainers ?? []) addRequirements(total, c.resources);
  addRequirements(total, pod.spec.resources);
  addList(total, pod.spec.overhead);
}
function addRequirements(total: Total, r: ResourceRequirements | null | undefined): void {
  addList(total, r?.requests);
  addList(total, r?.limits);
}
function addList(total: Total, list: ResourceList | null | undefined): void {
  for (const name in list) {
    const amount = (list[name] as { amount: number | bigint }).amount;
    if (name === "cpu") total.milliCpu += milliValue(amount);
    else total.units += value(amount);
  }
}
