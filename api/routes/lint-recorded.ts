import type { StoreFailure } from "../../db/failure.ts";
import type { Store } from "../../db/store.ts";
import { type LintFinding, lintConfiguration } from "../decide/lint/lint.ts";
import { decodeSnapshot } from "../model/decode.ts";
import { ok, type Result } from "../model/result.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { isObject } from "../replay/change.ts";
import { Kept } from "../replay/kept.ts";
import { postedSnapshot } from "../replay/parsed.ts";
import { partsReader } from "../replay/snapshot-parts.ts";

/** The configuration that decisions were made with, and what is found in it on its node. */
export interface Recorded {
  /** As it was posted. */
  readonly configuration: unknown;
  readonly findings: readonly LintFinding[];
}
/** By a decision's `snapshotId`. Null: there is no snapshot, or no longer. Errors: the history's. */
export type RecordedFindings = (snapshotId: string | null) => Promise<Result<Recorded | null, StoreFailure>>;

type Snapshots = Pick<Store, "getSnapshot" | "getSnapshotPieces">;

/** Several kinds are decided on one snapshot, and those of some nodes take turns. */
const MOST_KEPT = 128;
/** Characters of what snapshots share that are kept decoded. */
const KEPT_LENGTH = 2 * 1024 * 1024;

/** Looks each snapshot over once, and decodes once what the snapshots of a node share. */
export function recordedFindings(store: Snapshots): RecordedFindings {
  const kept = new Kept<{ readonly recorded: Recorded | null }>(MOST_KEPT, Number.POSITIVE_INFINITY);
  const partsOf = partsReader(KEPT_LENGTH);
  return async (id) => {
    if (id === null) return ok(null);
    const known = kept.get(id);
    if (known !== undefined) return ok(known.recorded);
    const stored = await store.getSnapshotPieces(id);
    if (!stored.ok) return stored;
    const parts = stored.value === null ? ok(null) : await partsOf(stored.value.pieces);
    if (!parts.ok) return parts;
    const { value } = parts;
    const recorded =
      value === null ? await ofWhole(store, id) : ok(lookedOver(value.kubeletConfiguration, value.decoded));
    if (recorded.ok) kept.set(id, { recorded: recorded.value }, 1);
    return recorded;
  };
}

/** Of one that cannot be read part by part. */
async function ofWhole(store: Snapshots, id: string): Promise<Result<Recorded | null, StoreFailure>> {
  const stored = await store.getSnapshot(id);
  if (!stored.ok) return stored;
  if (stored.value === null) return ok(null);
  const body = postedSnapshot(stored.value);
  if (!body.ok) return body;
  const { kubeletConfiguration, ...rest } = body.value;
  const snapshot = decodeSnapshot(rest);
  return ok(lookedOver(kubeletConfiguration, snapshot.ok ? snapshot.value : undefined));
}

const lookedOver = (configuration: unknown, snapshot: Snapshot | undefined): Recorded => ({
  configuration,
  findings: isObject(configuration) ? lintConfiguration(configuration, snapshot) : [],
});
