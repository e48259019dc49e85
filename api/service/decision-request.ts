import * as z from "zod";
import { ref } from "../base/json-schema.ts";
import { suggestionText } from "../base/near-name.ts";
import { err, ok, type Result } from "../base/result.ts";
import { type AskOf, EXPLAIN, type Explain, type Facts, isKind, KINDS, type Kind } from "../model/decision.ts";
import { decodeAsk, decodeFacts } from "../model/decode-ask.ts";
import { optional } from "../model/fields.ts";
import { REMEMBERING } from "../model/kinds.ts";
import { idText, readBody, versionText } from "./body-form.ts";
import { inputProblem, invalid, type Problem, problem } from "./problem.ts";

/** The body of `POST /v1/decisions/{kind}`, with its snapshot not decoded yet. */
export interface DecisionRequest extends Ask {
  readonly kind: Kind;
  readonly snapshot: unknown;
  /** Null if the request contains the snapshot itself. */
  readonly snapshotId: string | null;
  readonly explain: Explain;
  /** The kubelet version to assume if the snapshot has none; null if not given. */
  readonly kubeletVersion: string | null;
  /** False: the answer is not recorded and the node's facts do not change. Only a line of a batch sets this in its body. */
  readonly record: boolean;
}

/** A field of several request bodies. */
export const kubeletVersion = optional(versionText).describe(
  "the kubelet version to use if the node in the snapshot reports none; a version that the node reports takes precedence; absent: the newest version",
);
/** The body of `POST /v1/decisions/{kind}`. The form of `ask` depends on the kind. */
export const decisionForm = z.strictObject({
  snapshot: optional(z.unknown()).meta(ref("NodeSnapshot")),
  snapshotId: optional(
    idText("must be an id that PUT /v1/nodes/NODE/snapshot or a decision answered: 32 hex digits"),
  ).describe("the id of a snapshot in the history"),
  ask: optional(z.unknown()),
  explain: z
    .enum(EXPLAIN, `must be one of ${EXPLAIN.join(", ")}`)
    .default("reasons")
    .describe(
      "reasons: the answer has the reasons of every value and of every value that is not set; full: also the reasons of kinds that weigh alternatives, such as each image that stays",
    ),
  kubeletVersion,
});
/** A line of a batch. */
export const lineForm = decisionForm.extend({
  kind: optional(z.unknown()),
  record: z
    .boolean("must be true or false")
    .default(true)
    .describe("false: the line is answered, and nothing is recorded"),
});

export function unknownKind(kind: string): Result<never, Problem> {
  const meant = suggestionText(kind, KINDS);
  const proposal = meant === null ? "" : `; ${meant}`;
  const words = `\`${kind.slice(0, 64)}\` is not a decision kind; the kinds are ${KINDS.join(", ")}`;
  return problem("unknown_kind", words + proposal);
}

/** `kind`: the route's; null in a batch, where the line has it. */
export function decisionRequest(input: unknown, kind: Kind | null): Result<DecisionRequest, Problem> {
  const body = readBody(kind === null ? lineForm : decisionForm, input, '{"snapshot": {...}}');
  if (!body.ok) return body;
  const {
    kind: named,
    record = true,
    snapshot,
    snapshotId = null,
    ask,
    explain,
    kubeletVersion = null,
  } = body.value as z.output<typeof lineForm>;
  const kindOf = kind === null ? kindIn(named) : ok(kind);
  if (!kindOf.ok) return kindOf;
  const asked = readAsk(kindOf.value, ask);
  if (!asked.ok) return asked;
  if ((snapshot === undefined) === (snapshotId === null)) {
    const found = snapshotId === null ? "neither" : "both";
    return invalid("snapshot", `exactly one of snapshot and snapshotId is needed, found ${found}`);
  }
  return ok({ kind: kindOf.value, snapshot, ...asked.value, explain, kubeletVersion, record, snapshotId });
}

function kindIn(kind: unknown): Result<Kind, Problem> {
  if (typeof kind !== "string") return invalid("kind", `every line names its kind, one of ${KINDS.join(", ")}`);
  return isKind(kind) ? ok(kind) : unknownKind(kind);
}

/** The input of a decision in addition to the snapshot. */
export interface Ask {
  readonly ask: AskOf[Kind];
  /** The ask as canonical JSON text, as stored; null if there is none. */
  readonly askText: string | null;
  /** The node's facts that the caller remembers, by kind; null to use the history's, for kinds with facts. */
  readonly facts: Facts | null;
}

/** An `ask` as posted or stored. For kinds with facts, its `facts` is the `next` of the node's last answer. */
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

/** The ask with the remembered facts: they are part of the input, so that a replay repeats it exactly. */
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
