import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { historyFile } from "../../db/open/node.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import { exampleSnapshot } from "../contract/api-subject.ts";
import { value } from "../contract/store-rows.ts";
import { dataDirectory } from "./serving.ts";

const CHILD = fileURLToPath(new URL("child.ts", import.meta.url));

test("a server killed under load has lost no acknowledged decision", {
  timeout: 180_000,
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
      const body = JSON.stringify({ snapshot: exampleSnapshot("n1", { sequence: sequence++ }) });
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

test("the server loses no data when another program opens, changes and closes its database", {
  timeout: 180_000,
}, async () => {
  const dataDir = dataDirectory();
  const file = historyFile(dataDir);
  const child = spawn(process.execPath, [CHILD, dataDir], { stdio: ["ignore", "pipe", "ignore"] });
  const ended = once(child, "exit");
  const [line] = (await Promise.race([once(child.stdout, "data"), ended])) as [Buffer];
  const url = line.toString().trim();
  const post = async (sequence: number): Promise<string> => {
    // each decision is different, and so has its own row
    const kubeletConfiguration = { podPidsLimit: 1000 + sequence };
    const body = JSON.stringify({ snapshot: exampleSnapshot("n1", { sequence, kubeletConfiguration }) });
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}/v1/decisions/cgroups`, { method: "POST", headers, body });
    const { id, recorded } = (await answer.json()) as { id: string; recorded: boolean };
    expect(recorded).toBe(true);
    return id;
  };
  const read = (id: string) => fetch(`${url}/v1/decisions/${id}`).then(({ status }) => status);
  const ids = [await post(0)];
  // a decision thread answers this, which opens the file too
  expect(await read(ids[0] ?? "")).toBe(200);
  const { ino } = statSync(file);
  // without these locks another process may remove the write-ahead log
  const locks = (): readonly string[] =>
    readFileSync("/proc/locks", "utf8")
      .split("\n")
      .filter((lock) => lock.includes(`:${ino} `) && lock.includes(` ${child.pid} `));
  const log = statSync(`${file}-wal`).ino;
  const SQLITE = JSON.stringify(import.meta.resolve("better-sqlite3"));
  const other = `import Sqlite from ${SQLITE}; const file = new Sqlite(${JSON.stringify(file)});
    console.log(file.prepare("SELECT count(*) FROM decisions").pluck().get());
    file.exec("CREATE TABLE IF NOT EXISTS beside (n); INSERT INTO beside VALUES (1)"); file.close();`;
  for (let i = 1; i < 4; i++) {
    const counted = execFileSync(process.execPath, ["--input-type=module", "-e", other], { encoding: "utf8" });
    expect(Number(counted)).toBe(ids.length);
    expect(locks()).not.toEqual([]);
    expect(existsSync(`${file}-wal`) && statSync(`${file}-wal`).ino).toBe(log);
    ids.push(await post(i));
    expect(await read(ids.at(-1) ?? "")).toBe(200);
  }
  child.kill("SIGKILL");
  await ended;
  const store = value(openNode({ file }));
  for (const id of ids) expect(value(await store.getDecision(id)), id).not.toBeNull();
  await store.close();
});
