import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { openNode } from "../../db/sqlite/node/open.ts";
import type { Store } from "../../db/store.ts";
import { value } from "../contract/store-rows.ts";
import { testFolder } from "./folder.ts";

const writer = fileURLToPath(new URL("writer.ts", import.meta.url));

/**
 * Runs the writer until it has acknowledged `enough` rows, kills it during its work, and returns the acknowledged ids.
 */
async function acknowledgedBeforeKill(file: string, prefix: string, enough: number): Promise<string[]> {
  const child = spawn(process.execPath, [writer, file, prefix], { stdio: ["ignore", "pipe", "inherit"] });
  // not its exit event: some of its output may arrive later
  const exited = once(child, "close");
  let text = "";
  let lines = 0;
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
    lines += chunk.split("\n").length - 1;
    if (lines >= enough) child.kill("SIGKILL");
  });
  const [code, signal] = await exited;
  expect({ code, signal }).toEqual({ code: null, signal: "SIGKILL" });
  return text.split("\n").slice(0, -1);
}

/** The ids of all removals, each of which is the id of its decision. */
async function removedIn(store: Store): Promise<Set<string>> {
  const ids = new Set<string>();
  for (let n = 0; n < 5; n++) {
    for (let pageToken: string | null | undefined; pageToken !== null; ) {
      const query = { node: `node-${n}`, limit: 500, ...(pageToken === undefined ? {} : { pageToken }) };
      const page = value(await store.listRemovals(query));
      for (const { id, decisionId } of page.items) if (id === decisionId) ids.add(id);
      pageToken = page.nextPageToken;
    }
  }
  return ids;
}

test("every acknowledged row survives kill -9, and no row is incomplete", { timeout: 180_000 }, async () => {
  const file = join(testFolder(), "history.db");
  const acknowledged: string[] = [];
  for (const [round, enough] of [1500, 333, 2718].entries()) {
    const ids = await acknowledgedBeforeKill(file, `round-${round}`, enough);
    expect(ids.length).toBeGreaterThanOrEqual(enough);
    acknowledged.push(...ids);
  }

  const store = value(openNode({ file }));
  const facts = new Set<string>();
  for (let n = 0; n < 5; n++) for (const key of Object.keys(value(await store.readFacts(`node-${n}`)))) facts.add(key);
  const found = new Set<string>();
  for await (const item of store.streamDecisions({})) {
    const { id, snapshotId } = value(item);
    found.add(id);
    expect(value(await store.getSnapshot(snapshotId ?? ""))?.id).toBe(`snapshot-of-${id}`);
  }
  expect(acknowledged.filter((id) => !found.has(id))).toEqual([]);
  expect(facts).toEqual(found);
  expect(await removedIn(store)).toEqual(found);
  await store.close();
});
