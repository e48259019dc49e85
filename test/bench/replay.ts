import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decideKind } from "../../api/decide/kinds/index.ts";
import type { Kind } from "../../api/model/decision.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import type { Snapshot } from "../../api/model/snapshot.ts";
import { sha256 } from "../../api/server/digest.ts";
import { type Ask, readAsk } from "../../api/service/decision-request.ts";
import { evaluator } from "../../api/service/evaluate.ts";
import { knownKind } from "../../api/service/replay/parsed.ts";
import { replayAnswer } from "../../api/service/replay/replay-answer.ts";
import { historyReplayer, LONG_RUN_LENGTH } from "../../api/service/replay/replay-one.ts";
import { MAX_REPLAYED } from "../../api/service/replay/replay-page.ts";
import type { DecisionRow } from "../../db/rows.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import type { Store } from "../../db/store.ts";
import { KINDS_A_TURN, postHistory } from "./replay-history.ts";

/** Microseconds of CPU time per decision. */
export interface ReplayBench {
  readonly nodes: number;
  readonly decisions: number;
  /** The core alone, on decoded snapshots. */
  readonly decideMicros: number;
  /** Posting without the history: the body is read, validated and decided as the API does. */
  readonly evaluateMicros: number;
  /** Posting, including the recording. */
  readonly postMicros: number;
  /** Replaying from a file, once with the recorded configuration and once with another configuration. */
  readonly replayMicros: number;
  readonly changedMicros: number;
  /** The number of decisions that differ under the other configuration. */
  readonly differing: number;
  /**
   * The ratio of the replay's time (with the recorded and with the other configuration) to the time of deciding as the
   * API does. The target is at most 1.
   */
  readonly ratio: number;
  readonly changedRatio: number;
  /** The ratio to the time of the core alone. */
  readonly coreRatio: number;
  readonly changedCoreRatio: number;
  readonly decisionsPerSecond: number;
}

/** `BENCH_DECISIONS=100000` makes the history longer. */
const DECISIONS = Number(process.env["BENCH_DECISIONS"] ?? 20_000);
const NODES = 500;
const BATCH = 1000;
const NEVER = Date.parse("2999-01-01T00:00:00Z");
const CHANGED = {
  kubeletConfigurationPatch: { kubeReserved: { cpu: "250m" }, evictionSoft: { "memory.available": "1Gi" } },
};

function cpuMicros(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** Replays as `nodewise replay` does: page after page to the end. */
async function replayed(
  store: Store,
  change: object,
): Promise<{ readonly micros: number; readonly differing: number }> {
  const began = cpuMicros();
  const world = { store, replay: historyReplayer(store, change, LONG_RUN_LENGTH), nowMs: NEVER, sha256 };
  let count = 0;
  let differing = 0;
  for (let token: string | null | undefined; token !== null; ) {
    const request = { filter: {}, change, limit: MAX_REPLAYED, ...(token === undefined ? {} : { pageToken: token }) };
    const page = await replayAnswer(world, request);
    if (!page.ok) throw new Error(page.error.message);
    const { counts } = page.value;
    if (counts.gone + counts.refused > 0) throw new Error(`not all could be replayed: ${JSON.stringify(counts)}`);
    count += counts.replayed;
    differing += counts.differs;
    token = page.value.nextPageToken;
  }
  return { micros: (cpuMicros() - began) / count, differing };
}

/** A recorded decision with its snapshot's text. */
interface Recorded extends DecisionRow {
  readonly kind: Kind;
  readonly text: string;
}

/** CPU microseconds per decision of the work that `prepare` returns. Reading and preparing are not measured. */
async function microsOf(store: Store, prepare: (row: Recorded) => () => unknown): Promise<number> {
  let micros = 0;
  let count = 0;
  let batch: (() => unknown)[] = [];
  const run = async (): Promise<void> => {
    const began = cpuMicros();
    for (const work of batch) await work();
    micros += cpuMicros() - began;
    count += batch.length;
    batch = [];
  };
  for await (const row of store.streamDecisions({})) {
    if (!row.ok) throw new Error(row.error.message);
    const stored = await store.getSnapshot(row.value.snapshotId ?? "");
    if (!stored.ok || stored.value === null) throw new Error("a snapshot cannot be read");
    const kind = knownKind(row.value);
    if (!kind.ok) throw new Error(kind.error.message);
    batch.push(prepare({ ...row.value, kind: kind.value, text: stored.value.body }));
    if (batch.length === BATCH) await run();
  }
  await run();
  return micros / count;
}

/** The core alone. */
function decideMicros(store: Store): Promise<number> {
  let last: { readonly text: string; readonly snapshot: Snapshot } | undefined;
  return microsOf(store, ({ kind, explain, ask: asked, text }) => {
    if (last?.text !== text) last = { text, snapshot: decoded(text) };
    const { snapshot } = last;
    const { ask, facts } = asking(kind, asked);
    return () => decideKind(kind, { snapshot, facts: facts ?? {}, ask, explain });
  });
}

/** The API without its history, given each recorded input as a client would post it. */
function evaluateMicros(store: Store): Promise<number> {
  const evaluate = evaluator(sha256);
  const recollection = { facts: null, remembers: false };
  const encoder = new TextEncoder();
  return microsOf(store, ({ kind, explain, ask, text }) => {
    const bytes = encoder.encode(`{"explain":"${explain}","ask":${ask},"snapshot":${text}}`);
    return async () => {
      const { state } = await evaluate({ bytes, kind, recollection });
      if (state !== "decided") throw new Error(`${kind}: ${state}`);
    };
  });
}

function decoded(text: string): Snapshot {
  const snapshot = decodeSnapshot(JSON.parse(text));
  if (!snapshot.ok) throw new Error("a snapshot cannot be read");
  return snapshot.value;
}

function asking(kind: Kind, text: string | null): Ask {
  const asked = readAsk(kind, text === null ? null : JSON.parse(text));
  if (!asked.ok) throw new Error(asked.error.detail);
  return asked.value;
}

/**
 * Measures a history of many nodes that post repeatedly, replayed from its file. Takes minutes for 100,000 decisions.
 */
export async function benchReplay(nodes = NODES, most = DECISIONS): Promise<ReplayBench> {
  const folder = mkdtempSync(join(tmpdir(), "nodewise-bench-"));
  const store = openNode({ file: join(folder, "history.db") });
  if (!store.ok) throw new Error(store.error.message);
  try {
    const began = cpuMicros();
    const decisions = await postHistory(store.value, nodes, Math.max(1, Math.round(most / nodes / KINDS_A_TURN)));
    const postMicros = (cpuMicros() - began) / decisions;
    return { nodes, decisions, postMicros, ...(await benchStore(store.value)) };
  } finally {
    await store.value.close();
    rmSync(folder, { recursive: true });
  }
}

/** The figures of an existing history. */
export async function benchStore(store: Store): Promise<Omit<ReplayBench, "nodes" | "decisions" | "postMicros">> {
  const core = await decideMicros(store);
  const evaluated = await evaluateMicros(store);
  const same = await replayed(store, {});
  const changed = await replayed(store, CHANGED);
  return {
    decideMicros: core,
    evaluateMicros: evaluated,
    replayMicros: same.micros,
    changedMicros: changed.micros,
    differing: changed.differing,
    ratio: same.micros / evaluated,
    changedRatio: changed.micros / evaluated,
    coreRatio: same.micros / core,
    changedCoreRatio: changed.micros / core,
    decisionsPerSecond: 1_000_000 / same.micros,
  };
}
