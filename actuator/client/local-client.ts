import type { InputIssue } from "../../api/base/input-issue.ts";
import { err, ok, type Result } from "../../api/base/result.ts";
import { decideKind } from "../../api/decide/kinds/index.ts";
import type { Explain, Facts, Kind } from "../../api/model/decision.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { decodeAsk } from "../../api/model/decode-ask.ts";
import { IMAGE_RECORDS, specOf } from "../../api/model/kinds.ts";
import { type EffectiveSnapshot, effectiveSnapshot } from "../../api/profiles/effective.ts";
import { type FactsStore, factsOf } from "../core/facts-file.ts";
import type { DecisionAnswer, DecisionClient, Problem } from "../core/interfaces.ts";
import type { Pending } from "./outbox.ts";

interface LocalRequest {
  /** The ask in the API's form. */
  readonly ask?: unknown;
  readonly facts?: Facts;
  /** `reasons` if absent. */
  readonly explain?: Explain;
}

/**
 * Decides with the same core as the API, when there is none. Errors: the refusal, or the faults of the snapshot or the
 * ask.
 */
export function decideLocally(
  kind: Kind,
  snapshot: unknown,
  { ask, facts = {}, explain = "reasons" }: LocalRequest = {},
): Result<DecisionAnswer, Problem> {
  const decoded = decodedOnce(snapshot);
  if (!decoded.ok) return faulty(kind, "snapshot", decoded.error);
  const asked = decodeAsk(kind, ask ?? null);
  if (!asked.ok) return faulty(kind, "ask", asked.error);
  const decided = decideKind(kind, { snapshot: decoded.value, facts, ask: asked.value, explain });
  if (!decided.ok) return err({ from: "decision", message: `${kind}: ${decided.error.message}` });
  return ok({ id: null, decidedBy: "here", ...decided.value });
}

type Decoded = Result<EffectiveSnapshot, readonly InputIssue[]>;
let last: { readonly snapshot: unknown; readonly decoded: Decoded } | null = null;
/** Decodes a snapshot once for several kinds: a pass asks them one right after the other. */
export function decodedOnce(snapshot: unknown): Decoded {
  if (last !== null && last.snapshot === snapshot) return last.decoded;
  const read = decodeSnapshot(snapshot, "snapshot");
  const decoded = read.ok ? ok(effectiveSnapshot(read.value)) : read;
  last = { snapshot, decoded };
  // no cache is kept between passes
  setImmediate(() => {
    last = null;
  });
  return decoded;
}

function faulty(
  kind: Kind,
  what: string,
  issues: readonly { readonly path: string; readonly message: string }[],
): Result<never, Problem> {
  const first = issues.slice(0, 3).map(({ path, message }) => `${path}: ${message}`);
  return err({ from: "decision", message: `${kind}: the ${what} has ${issues.length} faults: ${first.join("; ")}` });
}

/** A client without an API: every decision is made here, and only the facts for the next one are stored. */
export function localClient(factsStore: FactsStore): DecisionClient {
  const asked = new WeakMap<DecisionAnswer, DecisionQuestion>();
  return {
    decide: async (kind, snapshot, ask) => {
      const here = decideWith(factsStore, kind, snapshot, ask);
      if (here.ok) asked.set(here.value, { kind, snapshot });
      return here;
    },
    commit: async (answer) => persistFacts(factsStore, answer, asked.get(answer)),
    report: async () => {},
  };
}

/** The question that an answer belongs to. */
export type DecisionQuestion = Omit<Pending, "report"> & {
  /** True: the API refuses a body of that size, now and later. */
  readonly isTooLarge?: boolean;
};

/** Decides with the remembered facts. */
export function decideWith(factsStore: FactsStore, kind: Kind, snapshot: unknown, ask: object | undefined) {
  const facts = factsOf(kind, factsStore.factsFor(kind, snapshot));
  // as the API does, look up which images are old enough to be reclaimed
  const images = specOf(kind).facts?.readsImages === true ? factsStore.factsFor(IMAGE_RECORDS, snapshot) : undefined;
  return decideLocally(kind, snapshot, { ask: images === undefined ? ask : { ...ask, images }, facts });
}

/** Stores the facts for the next decision. */
export function persistFacts(
  factsStore: FactsStore,
  { next }: DecisionAnswer,
  asked: DecisionQuestion | undefined,
): void {
  if (asked !== undefined) factsStore.persist(asked.kind, asked.snapshot, next);
}
