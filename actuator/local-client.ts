import type { Kind } from "../api/model/decision.ts";
import { decideHere } from "./decide-here.ts";
import { factsOf, type Memory } from "./memory.ts";
import type { Pending } from "./outbox.ts";
import type { DecisionAnswer, DecisionClient } from "./ports.ts";

/** Without an API every decision is made here and nothing is kept for later but what the next one is to be told. */
export function localClient(memory: Memory): DecisionClient {
  const asked = new WeakMap<DecisionAnswer, Asked>();
  return {
    decide: async (kind, snapshot, ask) => {
      const here = decideWith(memory, kind, snapshot, ask);
      if (here.ok) asked.set(here.value, { kind, snapshot });
      return here;
    },
    settle: async (answer) => keepNext(memory, answer, asked.get(answer)),
    report: async () => {},
  };
}

/** What an answer answers. */
export type Asked = Omit<Pending, "report"> & {
  /** The API takes no body of that size, now or later. */
  readonly isTooLarge?: boolean;
};

/** Decides with what is remembered. */
export function decideWith(memory: Memory, kind: Kind, snapshot: unknown, ask: object | undefined) {
  const facts = factsOf(kind, memory.factsFor(kind, snapshot));
  // what the API looks up for it as well: which images are old enough to be reclaimed
  const images = kind === "eviction" ? memory.factsFor("image-gc", snapshot) : undefined;
  return decideHere(kind, snapshot, { ask: images === undefined ? ask : { ...ask, images }, facts });
}

/** Has the memory know what the next decision is to be told. */
export function keepNext(memory: Memory, { next }: DecisionAnswer, asked: Asked | undefined): void {
  if (asked !== undefined) memory.keep(asked.kind, asked.snapshot, next);
}
