import { copyFileSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { ok } from "../../api/base/result.ts";
import { KINDS } from "../../api/model/decision.ts";
import { epochMs } from "../../api/model/units.ts";
import { sha256 } from "../../api/server/digest.ts";
import type { Change } from "../../api/service/replay/parsed.ts";
import { type ReplayAnswer, replayAnswer } from "../../api/service/replay/replay-answer.ts";
import { type Compared, historyReplayer, type Replayer, replayer } from "../../api/service/replay/replay-one.ts";
import { ReplayTally } from "../../api/service/replay/tally.ts";
import type { StreamedDecision } from "../../db/rows.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import type { Store } from "../../db/store.ts";
import { appOver, dataDirectory, decisionRequest } from "../api/serving.ts";
import { postHistory } from "../bench/replay-history.ts";
import { decisionRow, value } from "../contract/store-rows.ts";
import { claim, claiming, result } from "../kit/claims.ts";
import { RAM_DISK } from "../kit/ram-disk.ts";
import { captured, realSnapshot } from "../kit/real-node.ts";
import { scratchFolder } from "../kit/scratch.ts";

const NEVER = Date.parse("2999-01-01T00:00:00Z");
const AFTER = Date.parse("2026-11-02T00:00:00Z");

/** Changes that may be requested; none is validated before. */
const CHANGES: Readonly<Record<string, Change>> = {
  nothing: {},
  reserves: {
    kubeletConfigurationPatch: { kubeReserved: { cpu: "250m" }, evictionHard: { "memory.available": "1Gi" } },
  },
  "another configuration": { kubeletConfiguration: { podPidsLimit: 100, maxPods: 12 } },
  "as /configz has it": { kubeletConfigurationPatch: { kubeletconfig: { cpuManagerPolicy: null, maxPods: 30 } } },
  "images that go sooner": {
    kubeletConfigurationPatch: { imageGCHighThresholdPercent: 60, imageGCLowThresholdPercent: 10 },
  },
  "what shows where nodes are unlike": {
    kubeletConfigurationPatch: { enforceNodeAllocatable: ["pods"], localStorageCapacityIsolation: true },
  },
  "what no kubelet starts with": { kubeletConfigurationPatch: { kubeReserved: { memory: "900Gi" } } },
  "what is no configuration": { kubeletConfigurationPatch: { evictionHard: { "memory.available": "lots" } } },
};
/** Cache sizes: one so small that everything is evicted again, and one that is sufficient. */
const LENGTHS = [40_000, 2 ** 24];

const CAPTURED = { node: captured("node.json"), stats: captured("stats-summary.json") };

/**
 * Nodes that post repeatedly, and snapshots of other forms: without times, without a configuration, short, without a
 * node.
 */
async function history(store: Store): Promise<void> {
  await postHistory(store, 2, 12);
  let now = AFTER;
  const { app } = appOver({ store, now: () => epochMs(now++) });
  const { kubeletConfiguration, ...bare } = realSnapshot();
  // two snapshots that differ only in a reservation that has no effect until the replay's change
  const short = (memory: string) => ({
    node: { metadata: { name: "short" }, status: { capacity: { cpu: "2", memory: "1Gi" } } },
    kubeletConfiguration: { enforceNodeAllocatable: [], kubeReserved: { memory } },
    pods: [],
    cgroup: { version: 2 },
  });
  // the same with local storage that is only in the stats, and has no effect until the replay's change
  const stored = (capacityBytes: number) => {
    const { node, stats } = structuredClone(CAPTURED);
    delete node.status.capacity["ephemeral-storage"];
    stats.node.fs.capacityBytes = capacityBytes;
    return { ...bare, kubeletConfiguration: { localStorageCapacityIsolation: false }, node, stats };
  };
  const shapes = [
    { kubeletConfiguration, ...bare },
    bare,
    short("100Mi"),
    short("200Mi"),
    stored(2 ** 36),
    stored(2 ** 37),
    { ...bare, pods: [claiming("p", ["gpu"])], dra: { resourceClaims: [claim("gpu", [result("0")], ["p"])] } },
    { observedAt: "2026-11-02T00:00:00Z", pods: [], kubeletConfiguration: { maxPods: 7 }, cgroup: { version: 2 } },
  ];
  for (const snapshot of shapes)
    for (const explain of ["off", "reasons", "full"])
      for (const kind of ["cgroups", "allocatable", "eviction", "claims"] as const)
        await app.fetch(decisionRequest({ snapshot, explain }, kind));
}

async function rowsOf(store: Store): Promise<StreamedDecision[]> {
  const rows: StreamedDecision[] = [];
  for await (const row of store.streamDecisions({})) rows.push(value(row));
  return rows;
}

/** Replays each decision alone, without a cache. */
const plainly =
  (store: Store, change: Change): Replayer<Compared> =>
  async (row) => {
    const again = await replayer(store, change)(row);
    if (!again.ok) return again;
    const { answer: _, ...compared } = again.value;
    return { ok: true, value: compared };
  };

/** All pages: the number of decisions on a page depends on the machine, since a page ends after a second. */
async function pagesOf(
  store: Store,
  change: Change,
  limit: number,
  replay: () => Replayer<Compared>,
  filter: { readonly node?: string } = {},
) {
  const pages: ReplayAnswer[] = [];
  for (let pageToken: string | null | undefined; pageToken !== null; pageToken = pages.at(-1)?.nextPageToken) {
    const request = { filter, change, limit, ...(pageToken === undefined ? {} : { pageToken }) };
    pages.push(value(await replayAnswer({ store, replay: replay(), nowMs: NEVER, sha256 }, request)));
  }
  return pages;
}

describe("replaying a history gives the same results as replaying each decision by itself", () => {
  const store = value(openNode({ file: ":memory:" }));
  let rows: readonly StreamedDecision[] = [];
  beforeAll(async () => {
    await history(store);
    rows = await rowsOf(store);
    return () => store.close();
  }, 60_000);

  test("on a test history with every kind, explain level and shape of node", () => {
    expect(new Set(rows.map(({ kind }) => kind))).toEqual(new Set(KINDS));
    for (const kind of ["cgroups", "allocatable"])
      expect(rows.filter((row) => row.node === "short" && row.kind === kind).length, kind).toBe(6);
    expect(new Set(rows.map(({ explain }) => explain))).toEqual(new Set(["off", "reasons", "full"]));
  });

  test.each(Object.entries(CHANGES))("with the change %s", async (name, change) => {
    const states = new Set<string>();
    const quick = LENGTHS.map((length) => historyReplayer(store, change, length));
    for (const row of rows) {
      const wanted = value(await plainly(store, change)(row));
      states.add(wanted.state);
      for (const [i, replay] of quick.entries())
        expect(value(await replay(row)), `${name}, ${LENGTHS[i]}: ${row.kind} of ${row.node}`).toMatchObject(wanted);
    }
    if (name === "nothing") expect([...states]).toEqual(["same"]);
    else
      expect(
        [...states].some((state) => state !== "same"),
        [...states].join(),
      ).toBe(true);
  });

  test("without reading a snapshot as a whole, and reading shared parts once", async () => {
    const read: string[] = [];
    const watched = {
      getSnapshot: () => Promise.reject(new Error("a snapshot is read as a whole")),
      getSnapshotPieces: async (id: string) => {
        const found = value(await store.getSnapshotPieces(id));
        if (found === null) throw new Error(`no ${id}`);
        const shared = found.pieces.shared.map((text) => ({
          ...text,
          read: () => {
            read.push(text.id);
            return text.read();
          },
        }));
        return ok({ ...found, pieces: { ...found.pieces, shared } });
      },
    };
    const replay = historyReplayer(watched, CHANGES["reserves"] as Change, 2 ** 24);
    for (const row of rows) value(await replay(row));
    expect(read.length).toBeGreaterThan(6);
    expect(new Set(read).size).toBe(read.length);
  });

  test("page by page with a fresh replayer, as in one go", async () => {
    const change = CHANGES["reserves"] as Change;
    const plain = await pagesOf(store, change, 1000, () => plainly(store, change));
    const pages = await pagesOf(store, change, 20, () => historyReplayer(store, change));
    expect(pages.length).toBeGreaterThan(3);
    expect(pages.flatMap(({ changed }) => changed)).toEqual(plain.flatMap(({ changed }) => changed));
    const [counted, wanted] = [pages, plain].map((all) => {
      const counter = new ReplayTally();
      for (const page of all) counter.add(page);
      return counter.tally();
    });
    expect(counted).toEqual(wanted);
    expect(counted?.counts.replayed).toBe(rows.length);
  });
});

/** The file of a history that is created once. */
const undamaged = join(scratchFolder(RAM_DISK), "history.db");
beforeAll(async () => {
  const store = value(openNode({ file: undamaged }));
  await postHistory(store, 2, 4);
  // a node that does not change, with different requests, so that no two consecutive decisions are the same
  const steady = (await rowsOf(store)).findLast(({ kind }) => kind === "cgroups") as StreamedDecision;
  const { series: _, seq: _seq, ...row } = steady;
  for (let i = 0; i < 3; i++) {
    const other = { id: `steady-${i}`, explain: i % 2 === 0 ? ("off" as const) : ("reasons" as const) };
    value(await store.record({ decision: { ...row, ...other, decidedAtMs: AFTER - 10 + i } }));
  }
  await store.close();
});
/** A copy of the history, and direct access to its database. */
async function damaged(): Promise<{ store: Store; rows: readonly StreamedDecision[]; sql: Sqlite.Database }> {
  const file = join(dataDirectory(), "history.db");
  copyFileSync(undamaged, file);
  const store = value(openNode({ file }));
  const sql = new Sqlite(file);
  onTestFinished(async () => {
    sql.close();
    await store.close();
  });
  return { store, rows: await rowsOf(store), sql };
}

test("changed rows get the same results in a history replay as one by one", async () => {
  const { store, rows, sql } = await damaged();
  const steady = rows.filter(({ kind }) => kind === "cgroups");
  const [other, older, again] = steady.slice(-3) as [StreamedDecision, StreamedDecision, StreamedDecision];
  const write = sql.prepare("UPDATE decisions SET encoding = 'json', parts = NULL, body = ? WHERE id = ?");
  // one that differs between unchanged ones, one of another version, and one with the same content in another order
  write.run(other.body.replace(/"cpuShares":\d+/, '"cpuShares":3'), other.id);
  sql.prepare("UPDATE decisions SET policy_version = 'kubelet-1.36.3+0' WHERE id = ?").run(older.id);
  write.run(JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(again.body)).reverse())), again.id);
  // an ask that this version does not accept
  sql.prepare(`UPDATE decisions SET ask = '{"pod":7}' WHERE kind = 'admission'`).run();
  // one snapshot that was pruned meanwhile, and one that was never stored
  const pruned = rows.find(({ kind }) => kind === "topology");
  sql.prepare("DELETE FROM snapshots WHERE id = ?").run(pruned?.snapshotId);
  value(await store.record({ decision: decisionRow({ node: "bench-0", decidedAtMs: AFTER }) }));
  const met = new Set<string>();
  for (const [name, change] of Object.entries(CHANGES).slice(0, 2)) {
    const quick = historyReplayer(store, change);
    for (const row of await rowsOf(store)) {
      const wanted = value(await plainly(store, change)(row));
      met.add(`${row.kind} ${wanted.state}`);
      expect(value(await quick(row)), row.id).toMatchObject(wanted);
      if (row.id === other.id) expect(JSON.stringify(wanted.differences)).toContain('"recorded":3');
      if (row.id === again.id && name === "nothing") expect(wanted.state).toBe("same");
    }
  }
  for (const one of ["cgroups same", "cgroups differs", "cgroups gone", "admission refused"])
    expect([...met]).toContain(one);
});

const TEXTS = "SELECT json_extract(value, '$[1]') FROM snapshots, json_each(snapshots.parts) WHERE snapshots.id = ?";
/** Damage to a snapshot's row, to one of its texts, or to a decision's. */
const DAMAGE: readonly (readonly [what: string, sql: string, named: "snapshot" | "decision"])[] = [
  [
    "a snapshot cut off",
    `UPDATE snapshots SET encoding = 'json', parts = NULL, body = '{"node":' WHERE id = ?`,
    "snapshot",
  ],
  [
    "a snapshot that is none",
    "UPDATE snapshots SET encoding = 'json', parts = NULL, body = '[7]' WHERE id = ?",
    "snapshot",
  ],
  ["a snapshot that is not packed", "UPDATE snapshots SET encoding = 'gzip', body = x'00' WHERE id = ?", "snapshot"],
  ["a text that is gone", `DELETE FROM texts WHERE id IN (${TEXTS})`, "snapshot"],
  ["a text cut off", `UPDATE texts SET encoding = 'json', body = ',"node":' WHERE id IN (${TEXTS})`, "snapshot"],
  [
    "an answer cut off",
    `UPDATE decisions SET encoding = 'json', parts = NULL, body = '{"decision":' WHERE snapshot_id = ?`,
    "decision",
  ],
  [
    "an answer that is none",
    "UPDATE decisions SET encoding = 'json', parts = NULL, body = '7' WHERE snapshot_id = ?",
    "decision",
  ],
  ["an ask cut off", `UPDATE decisions SET ask = '{"pod":' WHERE snapshot_id = ?`, "decision"],
];
test.each(DAMAGE)("%s makes a decision unreadable by name, without an exception", async (_what, damage, named) => {
  const { store, rows, sql } = await damaged();
  const row = rows.findLast(({ kind }) => kind === "eviction") as StreamedDecision;
  sql.prepare(damage).run(row.snapshotId);
  const broken = value(await store.getDecision(row.id));
  if (broken === null) throw new Error("the decision is gone");
  for (const replay of [historyReplayer(store, {}), replayer(store, {})]) {
    const again = await replay(broken);
    expect(again).toMatchObject({ ok: false, error: { code: "corrupt" } });
    const name = named === "snapshot" ? row.snapshotId : row.id;
    if (!again.ok) expect(again.error.message).toContain(`${named} \`${name}\``);
  }
  const change = {};
  const pages = await pagesOf(store, change, 1000, () => historyReplayer(store, change), { node: row.node });
  const unreadable = pages.flatMap((page) => page.unreadable);
  const sum = (count: keyof ReplayAnswer["counts"]): number =>
    pages.reduce((total, { counts }) => total + counts[count], 0);
  expect(unreadable).toContainEqual({
    id: row.id,
    kind: row.kind,
    node: row.node,
    decidedAt: new Date(row.decidedAtMs).toISOString(),
    unreadable: expect.stringContaining(`\`${named === "snapshot" ? row.snapshotId : row.id}\``),
  });
  expect(sum("unreadable")).toBe(unreadable.length);
  const same = rows.filter(({ node }) => node === row.node).length - unreadable.length;
  expect(["replayed", "same", "differs", "refused", "gone"].map((count) => sum(count as "same"))).toEqual([
    same,
    same,
    0,
    0,
    0,
  ]);
});
