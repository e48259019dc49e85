import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { historyFile } from "../../api/server.ts";
import { openNode } from "../../db/open-node.ts";
import { snapshotOf } from "../contract/api-subject.ts";
import { value } from "../contract/store-rows.ts";
import { dataDirectory } from "./serving.ts";

const CHILD = fileURLToPath(new URL("child.ts", import.meta.url));

test("a server that is killed in the middle of its work has lost nothing that it acknowledged", {
  timeout: 60_000,
}, async () => {
  const dataDir = dataDirectory();
  const child = spawn(process.execPath, [CHILD, dataDir], { stdio: ["ignore", "pipe", "ignore"] });
  const ended = once(child, "exit");
  const [line] = (await Promise.race([once(child.stdout, "data"), ended])) as [Buffer];
  const url = line.toString().trim();
  const acknowledged: string[] = [];
  let sequence = 0;
  let going = true;
  const lane = async (): Promise<void> => {
    while (going) {
      const body = JSON.stringify({ snapshot: snapshotOf("n1", { sequence: sequence++ }) });
      const headers = { "content-type": "application/json" };
      const answer = await fetch(`${url}/v1/decisions/cgroups`, { method: "POST", headers, body })
        .then((response) => response.json() as Promise<{ id: string; recorded: boolean }>)
        .catch(() => null);
      if (answer === null) return;
      if (answer.recorded) acknowledged.push(answer.id);
    }
  };
  const lanes = Array.from({ length: 8 }, lane);
  while (acknowledged.length < 100) await sleep(5);
  child.kill("SIGKILL");
  going = false;
  await Promise.all([ended, ...lanes]);

  const store = value(openNode({ file: historyFile(dataDir) }));
  for (const id of acknowledged) {
    const row = value(await store.getDecision(id));
    expect(row, id).not.toBeNull();
    expect(value(await store.getSnapshot(row?.snapshotId ?? "")), id).not.toBeNull();
  }
  expect(value(await store.ready(Date.now())).migration).toMatch(/\.sql$/);
  await store.close();
});
