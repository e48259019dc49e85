import type { Store } from "../../db/store.ts";
import { steadyInput } from "../decide/input.ts";
import { decodeSnapshot } from "../model/decode.ts";
import { ok } from "../model/result.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { type Change, changed, isNothing } from "./change.ts";
import { type Input, type Inputs, keptInputs, type ReadInput, wholeInput } from "./inputs.ts";
import { Kept } from "./kept.ts";
import { withNewStatus } from "./new-status.ts";
import { type Parts, partsReader } from "./snapshot-parts.ts";

const MOST_CONFIGURATIONS = 256;
const CONFIGURATIONS_LENGTH = 2 * 1024 * 1024;
const MOST_NODES = 4096;
/** Characters of a key; a longer one costs more than it saves. */
const LONGEST_KEY = 2048;

/** As `inputs`, for many snapshots of the same nodes: what they share is decoded once, `length` characters of it are kept. */
export function quickInputs(
  store: Pick<Store, "getSnapshot" | "getSnapshotPieces">,
  change: Change,
  length: number,
): Inputs {
  const kept = keptInputs();
  const partsOf = partsReader(length);
  const inputOf = composer(change);
  const read = async (id: string): Promise<ReadInput> => {
    const stored = await store.getSnapshotPieces(id);
    if (!stored.ok) return stored;
    if (stored.value === null) return ok({ input: null, length: 0 });
    const { pieces } = stored.value;
    const parts = await partsOf(pieces);
    if (!parts.ok) return parts;
    const input = parts.value === null ? null : inputOf(parts.value);
    // every fault is told by who reads the whole
    return input === null ? wholeInput(store, id, change) : ok({ input: ok(input), length: pieces.rest.length });
  };
  return (id) => kept(id, () => read(id));
}

/** Puts inputs together of decoded parts. Null: the new configuration is refused, or the recorded one is. */
function composer(change: Change): (parts: Parts) => Input | null {
  const configured = configurations(change);
  const nodes = new Kept<Pick<Snapshot, "node">>(MOST_NODES, Number.POSITIVE_INFINITY);
  return ({ decoded, kubeletConfiguration, steady: parts }) => {
    const both = configured(kubeletConfiguration);
    if (both === null) return null;
    const before = { ...decoded, ...both.before };
    const key = `${parts} ${JSON.stringify(steadyInput("allocatable", before)?.stats)}`;
    const steady = key.length > LONGEST_KEY ? null : key;
    if (isNothing(change)) return { snapshot: before, steady };
    const after = { ...decoded, ...both.after };
    const known = steady === null ? undefined : nodes.get(steady);
    if (known !== undefined) return { snapshot: { ...after, ...known }, steady };
    const snapshot = withNewStatus(before, after);
    if (steady !== null) nodes.set(steady, snapshot.node === undefined ? {} : { node: snapshot.node }, 1);
    return { snapshot, steady };
  };
}

interface Configurations {
  readonly before: Snapshot;
  readonly after: Snapshot;
}
/** A posted configuration as it was and with the change, decoded; few nodes have one of their own. */
function configurations(change: Change): (posted: unknown) => Configurations | null {
  const kept = new Kept<Configurations | null>(MOST_CONFIGURATIONS, CONFIGURATIONS_LENGTH);
  return (posted) => {
    const text = JSON.stringify(posted) ?? "";
    const known = kept.get(text);
    if (known !== undefined) return known;
    const input = { kubeletConfiguration: posted };
    const before = decodeSnapshot(input);
    const after = decodeSnapshot(changed(input, change));
    const both = before.ok && after.ok ? { before: before.value, after: after.value } : null;
    kept.set(text, both, text.length);
    return both;
  };
}
