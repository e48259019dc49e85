import { writeSync } from "node:fs";
import { openNode } from "../../db/sqlite/node/open.ts";
import { imageRemoval, pass } from "../contract/removal-rows.ts";
import { decisionRow, snapshotRow } from "../contract/store-rows.ts";

// The program that crash.process.test.ts kills: it writes records without end to the file argv[2], and prints each id
// (prefix argv[3]) once it is acknowledged.
const [, , file = "", prefix = ""] = process.argv;
const opened = openNode({ file });
if (!opened.ok) throw new Error(opened.error.message);
const store = opened.value;

let next = 0;
async function lane(): Promise<void> {
  while (true) {
    const n = next++;
    const id = `${prefix}-${n}`;
    const node = `node-${n % 5}`;
    const snapshot = snapshotRow({ id: `snapshot-of-${id}`, node, sequence: n });
    const decision = decisionRow({ id, node, snapshotId: snapshot.id, decidedAtMs: n });
    const removals = pass(n, [imageRemoval(id)]);
    const recorded = await store.record({ snapshot, decision, facts: { [id]: n }, removals });
    if (!recorded.ok) throw new Error(recorded.error.message);
    writeSync(1, `${id}\n`);
  }
}
await Promise.all(Array.from({ length: 32 }, lane));
