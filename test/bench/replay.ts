import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decideKind } from "../../api/decide/index.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import type { Snapshot } from "../../api/model/snapshot.ts";
import { replayAnswer } from "../../api/replay/replay-answer.ts";
import { replayer } from "../../api/replay/replay-one.ts";
import { MAX_REPLAYED } from "../../api/replay/replay-page.ts";
import { readAsk } from "../../api/routes/asked.ts";
import { sha256 } from "../../api/server/digest.ts";
import { openNode } from "../../db/open-node.ts";
import type { DecisionRow, Store } from "../../db/store.ts";
import { postHistory } from "./replay-history.ts";

export interface ReplayBench {
  readonly decisions: number;
  /** CPU microseconds a decision: the core alone on decoded snapshots, with its reasons. */
  readonly decideMicros: number;
  /** Posting it: read, checked, decided and recorded. */
  readonly postMicros: number;
  /** Replaying it out of a file, with what was recorded, and with another configuration (so that each differs). */
  readonly replayMicros: number;
  readonly changedMicros: number;
  /** Of replaying to deciding alone, and to posting. */
  readonly ratio: number;
  readonly postRatio: number;
}

const BATCH = 1000;
const NEVER = Date.parse("2999-01-01T00:00:00Z");
const CHANGED = {
  kubeletConfigurationPatch: { kubeReserved: { cpu: "250m" }, evictionHard: { "memory.available": "1Gi" } },
};

function cpuMicros(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

async function replayMicros(store: Store, change: object): Promise<number> {
  const began = cpuMicros();
  const world = { store, replay: replayer(store, change, { reasons: false }), nowMs: NEVER, sha256 };
  let replayed = 0;
  for (let token: string | null | undefined; token !== null; ) {
    const request = { filter: {}, change, limit: MAX_REPLAYED, ...(token === undefined ? {} : { pageToken: token }) };
    const page = await replayAnswer(world, request);
    if (!page.ok) throw new Error(page.error.message);
    const { counts } = page.value;
    if (counts.gone + counts.refused > 0) throw new Error(`not all could be replayed: ${JSON.stringify(counts)}`);
    replayed += counts.replayed;
    token = page.value.nextPageToken;
  }
  return (cpuMicros() - began) / replayed;
}

/** The core alone: what it needs is read and decoded outside of what is measured. */
async function decideMicros(store: Store): Promise<number> {
  let micros = 0;
  let count = 0;
  let batch: DecisionRow[] = [];
  const decideAll = async (): Promise<void> => {
    const snapshots = new Map<string, Snapshot>();
    const work: (() => unknown)[] = [];
    for (const { kind, explain, ask: text, snapshotId } of batch) {
      const id = snapshotId ?? "";
      const snapshot = snapshots.get(id) ?? (await decodedSnapshot(store, id));
      snapshots.set(id, snapshot);
      const asked = readAsk(kind, text === null ? null : JSON.parse(text));
      if (!asked.ok) throw new Error(asked.error.detail);
      const { ask, facts } = asked.value;
      work.push(() => decideKind(kind, { snapshot, facts: facts ?? {}, ask, explain }));
    }
    const began = cpuMicros();
    for (const decide of work) decide();
    micros += cpuMicros() - began;
    count += work.length;
    batch = [];
  };
  for await (const row of store.streamDecisions({})) {
    if (!row.ok) throw new Error(row.error.message);
    batch.push(row.value);
    if (batch.length === BATCH) await decideAll();
  }
  await decideAll();
  return micros / count;
}

async function decodedSnapshot(store: Store, id: string): Promise<Snapshot> {
  const stored = await store.getSnapshot(id);
  const decoded = stored.ok && stored.value !== null ? decodeSnapshot(JSON.parse(stored.value.body)) : null;
  if (decoded?.ok !== true) throw new Error(`snapshot ${id} cannot be read`);
  return decoded.value;
}

/** A history of `nodes` nodes, four decisions a turn of each, replayed out of its file. Takes some minutes for 100,000 decisions. */
export async function benchReplay(nodes = 100, turns = 250): Promise<ReplayBench> {
  const folder = mkdtempSync(join(tmpdir(), "nodewise-bench-"));
  const store = openNode({ file: join(folder, "history.db") });
  if (!store.ok) throw new Error(store.error.message);
  try {
    const began = cpuMicros();
    const decisions = await postHistory(store.value, nodes, turns);
    const postMicros = (cpuMicros() - began) / decisions;
    const alone = await decideMicros(store.value);
    const same = await replayMicros(store.value, {});
    const changed = await replayMicros(store.value, CHANGED);
    return {
      decisions,
      decideMicros: alone,
      postMicros,
      replayMicros: same,
      changedMicros: changed,
      ratio: same / alone,
      postRatio: same / postMicros,
    };
  } finally {
    await store.value.close();
    rmSync(folder, { recursive: true });
  }
}
