import type { StoreFailure } from "../../../db/failure.ts";
import type { Store } from "../../../db/store.ts";
import { decodeSnapshot } from "../../model/decode.ts";
import { err, ok, type Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { inputProblem, type Problem } from "../problem.ts";
import { withNewStatus } from "./new-status.ts";
import { type Change, changed, isNothing, postedSnapshot } from "./parsed.ts";
import { Kept } from "./snapshot-parts.ts";

/** A snapshot to decide on, with the change made. */
export interface Input {
  readonly snapshot: Snapshot;
  /** Those with the same key are the same in all that a steady kind reads. Null: nobody knows. */
  readonly steady: string | null;
}
/** Problem: the new configuration is refused for it. Null: it is no longer stored. */
export type FoundInput = Result<Input, Problem> | null;
/** Reads what is stored under an id. Errors: those of the history, and a snapshot that nobody can read. */
export type Inputs = (snapshotId: string) => Promise<Result<FoundInput, StoreFailure>>;

/** Characters of the snapshots that are kept, some of the largest, and at most so many of them. */
const KEPT_LENGTH = 2 * 1024 * 1024;
const MOST = 128;

/** Reads each snapshot as a whole. */
export function inputs(store: Pick<Store, "getSnapshot">, change: Change): Inputs {
  const kept = keptInputs();
  return (id) => kept(id, () => wholeInput(store, id, change));
}

/** The input that was found, and the length of its text. */
export type ReadInput = Result<{ readonly input: FoundInput; readonly length: number }, StoreFailure>;

/** Keeps the inputs that were read last: several kinds are decided on one, and those of some nodes take turns. */
export function keptInputs(): (
  id: string,
  read: () => Promise<ReadInput>,
) => Promise<Result<FoundInput, StoreFailure>> {
  const kept = new Kept<{ readonly input: FoundInput }>(MOST, KEPT_LENGTH);
  return async (id, read) => {
    const known = kept.get(id);
    if (known !== undefined) return ok(known.input);
    const found = await read();
    if (!found.ok) return found;
    const { input, length } = found.value;
    kept.set(id, { input }, length);
    return ok(input);
  };
}

/** Decodes all of a stored snapshot, which tells every fault of it. */
export async function wholeInput(store: Pick<Store, "getSnapshot">, id: string, change: Change): Promise<ReadInput> {
  const stored = await store.getSnapshot(id);
  if (!stored.ok) return stored;
  if (stored.value === null) return ok({ input: null, length: 0 });
  const recorded = postedSnapshot(stored.value);
  if (!recorded.ok) return recorded;
  const snapshot = decoded(recorded.value, change);
  return ok({
    input: snapshot.ok ? ok({ snapshot: snapshot.value, steady: null }) : snapshot,
    length: stored.value.body.length,
  });
}

function decoded(recorded: Readonly<Record<string, unknown>>, change: Change): Result<Snapshot, Problem> {
  const snapshot = decodeSnapshot(changed(recorded, change));
  if (!snapshot.ok) return err(inputProblem(snapshot.error));
  if (isNothing(change)) return snapshot;
  const before = decodeSnapshot(recorded);
  return before.ok ? ok(withNewStatus(before.value, snapshot.value)) : snapshot;
}
