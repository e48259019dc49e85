import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { historyFile } from "../../db/open/node.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import { LAUNCHER } from "../cli/run.ts";
import { exampleSnapshot } from "../contract/api-subject.ts";
import { value } from "../contract/store-rows.ts";
import { dataDirectory } from "./serving.ts";

test("a server that is stopped writes a node's unwritten turns first, without open connections", {
  timeout: 180_000,
}, async () => {
  const dataDir = dataDirectory();
  const args = [LAUNCHER, "api", "--port", "0", "--data-dir", dataDir];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"] });
  const ended = once(child, "exit");
  const [line] = (await Promise.race([once(child.stdout, "data"), ended])) as [Buffer];
  const url = line.toString().split("\n")[0];
  let base: string | null = null;
  let id = "";
  for (const sequence of [1, 2, 3]) {
    const snapshot = exampleSnapshot("n1", { sequence });
    const request = base === null ? { snapshot } : { base, changes: { set: { sequence } } };
    const headers = { "content-type": "application/json", connection: "close" };
    const body = JSON.stringify({ ...request, decisions: [{ kind: "cgroups" }] });
    const response = await fetch(`${url}/v1/nodes/n1/turns`, { method: "POST", headers, body });
    const answer = (await response.json()) as { snapshotId: string; decisions: [{ id: string }] };
    base = answer.snapshotId;
    id = answer.decisions[0].id;
  }
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
  const store = value(openNode({ file: historyFile(dataDir) }));
  expect(value(await store.getDecision(id))?.series).toMatchObject({ times: 3, lastSnapshotId: base });
  await store.close();
});
