import { spawn } from "node:child_process";
import { copyFileSync, existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import Sqlite from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
import { historyFile } from "../../db/open/node.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import type { Store } from "../../db/store.ts";
import { dataDirectory, serving } from "../api/serving.ts";
import { decisionRow, snapshotRow, value } from "../contract/store-rows.ts";
import { run } from "./run.ts";

const record = async (store: Store, id: string): Promise<void> => {
  const snapshot = snapshotRow({ id: `s-${id}`, node: "n1", storedAtMs: Date.now() });
  value(await store.record({ snapshot, decision: decisionRow({ id, node: "n1", snapshotId: snapshot.id }) }));
};
async function idsIn(file: string): Promise<readonly string[]> {
  const store = value(openNode({ file }));
  const { items } = value(await store.listDecisions({ limit: 100_000 }));
  await store.close();
  return items.map(({ id }) => id);
}

test("a backup of a running API contains every acknowledged row, and restores to the same history", async () => {
  const { api, dataDir, store } = await serving();
  for (let i = 0; i < 50; i++) await record(store, `d${i}`);
  const to = join(dataDir, "copy.db");
  const writes = Promise.all(Array.from({ length: 200 }, (_, i) => record(store, `later${i}`)));
  const backup = await run(["history", "backup", to, "--data-dir", dataDir]);
  expect([backup.code, backup.stderr]).toEqual([0, ""]);
  expect(backup.stdout).toMatch(/copy\.db: .* KiB, checked\n$/);
  await writes;
  expect(statSync(to).mode & 0o777).toBe(0o600);
  const copied = await idsIn(to);
  for (let i = 0; i < 50; i++) expect(copied).toContain(`d${i}`);

  const inUse = await run(["history", "restore", to, "--data-dir", dataDir, "--replace"]);
  expect([inUse.code, inUse.stderr]).toEqual([
    4,
    `nodewise: ${historyFile(dataDir)} is in use by another process: stop the API first\n`,
  ]);
  expect(await (await fetch(`${api.url}/v1/decisions/d0`)).json()).toMatchObject({ id: "d0" });

  const elsewhere = join(dataDirectory(), "new", "folder");
  const restored = await run(["history", "restore", to, "--data-dir", elsewhere]);
  expect([restored.code, restored.stderr]).toEqual([0, ""]);
  expect(statSync(elsewhere).mode & 0o777).toBe(0o700);
  expect(await idsIn(historyFile(elsewhere))).toEqual(copied);
});

test("a restore requires confirmation, and keeps the former history", async () => {
  const [dataDir, other] = [dataDirectory(), dataDirectory()];
  for (const [dir, id] of [
    [dataDir, "old"],
    [other, "new"],
  ] as const) {
    const store = value(openNode({ file: historyFile(dir) }));
    await record(store, id);
    await store.close();
  }
  const from = join(other, "copy.db");
  expect((await run(["history", "backup", from, "--data-dir", other])).code).toBe(0);
  const args = ["history", "restore", from, "--data-dir", dataDir];
  expect(await run(args)).toMatchObject({
    code: 4,
    stderr: expect.stringMatching(/is there already: .* --replace\n$/),
  });
  expect(await idsIn(historyFile(dataDir))).toEqual(["old"]);
  const replaced = await run([...args, "--replace"]);
  expect([replaced.code, replaced.stderr]).toEqual([0, ""]);
  expect(await idsIn(historyFile(dataDir))).toEqual(["new"]);
  const kept = readdirSync(dataDir).filter((name) => /^history\.db\.replaced-[\dTZ-]+$/.test(name));
  expect(await idsIn(join(dataDir, kept[0] ?? ""))).toEqual(["old"]);
});

test("a file that is no backup is refused by name, and the history stays", async () => {
  const dataDir = dataDirectory();
  const store = value(openNode({ file: historyFile(dataDir) }));
  for (let i = 0; i < 200; i++) await record(store, `d${i}`);
  await store.close();
  const file = (name: string) => join(dataDir, name);
  const restore = async (from: string) => {
    const { code, stderr } = await run(["history", "restore", from, "--data-dir", dataDir, "--replace"]);
    expect(code).not.toBe(0);
    return stderr;
  };
  expect(await restore(file("none.db"))).toMatch("there is no such file");
  writeFileSync(file("text.db"), "not a database, only a text that is long enough to be looked at".repeat(20));
  expect(await restore(file("text.db"))).toMatch(/text\.db: .*(?:not a database|NOTADB)/i);
  new Sqlite(file("foreign.db")).exec("CREATE TABLE decisions (x)").close();
  expect(await restore(file("foreign.db"))).toMatch("foreign.db is no history of Nodewise");
  expect((await run(["history", "backup", file("newer.db"), "--data-dir", dataDir])).code).toBe(0);
  copyFileSync(file("newer.db"), file("cut.db"));
  const cut = Buffer.alloc(3 * 4096, 7);
  const { size } = statSync(file("cut.db"));
  const handle = await open(file("cut.db"), "r+");
  await handle.write(cut, 0, cut.length, Math.floor(size / 2 / 4096) * 4096);
  await handle.close();
  expect(await restore(file("cut.db"))).toMatch(/cut\.db is damaged: /);
  new Sqlite(file("newer.db")).exec("INSERT INTO d1_migrations (name) VALUES ('9999_of_tomorrow.sql')").close();
  expect(await restore(file("newer.db"))).toMatch(/newer\.db` is of a newer version/);
  expect(await run(["history", "restore", historyFile(dataDir), "--data-dir", dataDir])).toMatchObject({ code: 2 });
  expect(await run(["history", "backup", file("text.db"), "--data-dir", dataDir])).toMatchObject({
    code: 4,
    stderr: expect.stringMatching("is there already"),
  });
  expect(await idsIn(historyFile(dataDir))).toHaveLength(200);
  expect(readdirSync(dataDir).filter((name) => name.includes(".part"))).toEqual([]);
});

test("a restore killed at any moment leaves either history complete", async () => {
  const [dataDir, other] = [dataDirectory(), dataDirectory()];
  const fill = async (dir: string, prefix: string) => {
    const store = value(openNode({ file: historyFile(dir) }));
    await Promise.all(Array.from({ length: 500 }, (_, i) => record(store, `${prefix}${i}`)));
    await store.close();
  };
  await fill(dataDir, "old");
  await fill(other, "new");
  const from = join(other, "copy.db");
  expect((await run(["history", "backup", from, "--data-dir", other])).code).toBe(0);
  const seen = new Set<string>();
  for (let ms = 0; ms < 40 && seen.size < 2; ms++) {
    const script = `import { restoreFile } from "${new URL("../../db/sqlite/node/backup.ts", import.meta.url)}";
      process.stdout.write("go"); await restoreFile(${JSON.stringify(from)}, ${JSON.stringify(historyFile(dataDir))}, ${JSON.stringify(join(dataDir, `kept${ms}`))});`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    await new Promise((resolve) => child.stdout.once("data", resolve));
    await delay(ms * 12);
    child.kill("SIGKILL");
    await new Promise((resolve) => child.once("close", resolve));
    expect(existsSync(historyFile(dataDir))).toBe(true);
    const ids = await idsIn(historyFile(dataDir));
    expect(ids).toHaveLength(500);
    const prefixes = new Set(ids.map((id) => id.slice(0, 3)));
    expect(prefixes.size).toBe(1);
    for (const prefix of prefixes) seen.add(prefix);
  }
  // the kills happened both before and after the new backup replaced the old one
  expect(seen).toEqual(new Set(["old", "new"]));
}, 120_000);
