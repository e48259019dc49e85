import { type ChildProcess, spawn } from "node:child_process";
import { hash } from "node:crypto";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { newToken } from "../../api/http/auth/token.ts";
import { openPostgres } from "../../db/postgres/open.ts";
import type { Store } from "../../db/store.ts";
import { exampleSnapshot } from "../contract/api-subject.ts";
import { value } from "../contract/store-rows.ts";
import { noPostgres, PASSWORD, PostgresServer } from "../kit/postgres.ts";

const CLI = fileURLToPath(new URL("../../api/cli/nodewise.js", import.meta.url));
const KILLS = 5;

interface Process {
  readonly url: string;
  readonly child: ChildProcess;
}
/** `nodewise api` over the database, in a process of its own that ends with the test. */
async function serve(server: PostgresServer, name: string): Promise<Process> {
  const args = [CLI, "api", "--port", "0", "--database", server.url(name)];
  const env = { ...process.env, PGPASSWORD: PASSWORD, NODEWISE_TOKEN_SHA256: hash("sha256", TOKEN, "hex") };
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"], env });
  const ended = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGTERM");
    await ended;
  });
  const [line] = (await Promise.race([once(child.stdout as NodeJS.ReadableStream, "data"), ended])) as [Buffer];
  return { url: line.toString().trim().split("\n")[0] ?? "", child };
}
/** A server that writes to the disk before it acknowledges, with a database. */
async function started(): Promise<PostgresServer> {
  const server = await PostgresServer.start();
  onTestFinished(() => server.dispose());
  await server.database("history");
  return server;
}
const openedFor = async (server: PostgresServer): Promise<Store> => {
  const store = value(await openPostgres({ url: server.url("history"), password: PASSWORD }));
  onTestFinished(() => store.close());
  return store;
};

/** A token that the API knows without its history. */
const TOKEN = newToken().text;
const headers = { "content-type": "application/json", authorization: `Bearer ${TOKEN}`, connection: "close" };
const json = async <T>(url: string, body: unknown): Promise<T> => {
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  return (await response.json()) as T;
};

if (noPostgres !== null) test.skip(`API processes over Postgres: ${noPostgres}`, () => {});
else
  describe("API processes over Postgres", { timeout: 300_000 }, () => {
    test("a database that is killed again and again keeps what was acknowledged; without it answers are not recorded, and no process starts anew", async () => {
      const server = await started();
      const { url, child } = await serve(server, "history");
      const acknowledged: string[] = [];
      let unrecorded = 0;
      const statuses = new Set<number>();
      let sequence = 0;
      let going = true;
      const lane = async (n: number): Promise<void> => {
        while (going) {
          // a decision of its own each time
          const kubeletConfiguration = { podPidsLimit: 1000 + sequence };
          const snapshot = exampleSnapshot(`n${n}`, { sequence: sequence++, kubeletConfiguration });
          const body = JSON.stringify({ snapshot });
          const response = await fetch(`${url}/v1/decisions/cgroups`, { method: "POST", headers, body });
          statuses.add(response.status);
          const answer = (await response.json()) as { id: string; recorded: boolean; notRecorded?: string };
          if (answer.recorded) acknowledged.push(answer.id);
          else {
            expect(answer.notRecorded).toBe("history-failed");
            unrecorded++;
          }
        }
      };
      const lanes = Array.from({ length: 8 }, (_, n) => lane(n));
      for (let kill = 0; kill < KILLS; kill++) {
        const [before, failed] = [acknowledged.length, unrecorded];
        await expect.poll(() => acknowledged.length).toBeGreaterThan(before + 40);
        await server.kill();
        await expect.poll(() => unrecorded).toBeGreaterThan(failed + 5);
        // who has a token of the history cannot be known without it
        const unknown = await fetch(`${url}/v1/nodes`, { headers: { authorization: `Bearer ${newToken().text}` } });
        expect([unknown.status, ((await unknown.json()) as { code: string }).code]).toEqual([
          503,
          "history_unavailable",
        ]);
        expect((await fetch(`${url}/readyz`)).status).toBe(503);
        await server.run();
      }
      const before = acknowledged.length;
      await expect.poll(() => acknowledged.length).toBeGreaterThan(before + 40);
      going = false;
      await Promise.all(lanes);
      expect([...statuses]).toEqual([200]);
      expect(child.exitCode).toBeNull();
      const store = await openedFor(server);
      for (const id of acknowledged) {
        const row = value(await store.getDecision(id));
        expect(row, id).not.toBeNull();
        expect(value(await store.getSnapshot(row?.snapshotId ?? "")), id).not.toBeNull();
      }
      expect((await fetch(`${url}/readyz`)).status).toBe(200);
    });

    test("two processes that get turns of one node, in turn and at once, decide the same, and lose and miscount nothing", async () => {
      const server = await started();
      const two = [await serve(server, "history"), await serve(server, "history")];
      interface Answer {
        readonly snapshotId: string;
        readonly decisions: readonly [{ readonly id: string; readonly recorded?: boolean }];
      }
      const turn = (to: number, request: object): Promise<Answer> =>
        json(`${two[to % 2]?.url}/v1/nodes/n1/turns`, { ...request, decisions: [{ kind: "cgroups" }] });
      let base = (await turn(0, { snapshot: exampleSnapshot("n1", { sequence: 0 }) })).snapshotId;
      const ids = new Set<string>();
      const TURNS = 20;
      for (let i = 1; i <= TURNS; i++) {
        const answer = await turn(i, { base, changes: { set: { sequence: i } } });
        base = answer.snapshotId;
        ids.add(answer.decisions[0].id);
      }
      expect(ids.size).toBe(1);
      const store = await openedFor(server);
      const [id] = [...ids] as [string];
      expect(value(await store.getDecision(id))?.series).toMatchObject({ times: TURNS + 1, lastSnapshotId: base });
      // another decision by one of them, and on from there by the other, which knows nothing of it yet
      const changed = { set: { kubeletConfiguration: { podPidsLimit: 4242 }, sequence: 30 } };
      const other = await turn(0, { base, changes: changed });
      expect(other.decisions[0].id).not.toBe(id);
      const back = await turn(1, { base: other.snapshotId, changes: { set: { sequence: 31 } } });
      expect(back.decisions[0].id).toBe(other.decisions[0].id);
      expect(value(await store.getDecision(back.decisions[0].id))?.series).toMatchObject({ times: 2 });
      // both at once, each from the same base
      const from = back.snapshotId;
      const at = (i: number) => turn(i, { base: from, changes: { set: { sequence: 100 + i } } });
      const answers = await Promise.all(Array.from({ length: TURNS }, (_, i) => at(i)));
      for (const answer of answers) expect(answer.decisions[0].id).toBe(back.decisions[0].id);
      expect(value(await store.getDecision(back.decisions[0].id))?.series).toMatchObject({ times: 2 + TURNS });
      expect(value(await store.tallyOf("n1", 0)).decisions).toBe(TURNS + 1 + 2 + TURNS);
    });
  });
