import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DecisionRow } from "../../db/rows.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import type { Store } from "../../db/store.ts";

export interface HistoryBench {
  readonly rows: number;
  readonly concurrency: number;
  /**
   * Decisions of about 300 bytes, written to a file (WAL, synchronous = FULL) and acknowledged one by one. Their ids
   * are in the order of time.
   */
  readonly rowsPerSecond: number;
  /** The same with hashes as ids: inserts then reach all parts of the index. */
  readonly hashedRowsPerSecond: number;
  /** Reads of the same history: the facts of one node, a decision by its id, and a page of 50 decisions. */
  readonly readFactsPerSecond: number;
  readonly getDecisionPerSecond: number;
  readonly listPerSecond: number;
}

const NODES = 50;
const BODY = JSON.stringify({
  decision: { admit: true },
  reasons: [{ code: "fits", at: "cpu", left: 250 }],
  next: "x".repeat(230),
});

const hash = (n: number): string => createHash("sha256").update(String(n)).digest("hex").slice(0, 32);
const ordered = (n: number): string => `${(1_790_000_000_000 + n).toString(36)}-${hash(n).slice(0, 16)}`;

const decision = (n: number, id: string): DecisionRow => ({
  id,
  kind: "cgroups",
  node: `node-${n % NODES}`,
  snapshotId: hash(n % 500),
  policyVersion: "bench",
  reason: null,
  verdict: "planned",
  explain: "reasons",
  decidedAtMs: 1_790_000_000_000 + n,
  pod: null,
  ask: null,
  body: BODY,
});

async function perSecond(
  count: number,
  concurrency: number,
  work: (n: number) => Promise<{ readonly ok: boolean }>,
): Promise<number> {
  let next = 0;
  const start = performance.now();
  const lane = async (): Promise<void> => {
    while (next < count) {
      const done = await work(next++);
      if (!done.ok) throw new Error(`the history failed: ${JSON.stringify(done)}`);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, lane));
  return Math.round((count / (performance.now() - start)) * 1000);
}

async function inFolder<T>(work: (store: Store) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "nodewise-bench-"));
  try {
    const store = openNode({ file: join(folder, "history.db") });
    if (!store.ok) throw new Error(store.error.message);
    try {
      return await work(store.value);
    } finally {
      await store.value.close();
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Measures rows per second written to a history in a file, and reads from it. Takes about five seconds. */
export async function benchHistory(rows = 60_000, concurrency = 64): Promise<HistoryBench> {
  const hashedRowsPerSecond = await inFolder((store) =>
    perSecond(rows, concurrency, (n) => store.record({ decision: decision(n, hash(n)) })),
  );
  return inFolder(async (store) => {
    const rowsPerSecond = await perSecond(rows, concurrency, (n) =>
      store.record({ decision: decision(n, ordered(n)) }),
    );
    await store.writeFacts("node-1", { "eviction.observed": { "memory.available": 1 }, cpus: "0-3" }, 1);
    const reads = Math.min(rows, 5000);
    return {
      rows,
      concurrency,
      rowsPerSecond,
      hashedRowsPerSecond,
      readFactsPerSecond: await perSecond(reads, 1, () => store.readFacts("node-1")),
      getDecisionPerSecond: await perSecond(reads, 1, (n) => store.getDecision(ordered(n))),
      listPerSecond: await perSecond(reads / 10, 1, (n) =>
        store.listDecisions({ node: `node-${n % NODES}`, kind: "cgroups", limit: 50 }),
      ),
    };
  });
}
