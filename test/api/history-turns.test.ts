import { expect, onTestFinished, test } from "vitest";
import { openHistory } from "../../api/server/history.ts";
import { decisionRow, value } from "../contract/store-rows.ts";
import { dataDirectory } from "./serving.ts";

const WRITES = 300;

test("writes committed together are answered in several event loop turns, so that others run in between", async () => {
  const { store } = value(await openHistory({ dataDir: dataDirectory() }));
  onTestFinished(() => store.close());
  let turns = 0;
  let isOver = false;
  const count = (): unknown => turns++ < 1e9 && !isOver && setImmediate(count);
  count();
  let first = 0;
  const answered = Array.from({ length: WRITES }, async (_, i) => {
    value(await store.record({ decision: decisionRow({ node: `n${i}` }) }));
    if (first === 0) first = turns;
    // the time that it takes to send an answer
    for (const end = performance.now() + 1; performance.now() < end; );
  });
  await Promise.all(answered);
  isOver = true;
  expect(turns - first).toBeGreaterThan(WRITES / 12);
});

test("writes made before the history is closed are answered", async () => {
  const { store } = value(await openHistory({ dataDir: dataDirectory() }));
  const rows = Array.from({ length: WRITES }, (_, i) => store.record({ decision: decisionRow({ node: `n${i}` }) }));
  await store.close();
  for (const row of await Promise.all(rows)) expect(value(row)).toMatchObject({ fresh: true });
});
