import { EXPLAIN, type Explain, isKind, KINDS, type Kind } from "../model/decision.ts";
import { ok, type Result } from "../model/result.ts";
import { type Ask, readAsk } from "./asked.ts";
import { invalid, type Problem, problem } from "./problem.ts";

/** The body of `POST /v1/decisions/{kind}`, its snapshot not decoded yet. */
export interface DecisionRequest extends Ask {
  readonly kind: Kind;
  readonly snapshot: unknown;
  /** Null when the snapshot itself was posted. */
  readonly snapshotId: string | null;
  readonly explain: Explain;
}

const FIELDS: ReadonlySet<string> = new Set(["snapshot", "snapshotId", "ask", "explain"]);
const FIELDS_OF_LINE: ReadonlySet<string> = new Set([...FIELDS, "kind"]);
const ID = /^[0-9a-f]{32}$/;
export const isId = (text: string): boolean => ID.test(text);

export const unknownKind = (kind: string): Result<never, Problem> =>
  problem("unknown_kind", `\`${kind.slice(0, 64)}\` is not a decision kind; the kinds are ${KINDS.join(", ")}`);

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
  const { snapshot, snapshotId, ask, explain = "reasons" } = body;
  if (!isExplain(explain)) return invalid("explain", `must be one of ${EXPLAIN.join(", ")}`);
  const asked = readAsk(kindOf.value, ask);
  if (!asked.ok) return asked;
  const hasSnapshot = snapshot !== undefined && snapshot !== null;
  const hasId = snapshotId !== undefined && snapshotId !== null;
  if (hasSnapshot === hasId) {
    return invalid("snapshot", `exactly one of snapshot and snapshotId is needed, found ${hasId ? "both" : "neither"}`);
  }
  const request = { kind: kindOf.value, snapshot, ...asked.value, explain };
  if (!hasId) return ok({ ...request, snapshotId: null });
  if (typeof snapshotId !== "string" || !isId(snapshotId)) {
    return invalid(
      "snapshotId",
      "must be an id that PUT /v1/nodes/NODE/snapshot or a decision answered: 32 hex digits",
    );
  }
  return ok({ ...request, snapshotId });
}

const isExplain = (value: unknown): value is Explain => (EXPLAIN as readonly unknown[]).includes(value);

function kindIn(kind: unknown): Result<Kind, Problem> {
  if (typeof kind !== "string") return invalid("kind", `every line names its kind, one of ${KINDS.join(", ")}`);
  return isKind(kind) ? ok(kind) : unknownKind(kind);
}

/** A misspelt field would change what is meant, so it is not ignored here. */
export const unknownField = (name: string, fields: ReadonlySet<string>): Result<never, Problem> =>
  invalid(name.slice(0, 64), `there is no such field; the fields are ${[...fields].join(", ")}`);
