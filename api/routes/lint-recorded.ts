import type { StoreFailure } from "../../db/failure.ts";
import type { Store } from "../../db/store.ts";
import { fileSystemsOf } from "../decide/eviction/file-systems.ts";
import { ALWAYS_NEW } from "../decide/input.ts";
import { type LintFinding, lintConfiguration } from "../decide/lint/lint.ts";
import { decodeSnapshot } from "../model/decode.ts";
import { ok, type Result } from "../model/result.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { isObject } from "../replay/change.ts";
import { Kept } from "../replay/kept.ts";
import { postedSnapshot } from "../replay/parsed.ts";
import { type Parts, partsReader } from "../replay/snapshot-parts.ts";

/** The configuration that decisions were made with, and what is found in it on its node. */
export interface Recorded {
  /** As it was posted. */
  readonly configuration: unknown;
  readonly findings: readonly LintFinding[];
}
/** By a decision's `snapshotId`. Null: there is no snapshot, or no longer. Errors: the history's. */
export type RecordedFindings = (snapshotId: string | null) => Promise<Result<Recorded | null, StoreFailure>>;

export type Snapshots = Pick<Store, "getSnapshot" | "getSnapshotPieces">;

/** Several kinds are decided on one snapshot, and those of some nodes take turns. */
const MOST_KEPT = 128;
/** Characters: of what snapshots share that is kept decoded, of snapshots that are kept as read, of nodes that are kept. */
const KEPT_LENGTH = 2 * 1024 * 1024;

/** Looks each node over once for as long as it is as it was, and decodes once what its snapshots share. */
export function recordedFindings(store: Snapshots): RecordedFindings {
  const bySnapshot = new Kept<{ readonly recorded: Recorded | null }>(MOST_KEPT, Number.POSITIVE_INFINITY);
  const byNode = new Kept<Recorded>(MOST_KEPT, KEPT_LENGTH);
  const partsOf = partsReader(KEPT_LENGTH);
  const ofParts = ({ decoded, kubeletConfiguration, steady }: Parts): Recorded => {
    const { snapshot, sizes } = lasting(decoded);
    const key = JSON.stringify([kubeletConfiguration, steady, sizes]);
    const recorded = byNode.get(key) ?? lookedOver(kubeletConfiguration, snapshot);
    byNode.set(key, recorded, key.length);
    return recorded;
  };
  return async (id) => {
    if (id === null) return ok(null);
    const known = bySnapshot.get(id);
    if (known !== undefined) return ok(known.recorded);
    const stored = await store.getSnapshotPieces(id);
    if (!stored.ok) return stored;
    const parts = stored.value === null ? ok(null) : await partsOf(stored.value.pieces);
    if (!parts.ok) return parts;
    const recorded = parts.value === null ? await ofWhole(store, id) : ok(ofParts(parts.value));
    if (recorded.ok) bySnapshot.set(id, { recorded: recorded.value }, 1);
    return recorded;
  };
}

/** What is as it was while the node is: of its stats the sizes alone. What is gone cannot matter to a finding. */
function lasting(decoded: Snapshot): { readonly snapshot: Snapshot; readonly sizes: Snapshot["stats"] } {
  const snapshot: { -readonly [K in keyof Snapshot]: Snapshot[K] } = { ...decoded };
  for (const part of ALWAYS_NEW) delete snapshot[part];
  const node = decoded.stats?.node;
  if (node === undefined) return { snapshot, sizes: undefined };
  const sizeOf = (fs: typeof node.fs) => fs && { capacityBytes: fs.capacityBytes, inodes: fs.inodes };
  const [fs, imageFs] = [sizeOf(node.fs), sizeOf(node.runtime?.imageFs)];
  const fileSystems = fs === undefined || imageFs === undefined ? node.fileSystems : fileSystemsOf(node);
  const rlimit = node.rlimit && { maxpid: node.rlimit.maxpid };
  const sizes = { node: { fs, runtime: { imageFs }, fileSystems, rlimit, swap: node.swap } };
  return { snapshot: { ...snapshot, stats: sizes }, sizes };
}

/** The same store for several who ask for the same snapshots: those read last are kept as they were read. */
export function keptPieces(store: Snapshots): Snapshots {
  const kept = new Kept<Awaited<ReturnType<Snapshots["getSnapshotPieces"]>>>(MOST_KEPT, KEPT_LENGTH);
  return {
    getSnapshot: (id) => store.getSnapshot(id),
    getSnapshotPieces: async (id) => {
      const known = kept.get(id);
      if (known !== undefined) return known;
      const read = await store.getSnapshotPieces(id);
      kept.set(id, read, read.ok ? (read.value?.pieces.rest.length ?? 1) : 1);
      return read;
    },
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
