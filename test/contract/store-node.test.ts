import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { expect, test } from "vitest";
import { openNode } from "../../db/sqlite/node/open.ts";
import { RAM_DISK } from "../kit/ram-disk.ts";
import { sqliteBackDoor } from "./sqlite-back-door.ts";
import { storeContract } from "./store.ts";
import { decisionRow, T0, value } from "./store-rows.ts";

storeContract("the store over better-sqlite3, in a file", async () => {
  const folder = mkdtempSync(join(RAM_DISK, "nodewise-store-"));
  const file = join(folder, "history.db");
  const store = value(openNode({ file }));
  const backDoor = new Sqlite(file);
  return {
    store,
    another: value(openNode({ file: ":memory:" })),
    backDoor: sqliteBackDoor((sql) => backDoor.exec(sql)),
    dispose: async () => {
      backDoor.close();
      await store.close();
      rmSync(folder, { recursive: true });
    },
  };
});

test("a store in memory records, and answers unavailable once it is closed", async () => {
  const store = value(openNode({ file: ":memory:" }));
  const waiting = store.record({ decision: decisionRow() });
  await store.close();
  expect(value(await waiting).fresh).toBe(true);
  const unavailable = { ok: false, error: { code: "unavailable" } };
  expect(await store.record({ decision: decisionRow() })).toMatchObject(unavailable);
  expect(await store.getDecision("x")).toMatchObject(unavailable);
  expect(await store.ready(T0)).toMatchObject(unavailable);
  await store.close();
});
