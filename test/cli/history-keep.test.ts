import { join } from "node:path";
import { expect, test } from "vitest";
import { historyFile } from "../../db/open/node.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import { serving } from "../api/serving.ts";
import { decisionRow, snapshotRow, value } from "../contract/store-rows.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { run } from "./run.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** A data directory in which the newest decision and its node are `ageMs` old, forty days by default. */
async function oldHistory(ageMs = 40 * DAY_MS): Promise<string> {
  const dataDir = scratchFolder();
  const store = value(openNode({ file: historyFile(dataDir) }));
  const atMs = Date.now() - ageMs;
  const snapshot = snapshotRow({ id: "s", node: "n1", storedAtMs: atMs });
  value(await store.record({ snapshot, decision: decisionRow({ id: "old", node: "n1", decidedAtMs: atMs }) }));
  await store.close();
  return dataDir;
}

test("an API whose clock is forty days ahead removes nothing by age until that is confirmed", async () => {
  const dataDir = await oldHistory();
  const { api, log, store } = await serving({ dataDir, retention: {} });
  const warned = () => log.lines.find(({ message }) => message.startsWith("history not pruned by age"));
  await expect.poll(warned).toMatchObject({
    level: "warn",
    fields: {
      wouldGo: 1,
      of: 1,
      comparedWith: expect.stringMatching(/^\d{4}-.*Z$/),
      confirm: `nodewise history prune --confirm --keep-days 30 --data-dir ${dataDir}`,
    },
  });
  expect(await (await fetch(`${api.url}/metrics`)).text()).toContain('nodewise_history_sweeps_total{outcome="held"} 1');
  expect(value(await store.getDecision("old"))).not.toBeNull();

  const prune = ["history", "prune", "--keep-days", "30", "--data-dir", dataDir];
  const held = await run(prune);
  expect([held.code, held.stdout]).toEqual([
    1,
    "removed: decisions 0, outcomes 0, removals 0, snapshots 0, nodes 0; freed 0 B\n",
  ]);
  expect(held.stderr).toMatch(
    /^nodewise: nothing removed by age: this clock is at .*; 1 of 1 decisions would be removed; correct the clock, or give --confirm if it is right\n$/,
  );
  const confirmed = await run([...prune, "--confirm"]);
  expect([confirmed.code, confirmed.stderr]).toEqual([0, ""]);
  expect(confirmed.stdout).toMatch(
    /^removed: decisions 1, outcomes 0, removals 0, snapshots 1, nodes 1; .*\nremoved, no report for 30 days: n1\n$/,
  );
  expect(value(await store.listNodes())).toEqual([]);
});

test("with a retention of one day a clock half a day ahead requires confirmation too", async () => {
  const dataDir = await oldHistory(20 * HOUR_MS);
  const store = value(openNode({ file: historyFile(dataDir) }));
  value(await store.record({ decision: decisionRow({ id: "older", decidedAtMs: Date.now() - 30 * HOUR_MS }) }));
  await store.close();
  const prune = ["history", "prune", "--keep-days", "1", "--data-dir", dataDir];
  const held = await run(prune);
  expect([held.code, held.stdout]).toEqual([1, expect.stringMatching(/^removed: decisions 0, /)]);
  expect(held.stderr).toMatch(/: this clock is at .*, and is compared with .*; 1 of 2 decisions would be removed; /);
  expect((await run([...prune, "--confirm"])).stdout).toMatch(/^removed: decisions 1, /);
});

test("history compact rewrites the file; missing arguments and a missing history are reported", async () => {
  const dataDir = await oldHistory();
  const compacted = await run(["history", "compact", "--data-dir", dataDir]);
  expect([compacted.code, compacted.stderr]).toEqual([0, ""]);
  expect(compacted.stdout).toMatch(/history\.db: .*iB, now .*iB\n$/);
  const none = await run(["history", "compact", "--data-dir", join(dataDir, "none")]);
  expect(none).toMatchObject({ code: 4, stderr: expect.stringContaining("there is no history at") });
  expect(await run(["history", "prune", "--data-dir", dataDir])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--keep-days"),
  });
});
