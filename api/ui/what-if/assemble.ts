import type { SnapshotRow } from "../../../db/rows.ts";
import type { InputIssue } from "../../base/input-issue.ts";
import { LIMITS } from "../../base/limits.ts";
import { type Fields, fieldsOf } from "../../base/own.ts";
import { ok, type Result } from "../../base/result.ts";
import { decideKind } from "../../decide/kinds/index.ts";
import { assumedTime, issueText, type Origin, originOf, type Path } from "../../documents/inputs/origin.ts";
import { PARTS } from "../../documents/inputs/parts.ts";
import type { SourceDocument } from "../../documents/problem.ts";
import { nodeNamed } from "../../http/nodes.ts";
import { type Exchange, snapshotSeen } from "../../http/route.ts";
import type { AskOf, Decided, DecisionOf, Facts, Kind, Refusal } from "../../model/decision.ts";
import { decodeSnapshot } from "../../model/decode.ts";
import { askedPodRef, decodeAsk } from "../../model/decode-ask.ts";
import { kindsWith, REMEMBERING, specOf, traitsOf } from "../../model/kinds.ts";
import { passTimeOf } from "../../model/pass-time.ts";
import type { Pod } from "../../model/pod.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import type { EffectiveSnapshot } from "../../profiles/effective.ts";
import { isId } from "../../service/body-form.ts";
import { readAsk } from "../../service/decision-request.ts";
import { type Difference, decisionDifferences, MAX_DIFFERENCES } from "../../service/difference.ts";
import { passOf, readFactsBefore, requestWithFacts } from "../../service/node-facts.ts";
import { historyProblem, type Problem, problem } from "../../service/problem.ts";
import { postedSnapshot } from "../../service/replay/parsed.ts";
import { yieldToEventLoop } from "../../service/task-queue.ts";
import { plainPaint } from "../../text/style.ts";
import { drawnAlike } from "../../text/table.ts";
import { decidedText } from "../../text/tables/index.ts";
import { NARROW_COLUMNS, WIDE_COLUMNS } from "../record-part.ts";
import { NOTHING, type Part, type PartName } from "./posted-documents.ts";

/** Kinds that decide whether the added pod is admitted. */
const ADMISSION = kindsWith("whatIf", "admission");
/** Kinds of the placement decide for that pod if there is one, otherwise for the existing pods. */
const OTHERS = [
  ...kindsWith("whatIf", "placement"),
  ...kindsWith("whatIf", "resize"),
  ...kindsWith("whatIf", "node", "node-with-pod"),
];
export type PodAsk = AskOf["admission"];

/** A kind's answer on one side. */
export interface Side {
  readonly decided: Decided<DecisionOf[Kind]> | null;
  readonly refusal: Refusal | null;
  /** The text as in a terminal; for a refusal, its message. */
  readonly text: string;
  /** The same text for a terminal as narrow as a phone. */
  readonly narrowText: string;
}
export interface Plan {
  readonly kind: Kind;
  readonly before: Side;
  readonly after: Side;
  /** `undecided`: refused on both sides for the same reason. */
  readonly state: "differs" | "same" | "undecided";
  readonly differences: readonly Difference[];
  /** True: there are more differences than those listed. */
  readonly truncated: boolean;
}
/** The further input of a kind: what its node's history remembers. */
interface KindInput {
  readonly ask: AskOf[Kind];
  readonly facts: Facts;
}
interface Question {
  readonly before: EffectiveSnapshot;
  readonly after: EffectiveSnapshot;
  readonly pod: PodAsk["pod"];
  /** The pod's resources after the change; null: the resizes that wait count on both sides. */
  readonly resize: AskOf["resize"] | null;
  readonly remembered: ReadonlyMap<Kind, KindInput>;
}

/** Every kind on both sides, that of a pod first. */
export async function plansOf({ pod, resize, remembered, before, after }: Question): Promise<readonly Plan[]> {
  const plans: Plan[] = [];
  let grown = after;
  for (const kind of pod === null ? OTHERS : [...ADMISSION, ...OTHERS]) {
    const { whatIf } = traitsOf(kind);
    const asked = remembered.get(kind) ?? { ask: askOf(kind, pod), facts: {} };
    const first = answeredBy(kind, before, asked);
    await yieldToEventLoop();
    const then = whatIf === "resize" && resize !== null ? { ask: resize, facts: {} } : asked;
    const second = answeredBy(kind, whatIf === "node-with-pod" ? grown : after, then);
    await yieldToEventLoop();
    if (isAdmitted(second) && typeof pod === "object" && pod !== null) grown = withPod(after, pod);
    plans.push(planOf(kind, ...sidesOf([first, second])));
    await yieldToEventLoop();
  }
  return plans;
}

function askOf(kind: Kind, pod: PodAsk["pod"]): AskOf[Kind] {
  if (specOf(kind).ask.pod === "object") return { pod };
  const ask = decodeAsk(kind, null);
  if (!ask.ok) throw new Error(`${kind} needs an ask`);
  return ask.value;
}

const isAdmitted = ({ decided }: DrawableAnswer): boolean =>
  decided !== null && "admit" in decided.decision && decided.decision.admit;

/** The snapshot with the pod, which gets a uid, since its cgroup is named after it. */
const withPod = (snapshot: EffectiveSnapshot, pod: Pod): EffectiveSnapshot => ({
  ...snapshot,
  pods: [...(snapshot.pods ?? []), { ...pod, metadata: { ...pod.metadata, uid: pod.metadata.uid ?? "what-if" } }],
});

/** An answer that is not drawn yet. */
interface DrawableAnswer extends Pick<Side, "decided" | "refusal"> {
  readonly textAt: (columns: number) => string;
}
function answeredBy(kind: Kind, snapshot: Snapshot, { ask, facts }: KindInput): DrawableAnswer {
  const answer = decideKind(kind, { snapshot, facts, ask, explain: "off" });
  if (!answer.ok) return { decided: null, refusal: answer.error, textAt: () => answer.error.message };
  const asked = askedPodRef(ask);
  const shown = {
    kind,
    node: snapshot.node?.metadata.name ?? "",
    decided: answer.value as never,
    explain: "off" as const,
    rankings: "all" as const,
    machine: snapshot.machine,
    ...(asked === null ? {} : { asked }),
    observedAtMs: passTimeOf(snapshot)?.atMs,
  };
  const textAt = (columns: number): string => decidedText(shown, { paint: plainPaint, columns });
  return { decided: answer.value, refusal: null, textAt };
}

/** Both answers, drawn so that only real differences look different. */
function sidesOf(
  answers: readonly [before: DrawableAnswer, after: DrawableAnswer],
): readonly [before: Side, after: Side] {
  const at = (columns: number): readonly string[] =>
    drawnAlike(
      answers.map(
        ({ textAt }) =>
          () =>
            textAt(columns),
      ),
    );
  const [wide, narrow] = [at(WIDE_COLUMNS), at(NARROW_COLUMNS)];
  const side = (i: 0 | 1): Side => {
    const { decided, refusal } = answers[i];
    return { decided, refusal, text: wide[i] ?? "", narrowText: narrow[i] ?? "" };
  };
  return [side(0), side(1)];
}

function planOf(kind: Kind, before: Side, after: Side): Plan {
  const plan = { kind, before, after };
  if (before.refusal !== null && after.refusal !== null) {
    const isSame = before.refusal.code === after.refusal.code && before.text === after.text;
    return { ...plan, state: isSame ? "undecided" : "differs", differences: [], truncated: false };
  }
  if (before.decided === null || after.decided === null)
    return { ...plan, state: "differs", differences: [], truncated: false };
  const found = decisionDifferences(before.decided, after.decided);
  return {
    ...plan,
    state: found.length === 0 ? "same" : "differs",
    differences: found.slice(0, MAX_DIFFERENCES),
    truncated: found.length > MAX_DIFFERENCES,
  };
}

/** A snapshot in the posted form, assembled from parts, with the source of each part. */
export interface Assembled {
  readonly input: Fields;
  readonly origins: readonly Origin[];
  readonly faults: readonly string[];
  /** The given parts and their sources: `pods` from `pods.json`. */
  readonly given: readonly { readonly part: PartName; readonly name: string }[];
}

/** `base` with the parts replaced; a whole snapshot replaces everything. Two of one part are a fault. */
export function assemble(base: Fields, parts: readonly Part[]): Assembled {
  const whole = parts.filter(({ part }) => part === "snapshot");
  const pods = parts.filter(({ part }) => part === "pods");
  const origins: Origin[] = whole.slice(0, 1).map(({ source }) => ({ at: [], source, base: [] }));
  const input: Record<string, unknown> = { ...(whole[0] === undefined ? base : fieldsOf(whole[0].posted)) };
  const faults = duplicates("a NodeSnapshot", whole);
  for (const { option, path, what } of PARTS) {
    const given = parts.filter(({ part }) => part === option);
    const [first] = given;
    if (first === undefined || option === "pods") continue;
    faults.push(...duplicates(what, given));
    const [field, inner] = path;
    input[field] = inner === undefined ? first.posted : { ...fieldsOf(input[field]), [inner]: first.posted };
    origins.push({ at: path, source: first.source, base: first.base });
  }
  if (pods.length > LIMITS.pods)
    faults.push(
      `${pods[0]?.source.file}: there are ${pods.length} pods, more than a node's ${LIMITS.pods}: give those of one node`,
    );
  else if (pods.length > 0) {
    const some = pods.filter(({ posted }) => typeof posted !== "symbol");
    input["pods"] = some.map(({ posted }, i) => withUid(posted, i));
    origins.push(...some.map(({ source, base: at }, i) => ({ at: ["pods", i] as Path, source, base: at })));
  }
  return { input, origins, faults, given: namesOf(parts) };
}

/** The parts that count, and the empty lists to report whose kind is unknown. */
interface ResolvedParts {
  readonly parts: readonly Part[];
  readonly warnings: readonly { readonly source: Part["source"]; readonly text: string }[];
}

/** An empty list of unknown kind counts as one of pods, unless another input contains the node's pods. */
export function resolveEmptyList(base: Fields, parts: readonly Part[]): ResolvedParts {
  const whole = parts.find(({ part }) => part === "snapshot");
  const isKnown =
    (whole === undefined ? base : fieldsOf(whole.posted))["pods"] !== undefined ||
    parts.some(({ part, posted }) => part === "pods" && posted !== NOTHING);
  const taken = isKnown ? "skipped, as it is" : "read as an empty list of the node's pods, as it is";
  const what = `${taken} a \`List\` without items, which does not say of what (a \`PodList\` does)`;
  return {
    parts: isKnown ? parts.filter(({ posted }) => posted !== NOTHING) : parts,
    warnings: parts
      .filter(({ posted }) => posted === NOTHING)
      .map(({ source }) => ({ source, text: `${source.file}: ${what}` })),
  };
}

function duplicates(what: string, [first, second]: readonly Part[]): string[] {
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

export interface CheckedSnapshot {
  readonly snapshot: Snapshot | null;
  readonly faults: readonly string[];
  /** The documents that the faults are in, of those that have a place. */
  readonly wrong: ReadonlySet<SourceDocument>;
  /** The parts that are as they should be, in the form in which a snapshot is stored. */
  readonly kept: Snapshot | null;
}

/** Checks the assembled snapshot. Faults are reported with their place, and the rest is kept. */
export function checked({ input, origins }: Pick<Assembled, "input" | "origins">): CheckedSnapshot {
  const decoded = decodeSnapshot(input);
  if (decoded.ok) return { snapshot: decoded.value, faults: [], wrong: new Set(), kept: decoded.value };
  const faults = decoded.error.map((issue) => issueText(issue, origins));
  const wrong = new Set(decoded.error.flatMap((issue) => originOf(issue, origins)?.source ?? []));
  return { snapshot: null, faults: [...new Set(faults)], wrong, kept: recordedSnapshot(input, decoded.error) };
}

function recordedSnapshot(input: Fields, issues: readonly InputIssue[]): Snapshot | null {
  const wrong = new Set(issues.map(({ path }) => /^[A-Za-z]+/.exec(path)?.[0]));
  const rest = decodeSnapshot(Object.fromEntries(Object.entries(input).filter(([name]) => !wrong.has(name))));
  return rest.ok ? rest.value : null;
}

/** Eviction and the collections decide about a moment. */
export function withTime(
  snapshot: Snapshot | null,
  nowMs: number,
): { readonly snapshot: Snapshot | null; readonly assumed: readonly string[] } {
  if (snapshot === null || snapshot.observedAt !== undefined) return { snapshot, assumed: [] };
  const latest = assumedTime(snapshot);
  const observedAt = latest ?? new Date(nowMs).toISOString();
  const why = latest === undefined ? "now" : "the latest time in the stats";
  return { snapshot: { ...snapshot, observedAt }, assumed: [`observed at ${observedAt}, ${why}`] };
}

/** A snapshot of the history. */
export interface StoredBase {
  readonly id: string;
  readonly node: string;
  readonly input: Fields;
}

/** The snapshot with this id, or the node's newest if the id is none of that node's; null: neither is given. Errors: unknown, or not the caller's. */
export async function storedBase(
  exchange: Exchange,
  { snapshot: id, node }: { readonly snapshot: string; readonly node: string },
): Promise<Result<StoredBase | null, Problem>> {
  const { deps } = exchange;
  if (id !== "") {
    if (!isId(id)) return problem("unknown_snapshot", `\`${id.slice(0, 64)}\` is no snapshot's id: 32 hex digits`);
    const stored = await snapshotSeen(exchange, id);
    if (!stored.ok) return stored;
    if (node === "" || node === stored.value.node) return baseOf(stored.value);
  }
  if (node === "") return ok(null);
  const known = await nodeNamed(exchange, node);
  if (!known.ok) return known;
  const latest = await deps.store.latestSnapshot(node);
  if (!latest.ok) return historyProblem(latest.error);
  if (latest.value === null)
    return problem("unknown_snapshot", `of node \`${node.slice(0, 253)}\` no snapshot is stored any more`);
  return baseOf(latest.value);
}

function baseOf(row: SnapshotRow): Result<StoredBase, Problem> {
  const posted = postedSnapshot(row);
  return posted.ok ? ok({ id: row.id, node: row.node, input: posted.value }) : historyProblem(posted.error);
}

/** Reads the remembered facts of a stored snapshot's node, for the kinds whose decisions depend on them. */
export async function rememberedOf(
  { deps }: Exchange,
  node: string,
  snapshot: Snapshot,
): Promise<Result<ReadonlyMap<Kind, KindInput>, Problem>> {
  const known = new Map<Kind, KindInput>();
  for (const kind of REMEMBERING) {
    const recollection = await readFactsBefore(deps.store, passOf(kind, node, snapshot));
    if (!recollection.ok) return recollection;
    const asked = readAsk(kind, null);
    if (!asked.ok) continue;
    const unset = { snapshot: null, snapshotId: null, kubeletVersion: null, record: false };
    const request = { kind, ...unset, explain: "off" as const, ...asked.value };
    const full = requestWithFacts(request, { recollection: recollection.value });
    if (full !== null) known.set(kind, { ask: full.ask, facts: full.facts ?? {} });
  }
  return ok(known);
}
