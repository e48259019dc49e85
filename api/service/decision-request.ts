import { decodeAsk, decodeFacts } from "../model/asks.ts";
import { type AskOf, EXPLAIN, type Explain, type Facts, isKind, KINDS, type Kind } from "../model/decision.ts";
import { isVersion, VERSION_FORM } from "../model/fields.ts";
import { REMEMBERING } from "../model/kinds.ts";
import { meantText } from "../model/near-name.ts";
import { err, ok, type Result } from "../model/result.ts";
import { knownVersion } from "../profiles/index.ts";
import { inputProblem, invalid, type Problem, problem } from "./problem.ts";

/** The body of `POST /v1/decisions/{kind}`, its snapshot not decoded yet. */
export interface DecisionRequest extends Ask {
  readonly kind: Kind;
  readonly snapshot: unknown;
  /** Null when the snapshot itself was posted. */
  readonly snapshotId: string | null;
  readonly explain: Explain;
  /** The kubelet to answer as where the snapshot tells none; null: nobody said. */
  readonly kubeletVersion: string | null;
  /** False: the answer is not recorded, and the node is remembered as before. Only a line of a batch says so in its body. */
  readonly record: boolean;
}

const FIELDS: ReadonlySet<string> = new Set(["snapshot", "snapshotId", "ask", "explain", "kubeletVersion"]);
const FIELDS_OF_LINE: ReadonlySet<string> = new Set([...FIELDS, "kind", "record"]);
/** The form of the ids of decisions and of snapshots. */
export const ID = /^[0-9a-f]{32}$/;
export const isId = (text: string): boolean => ID.test(text);

export function unknownKind(kind: string): Result<never, Problem> {
  const meant = meantText(kind, KINDS);
  const proposal = meant === null ? "" : `; ${meant}`;
  const words = `\`${kind.slice(0, 64)}\` is not a decision kind; the kinds are ${KINDS.join(", ")}`;
  return problem("unknown_kind", words + proposal);
}

/** `kind` is the route's; null in a batch, where the line names it. */
export function decisionRequest(input: unknown, kind: Kind | null): Result<DecisionRequest, Problem> {
  if (typeof input !== "object" || input === null || Array.isArray(input)) {
    return invalid("$", 'expected an object such as {"snapshot": {...}}');
  }
  const body = input as Readonly<Record<string, unknown>>;
  const fields = kind === null ? FIELDS_OF_LINE : FIELDS;
  for (const name in body) if (!fields.has(name)) return unknownField(name, fields);
  const kindOf = kind === null ? kindIn(body["kind"]) : ok(kind);
  if (!kindOf.ok) return kindOf;
  const { snapshot, snapshotId, ask, explain = "reasons", record } = body;
  if (!isExplain(explain)) return invalid("explain", `must be one of ${EXPLAIN.join(", ")}`);
  if (record !== undefined && record !== null && typeof record !== "boolean")
    return invalid("record", "must be true or false");
  const version = versionIn(body);
  if (!version.ok) return version;
  const asked = readAsk(kindOf.value, ask);
  if (!asked.ok) return asked;
  const hasSnapshot = snapshot !== undefined && snapshot !== null;
  const hasId = snapshotId !== undefined && snapshotId !== null;
  if (hasSnapshot === hasId) {
    return invalid("snapshot", `exactly one of snapshot and snapshotId is needed, found ${hasId ? "both" : "neither"}`);
  }
  const { value: kubeletVersion } = version;
  const request = { kind: kindOf.value, snapshot, ...asked.value, explain, kubeletVersion, record: record !== false };
  if (!hasId) return ok({ ...request, snapshotId: null });
  if (typeof snapshotId !== "string" || !isId(snapshotId)) {
    return invalid(
      "snapshotId",
      "must be an id that PUT /v1/nodes/NODE/snapshot or a decision answered: 32 hex digits",
    );
  }
  return ok({ ...request, snapshotId });
}

/** The `kubeletVersion` of a request's body; null: it has none. */
export function versionIn({ kubeletVersion }: Readonly<Record<string, unknown>>): Result<string | null, Problem> {
  if (kubeletVersion === undefined || kubeletVersion === null) return ok(null);
  if (typeof kubeletVersion === "string" && isVersion(kubeletVersion)) return ok(kubeletVersion);
  return invalid("kubeletVersion", VERSION_FORM);
}

/** The same of a version that must be one of those known here, since nobody would see that a neighbour answered. */
export function knownVersionIn(body: Readonly<Record<string, unknown>>): Result<string | null, Problem> {
  const named = versionIn(body);
  if (!named.ok || named.value === null) return named;
  const known = knownVersion("kubeletVersion", named.value);
  return known.ok ? named : err(inputProblem([known.error]));
}

const isExplain = (value: unknown): value is Explain => (EXPLAIN as readonly unknown[]).includes(value);

function kindIn(kind: unknown): Result<Kind, Problem> {
  if (typeof kind !== "string") return invalid("kind", `every line names its kind, one of ${KINDS.join(", ")}`);
  return isKind(kind) ? ok(kind) : unknownKind(kind);
}

/** A misspelt field would change what is meant, so it is not ignored here. */
export const unknownField = (name: string, fields: ReadonlySet<string>): Result<never, Problem> =>
  invalid(name.slice(0, 64), `there is no such field; the fields are ${[...fields].join(", ")}`);

/** The question to a kind, beside the snapshot. */
export interface Ask {
  readonly ask: AskOf[Kind];
  /** The same as canonical JSON text, as it is kept; null when nothing was asked. */
  readonly askText: string | null;
  /** The facts that the caller remembers of the node, by kind; null: what the history remembers counts, where the kind remembers. */
  readonly facts: Facts | null;
}

/** An `ask` as posted or as kept. With kinds that remember, `facts` in it is the `next` of the node's last answer. */
export function readAsk(kind: Kind, posted: unknown): Result<Ask, Problem> {
  const { facts, rest } = REMEMBERING.has(kind) ? withoutFacts(posted) : { facts: undefined, rest: posted };
  const decoded = decodeAsk(kind, rest);
  if (!decoded.ok) return err(inputProblem(decoded.error));
  const ask = decoded.value;
  const isNothing = rest === undefined || rest === null;
  const bare: Ask = { ask, askText: isNothing ? null : JSON.stringify(ask), facts: null };
  if (facts === undefined) return ok(bare);
  const remembered = decodeFacts(kind, facts, "ask.facts");
  return remembered.ok ? ok(withFacts(kind, bare, facts)) : err(inputProblem(remembered.error));
}

/** The same with what is remembered of the node: it is part of the question, so that a replay asks it again. */
export const withFacts = (kind: Kind, { ask }: Pick<Ask, "ask">, facts: unknown): Ask => ({
  ask,
  askText: JSON.stringify({ ...ask, facts }),
  facts: { [kind]: facts },
});

function withoutFacts(posted: unknown): { readonly facts: unknown; readonly rest: unknown } {
  if (typeof posted !== "object" || posted === null || Array.isArray(posted)) return { facts: undefined, rest: posted };
  const { facts, ...rest } = posted as Readonly<Record<string, unknown>>;
  return { facts, rest };
}
