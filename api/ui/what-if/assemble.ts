import { issueText, type Origin, type Path } from "../../documents/inputs/origin.ts";
import { PARTS } from "../../documents/inputs/parts.ts";
import { decodeSnapshot } from "../../model/decode.ts";
import type { InputIssue } from "../../model/input-issue.ts";
import { LIMITS } from "../../model/limits.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { NO_POD, type Part, type PartName } from "./recognise.ts";

export type Fields = Readonly<Record<string, unknown>>;
export const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};

/** A snapshot as it would be posted, put together of parts, and where each part came from. */
export interface Assembled {
  readonly input: Fields;
  readonly origins: readonly Origin[];
  readonly faults: readonly string[];
  /** The parts that were given, and what gave them: `pods` from `pods.json`. */
  readonly given: readonly { readonly part: PartName; readonly name: string }[];
}

/** `base` with each part in its place; a whole snapshot takes the place of all of it. Two of one part are a fault. */
export function assemble(base: Fields, parts: readonly Part[]): Assembled {
  const whole = parts.filter(({ part }) => part === "snapshot");
  const pods = parts.filter(({ part }) => part === "pods");
  const origins: Origin[] = whole.slice(0, 1).map(({ source }) => ({ at: [], source, base: [] }));
  const input: Record<string, unknown> = { ...(whole[0] === undefined ? base : fieldsOf(whole[0].posted)) };
  const faults = twins("a NodeSnapshot", whole);
  for (const { option, path, what } of PARTS) {
    const given = parts.filter(({ part }) => part === option);
    const [first] = given;
    if (first === undefined || option === "pods") continue;
    faults.push(...twins(what, given));
    const [field, inner] = path;
    input[field] = inner === undefined ? first.posted : { ...fieldsOf(input[field]), [inner]: first.posted };
    origins.push({ at: path, source: first.source, base: first.base });
  }
  if (pods.length > LIMITS.pods)
    faults.push(
      `${pods[0]?.source.file}: there are ${pods.length} pods, more than a node's ${LIMITS.pods}: give those of one node`,
    );
  else if (pods.length > 0) {
    const some = pods.filter(({ posted }) => posted !== NO_POD);
    input["pods"] = some.map(({ posted }, i) => withUid(posted, i));
    origins.push(...some.map(({ source, base: at }, i) => ({ at: ["pods", i] as Path, source, base: at })));
  }
  return { input, origins, faults, given: namesOf(parts) };
}

function twins(what: string, [first, second]: readonly Part[]): string[] {
  if (first === undefined || second === undefined) return [];
  return [`${second.source.file}: is ${article(what)}, and so is ${first.source.file}: leave one out`];
}
const article = (what: string): string => (/^(?:a|the) /.test(what) ? what : `the ${what}`);

function namesOf(parts: readonly Part[]): Assembled["given"] {
  const seen = new Map(parts.map(({ part, source }) => [`${part} ${source.file}`, { part, name: source.file }]));
  return [...seen.values()];
}

/** A manifest has no uid, and the cgroup of its pod is named by one. */
function withUid(pod: unknown, i: number): unknown {
  const { metadata } = fieldsOf(pod);
  const { uid } = fieldsOf(metadata);
  if (typeof metadata !== "object" || metadata === null || (typeof uid === "string" && uid !== "")) return pod;
  return { ...fieldsOf(pod), metadata: { ...metadata, uid: `what-if-${i + 1}` } };
}

export interface Checked {
  readonly snapshot: Snapshot | null;
  readonly faults: readonly string[];
  /** The parts that are as they should be, in the form in which a snapshot is stored. */
  readonly kept: Snapshot | null;
}

/** Checks what was put together. What is wrong is told with its place, and the rest is kept. */
export function checked({ input, origins }: Pick<Assembled, "input" | "origins">): Checked {
  const decoded = decodeSnapshot(input);
  if (decoded.ok) return { snapshot: decoded.value, faults: [], kept: decoded.value };
  const faults = decoded.error.map((issue) => issueText(issue, origins));
  return { snapshot: null, faults: [...new Set(faults)], kept: keptOf(input, decoded.error) };
}

function keptOf(input: Fields, issues: readonly InputIssue[]): Snapshot | null {
  const wrong = new Set(issues.map(({ path }) => /^[A-Za-z]+/.exec(path)?.[0]));
  const rest = decodeSnapshot(Object.fromEntries(Object.entries(input).filter(([name]) => !wrong.has(name))));
  return rest.ok ? rest.value : null;
}
