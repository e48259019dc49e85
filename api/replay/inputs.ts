import type { StoreFailure } from "../../db/failure.ts";
import type { Store } from "../../db/store.ts";
import { decodeSnapshot } from "../model/decode.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { inputProblem, type Problem } from "../routes/problem.ts";
import { type Change, changed, type RecordedInput } from "./change.ts";
import { withNewStatus } from "./new-status.ts";

/** A snapshot to decide on; the new configuration is refused for it; null: it is no longer stored. */
export type Input = Result<Snapshot, Problem> | null;

/** Characters of the snapshots that are kept, some of the largest, and at most so many of them. */
const KEPT_LENGTH = 2 * 1024 * 1024;
const MOST = 128;

/**
 * Reads stored snapshots with the change made. The last ones are kept decoded, since several kinds are decided on one of
 * them. Errors: those of the history.
 */
export function inputs(
  store: Pick<Store, "getSnapshot">,
  change: Change,
): (snapshotId: string) => Promise<Result<Input, StoreFailure>> {
  const kept = new Map<string, { readonly input: Input; readonly length: number }>();
  let length = 0;
  const keep = (id: string, input: Input, added: number): void => {
    kept.set(id, { input, length: added });
    length += added;
    for (const [oldest, entry] of kept) {
      if (kept.size <= MOST && (length <= KEPT_LENGTH || kept.size === 1)) break;
      kept.delete(oldest);
      length -= entry.length;
    }
  };
  return async (id) => {
    const known = kept.get(id);
    if (known !== undefined) {
      kept.delete(id);
      kept.set(id, known);
      return ok(known.input);
    }
    const stored = await store.getSnapshot(id);
    if (!stored.ok) return stored;
    const text = stored.value?.body;
    const input = text === undefined ? null : decoded(text, change);
    keep(id, input, text?.length ?? 0);
    return ok(input);
  };
}

function decoded(text: string, change: Change): Result<Snapshot, Problem> {
  const recorded = JSON.parse(text) as RecordedInput;
  const snapshot = decodeSnapshot(changed(recorded, change));
  if (!snapshot.ok) return err(inputProblem(snapshot.error));
  if (isNothing(change)) return snapshot;
  const before = decodeSnapshot(recorded);
  return before.ok ? ok(withNewStatus(before.value, snapshot.value)) : snapshot;
}

const isNothing = ({ kubeletConfiguration, kubeletConfigurationPatch }: Change): boolean =>
  kubeletConfiguration === undefined && kubeletConfigurationPatch === undefined;
