import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Facts, Kind } from "../../api/model/decision.ts";
import { decodeFacts } from "../../api/model/decode-ask.ts";
import { REMEMBERING, specOf } from "../../api/model/kinds.ts";
import { orderOf, type PassTime, passTimeOf, type TimedSnapshot } from "../../api/model/pass-time.ts";
import { replaceFile } from "./record-file.ts";

/** The result of the last pass of a kind, as in the API's history. */
interface StoredFacts {
  readonly next: unknown;
  /** The facts that were given to this pass: a repetition must get the same. */
  readonly before: unknown;
  readonly atMs: number | null;
  readonly bootId: string | null;
}

/**
 * Facts for the node's next decision, one file for each kind, so that they survive restarts and an API that is down or
 * new. Passes are distinguished by their snapshot's time, as in the API: a repeated pass gets the same facts, and a
 * late one is not stored.
 */
export class FactsStore {
  readonly #directory: string;
  readonly #onProblem: (message: string) => void;
  readonly #kept = new Map<Kind, StoredFacts>();

  constructor(directory: string, onProblem: (message: string) => void) {
    this.#directory = directory;
    this.#onProblem = onProblem;
    for (const kind of REMEMBERING) {
      const kept = this.#read(kind);
      if (kept !== undefined) this.#kept.set(kind, kept);
    }
  }

  /** The facts of a pass over a snapshot; undefined: nothing is remembered. */
  factsFor(kind: Kind, snapshot: unknown): unknown {
    const known = this.#known(kind, snapshot);
    if (known === undefined) return undefined;
    return (orderIn(known, snapshot) === "later" ? known.next : known.before) ?? undefined;
  }

  /** Stores the `next` of an answer to a snapshot. INVARIANT: it is on disk on return, or a problem is reported. */
  persist(kind: Kind, snapshot: unknown, next: unknown): void {
    if (!REMEMBERING.has(kind) || next === null || next === undefined) return;
    const known = this.#known(kind, snapshot);
    const order = known === undefined ? "later" : orderIn(known, snapshot);
    if (order === "late") return;
    const { time, bootId } = momentOf(snapshot);
    const before = (order === "again" ? known?.before : known?.next) ?? null;
    const kept: StoredFacts = { next, before, atMs: time?.atMs ?? null, bootId };
    this.#kept.set(kind, kept);
    const written = replaceFile(this.#file(kind), [JSON.stringify(kept)]);
    if (!written.ok) this.#onProblem(`${written.error.message}; what ${kind} remembers would be lost by a restart`);
  }

  #known(kind: Kind, snapshot: unknown): StoredFacts | undefined {
    const known = this.#kept.get(kind);
    const { bootId } = momentOf(snapshot);
    const isOther = known !== undefined && bootId !== null && known.bootId !== null && bootId !== known.bootId;
    return isOther && specOf(kind).facts?.forgottenAtBoot === true ? undefined : known;
  }

  #file(kind: Kind): string {
    return join(this.#directory, `facts-${kind}.json`);
  }

  #read(kind: Kind): StoredFacts | undefined {
    const file = this.#file(kind);
    if (!existsSync(file)) return undefined;
    try {
      const kept = JSON.parse(readFileSync(file, "utf8")) as StoredFacts;
      const faults = [kept.next, kept.before].map((facts) => decodeFacts(kind, facts, "next")).filter(({ ok }) => !ok);
      if (faults.length === 0) return kept;
    } catch {
      // reported below, as a file with faults
    }
    this.#onProblem(`${file} cannot be read: ${kind} starts without it, as a kubelet does after a restart`);
    return undefined;
  }
}

/** When and in which boot a snapshot was taken. */
function momentOf(snapshot: unknown): { readonly time: PassTime | null; readonly bootId: string | null } {
  const timed = (snapshot ?? {}) as TimedSnapshot & { readonly bootId?: string };
  return { time: passTimeOf(timed), bootId: timed.bootId ?? null };
}
/** How the snapshot's pass relates in time to the remembered one. */
function orderIn({ atMs }: StoredFacts, snapshot: unknown): ReturnType<typeof orderOf> {
  const { time } = momentOf(snapshot);
  return atMs === null || time === null ? "later" : orderOf(time, atMs);
}

/** The facts in the core's form. */
export const factsOf = (kind: Kind, facts: unknown): Facts => (facts === undefined ? {} : { [kind]: facts });
