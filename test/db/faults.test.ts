import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
import { openNode } from "../../db/sqlite/node/open.ts";
import type { Store } from "../../db/store.ts";
import { decisionRow, noise, T0, value } from "../contract/store-rows.ts";
import { smallDisk, testFolder } from "./folder.ts";

const unavailable = { ok: false, error: { code: "unavailable", message: expect.stringMatching(/^[a-z].*; [a-z]/) } };
const corrupt = { ok: false, error: { code: "corrupt", message: expect.stringMatching(/^[a-z].*; [a-z]/) } };

test("the history's folder and files are readable by their owner only", async () => {
  const folder = join(testFolder(), "data");
  const file = join(folder, "history.db");
  const store = value(openNode({ file }));
  value(await store.record({ decision: decisionRow() }));
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  for (const name of [file, `${file}-wal`, `${file}-shm`]) expect(statSync(name).mode & 0o777).toBe(0o600);
  await store.close();
});

test("an existing database is not opened by hand, and a symlinked new one is created with mode 0600", async () => {
  const folder = testFolder();
  symlinkSync(join(folder, "elsewhere.db"), join(folder, "link.db"));
  await value(openNode({ file: join(folder, "link.db") })).close();
  expect(statSync(join(folder, "elsewhere.db")).mode & 0o777).toBe(0o600);
  const file = join(folder, "history.db");
  const first = value(openNode({ file }));
  const { ino } = statSync(file);
  const locks = () =>
    readFileSync("/proc/locks", "utf8")
      .split("\n")
      .filter((line) => line.includes(`:${ino} `) && line.includes(` ${process.pid} `));
  expect(locks()).not.toEqual([]);
  const second = value(openNode({ file }));
  expect(locks()).not.toEqual([]);
  await second.close();
  expect(locks()).not.toEqual([]);
  await first.close();
});

test("a file that is no database is refused as corrupt, and not changed", () => {
  const file = join(testFolder(), "history.db");
  const text = "this is a text, and a long one\n".repeat(500);
  writeFileSync(file, text);
  expect(openNode({ file })).toMatchObject(corrupt);
  expect(readFileSync(file, "utf8")).toBe(text);
});

test("another program's database is refused as not_migrated, and not changed", () => {
  const file = join(testFolder(), "other.db");
  const other = new Sqlite(file);
  other.exec("CREATE TABLE nodes (graph TEXT); INSERT INTO nodes VALUES ('theirs')");
  expect(openNode({ file })).toMatchObject({ ok: false, error: { code: "not_migrated" } });
  expect(other.prepare("SELECT * FROM nodes").all()).toEqual([{ graph: "theirs" }]);
  other.close();
});

test("a path that cannot hold a database is unavailable", () => {
  const folder = testFolder();
  writeFileSync(join(folder, "plain"), "");
  expect(openNode({ file: join(folder, "plain", "history.db") })).toMatchObject(unavailable);
  mkdirSync(join(folder, "directory"));
  expect(openNode({ file: join(folder, "directory") })).toMatchObject(unavailable);
});

test("overwritten pages give corrupt from reads, lists, streams and writes, never an exception", async () => {
  const file = join(testFolder(), "history.db");
  const first = value(openNode({ file }));
  const rows = Array.from({ length: 400 }, (_, i) => decisionRow({ decidedAtMs: T0 + i, body: noise(2000) }));
  await Promise.all(rows.map((decision) => first.record({ decision })));
  await first.close();
  const fd = openSync(file, "r+");
  // The damage begins after the schema and the roots of the tables and indexes.
  for (let at = 4096 * 80; at < statSync(file).size; at += 4096) writeSync(fd, Buffer.alloc(4096, 0xa5), 0, 4096, at);
  closeSync(fd);
  const store = value(openNode({ file }));
  expect(await store.listDecisions({ limit: 400 })).toMatchObject(corrupt);
  expect(await store.getDecision(rows[200]?.id ?? "")).toMatchObject(corrupt);
  const streamed: unknown[] = [];
  for await (const item of store.streamDecisions({})) streamed.push(item);
  expect(streamed.at(-1)).toMatchObject(corrupt);
  expect(streamed.at(-1)).not.toMatchObject({ error: { isRow: true } });
  expect(await store.ready(T0)).toMatchObject({ ok: true });
  expect(await store.prune({ nowMs: T0 * 2, maxAgeMs: 0 })).toMatchObject(corrupt);
  // the row that ready writes is undamaged
  expect(await store.record({ decision: decisionRow({ id: rows[200]?.id ?? "" }) })).toMatchObject(corrupt);
  expect(await store.ready(T0 + 2000)).toMatchObject(corrupt);
  await store.close();
});

test("a database locked by another process is unavailable for writes, readable, and works again later", async () => {
  const file = join(testFolder(), "history.db");
  const store = value(openNode({ file }));
  const decision = decisionRow();
  value(await store.record({ decision }));
  const other = new Sqlite(file);
  other.exec("BEGIN IMMEDIATE");
  const answers = await Promise.all([
    store.record({ decision: decisionRow() }),
    store.writeFacts("n", { a: 1 }, T0),
    store.ready(T0),
  ]);
  for (const answer of answers) expect(answer).toMatchObject(unavailable);
  expect(value(await store.getDecision(decision.id))).toEqual(decision);
  other.exec("ROLLBACK");
  other.close();
  expect(value(await store.record({ decision: decisionRow() })).fresh).toBe(true);
  await store.close();
});

async function recordUntilFull(store: Store): Promise<{ written: string[]; answer: unknown }> {
  const written: string[] = [];
  for (let i = 0; i < 1000; i++) {
    const decision = decisionRow({ body: noise(30_000) });
    const answer = await store.record({ decision });
    if (!answer.ok) return { written, answer };
    written.push(decision.id);
  }
  return { written, answer: null };
}

test("a full disk is unavailable, keeps acknowledged rows, and works again with free space", async ({ skip }) => {
  const disk = smallDisk();
  if (disk === null) return skip("mounting a small tmpfs needs root");
  const { folder, ballast } = disk;
  const store = value(openNode({ file: join(folder, "history.db") }));
  onTestFinished(() => store.close());
  const { written, answer } = await recordUntilFull(store);
  expect(answer).toMatchObject(unavailable);
  expect(written.length).toBeGreaterThan(3);
  // A check needs less space than a row: some checks may still succeed.
  const checks: unknown[] = [];
  for (let i = 0; i < 50; i++) checks.push(await store.ready(T0 + i * 2000));
  expect(checks.at(-1)).toMatchObject(unavailable);
  for (const id of written) expect(value(await store.getDecision(id))?.id).toBe(id);
  rmSync(ballast);
  expect(value(await store.record({ decision: decisionRow() })).fresh).toBe(true);
  expect(await store.ready(T0)).toMatchObject({ ok: true });
});

test("ready is unavailable after a failed write even if a smaller one would fit, and recovers with free space", async ({
  skip,
}) => {
  const disk = smallDisk();
  if (disk === null) return skip("mounting a small tmpfs needs root");
  const { folder, ballast } = disk;
  const store = value(openNode({ file: join(folder, "history.db") }));
  onTestFinished(() => store.close());
  let atMs = T0;
  const ready = () => {
    atMs += 2000;
    return store.ready(atMs);
  };
  expect(await ready()).toMatchObject({ ok: true });
  expect((await recordUntilFull(store)).answer).toMatchObject(unavailable);
  for (let i = 0; i < 5; i++) {
    expect(await ready()).toMatchObject(unavailable);
    expect(await store.record({ decision: decisionRow({ body: noise(30_000) }) })).toMatchObject(unavailable);
  }
  rmSync(ballast);
  expect(await ready()).toMatchObject({ ok: true });
  expect(await ready()).toMatchObject({ ok: true });
  value(await store.record({ decision: decisionRow({ body: noise(30_000) }) }));
});
