import type { PerOwnerCache } from "../base/cache.ts";
import type { Form, PlaceReasons } from "./forms.ts";
import type { KIND_SPECS } from "./kinds.ts";
import type { Snapshot } from "./snapshot.ts";

/**
 * The names of the decision kinds. Each name is the route, the row value and the CLI verb, and the name of the kind's files. The list is not
 * in the register (`KIND_SPECS`), because the command line needs the names before it loads any form.
 */
export const KINDS = [
  "allocatable",
  "cgroups",
  "cpus",
  "memory",
  "topology",
  "devices",
  "claims",
  "admission",
  "preemption",
  "resize",
  "eviction",
  "image-gc",
  "container-gc",
  "probes",
  "probe-guard",
] as const;
export type Kind = (typeof KINDS)[number];
export const isKind = (s: string): s is Kind => (KINDS as readonly string[]).includes(s);

export const EXPLAIN = ["off", "reasons", "full"] as const;
export type Explain = (typeof EXPLAIN)[number];

/** Every way in which a decision can end; every verdict but `decided` is a negative answer. */
export const VERDICTS = [
  "decided",
  "refused",
  "kubelet-refuses",
  "calm",
  "under-pressure",
  "reclaims",
  "evicts",
  "keeps",
  "removes",
  "fails",
  "restarts",
] as const;
export type Verdict = (typeof VERDICTS)[number];
export const isVerdict = (s: string): s is Verdict => (VERDICTS as readonly string[]).includes(s);

export const REFUSAL_CODES = [
  "needs_input",
  "invalid_configuration",
  "invalid_state",
  "no_such_pod",
  "too_large",
] as const;
/** An expected "no answer": what is missing or contradictory, and what to do about it. */
export interface Refusal {
  readonly code: (typeof REFUSAL_CODES)[number];
  readonly message: string;
  /** JSON paths in the snapshot that the decision needs and lacks. */
  readonly needs: readonly string[];
}

/** Does not compile if a kind has a name and no spec, or a spec and no name. */
type Named<S extends Readonly<Record<Kind, unknown>>, N extends Kind> = { readonly [K in N]: S[K] };
type Specs = Named<typeof KIND_SPECS, keyof typeof KIND_SPECS>;
type OkResult<D extends (...args: never) => unknown> = Extract<ReturnType<D>, { readonly ok: true }>;
/** The type of each kind's ask; undefined: the kind asks nothing beyond the snapshot. */
export type AskOf = { readonly [K in Kind]: OkResult<Specs[K]["ask"]["decode"]>["value"] };
export type DecisionOf = { readonly [K in Kind]: Form<Specs[K]["decision"]> };
/** The codes of a kind's reasons. */
export type ReasonCode<K extends Kind = Kind> = Specs[K]["reasons"][number];

export interface Decided<D, Code extends string = string> {
  readonly decision: D;
  readonly verdict: Verdict;
  /** One entry per place, in the order in which the places were first mentioned. */
  readonly reasons: readonly PlaceReasons<Code>[];
  /** Inputs that would have made the answer more complete. */
  readonly needs: readonly string[];
  /** State to post with the next question; null: the kind keeps none. */
  readonly next: unknown;
}

/** The answer of a kind, with reasons of its own codes. */
export type DecidedOf<K extends Kind> = Decided<DecisionOf[K], ReasonCode<K>>;

/** The facts from history, read by the caller; the core never reads them itself. */
export type Facts = Readonly<Record<string, unknown>>;

export interface DecideArguments<A> {
  readonly snapshot: Snapshot;
  readonly facts: Facts;
  readonly ask: A;
  readonly explain: Explain;
  /**
   * Results of earlier decisions about objects that may be in this snapshot too; they save time and never change the
   * answer.
   */
  readonly kept?: PerOwnerCache;
}
