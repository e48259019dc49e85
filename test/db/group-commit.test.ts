import Sqlite from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
import { groupCommit } from "../../db/sqlite/node/open.ts";

function subject() {
  const log: string[] = [];
  const client = new Sqlite(":memory:", { verbose: (sql) => log.push(String(sql)) });
  onTestFinished(() => {
    client.close();
  });
  client.exec("CREATE TABLE t (x INTEGER PRIMARY KEY, y TEXT NOT NULL)");
  const { atomic } = groupCommit(client);
  const rows = () => client.prepare("SELECT x FROM t ORDER BY x").pluck().all();
  const commits = () => log.filter((sql) => sql === "COMMIT").length;
  return { atomic, rows, commits };
}
const put = (x: number, y: string | null = "y") => ({ sql: "INSERT INTO t VALUES (?, ?) RETURNING x", params: [x, y] });

test("writes of one event loop turn share a transaction, and those of the next have another", async () => {
  const { atomic, rows, commits } = subject();
  await Promise.all(Array.from({ length: 64 }, (_, i) => atomic([put(i)])));
  expect(commits()).toBe(1);
  expect(await atomic([put(100), put(101)])).toEqual([
    { changes: 1, rows: [{ x: 100 }] },
    { changes: 1, rows: [{ x: 101 }] },
  ]);
  expect(commits()).toBe(2);
  expect(rows()).toHaveLength(66);
});

test("writes beyond the size of a transaction are committed in further ones", async () => {
  const { atomic, rows, commits } = subject();
  await Promise.all(Array.from({ length: 1200 }, (_, i) => atomic([put(i)])));
  expect(rows()).toHaveLength(1200);
  expect(commits()).toBe(3);
});

test("a failing write is undone completely and alone, and its neighbours are committed", async () => {
  const { atomic, rows } = subject();
  const settled = await Promise.allSettled([atomic([put(1)]), atomic([put(2), put(3, null)]), atomic([put(4)])]);
  expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(rows()).toEqual([1, 4]);
});
