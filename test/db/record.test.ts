import { expect, test } from "vitest";
import { decisionRow, snapshotRow, value } from "../contract/store-rows.ts";
import { listeningStore } from "./listening.ts";

const large = JSON.stringify("x".repeat(100_000));

test("a large snapshot that is already stored is neither compressed nor written again", async () => {
  const { store, log } = listeningStore();
  const snapshot = snapshotRow({ body: large });
  value(await store.record({ snapshot, decision: decisionRow() }));
  log.length = 0;
  value(await store.record({ snapshot, decision: decisionRow() }));
  expect(log.filter((sql) => sql.startsWith('INSERT INTO "snapshots"'))).toEqual([]);
});

test("a large snapshot that prune removes between the lookup and the write is stored nevertheless", async () => {
  const removals: (() => void)[] = [];
  const { store, client } = listeningStore((driver) => ({
    ...driver,
    atomic: (statements, alone) => {
      removals.pop()?.();
      return driver.atomic(statements, alone);
    },
  }));
  const snapshot = snapshotRow({ body: large });
  value(await store.putSnapshot(snapshot));
  removals.push(() => client.exec("DELETE FROM snapshots"));
  const decision = decisionRow({ snapshotId: snapshot.id });
  expect(value(await store.record({ snapshot, decision })).fresh).toBe(true);
  expect(value(await store.getSnapshot(snapshot.id))).toEqual(snapshot);
});
