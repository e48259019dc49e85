import { describe, expect, onTestFinished, test } from "vitest";
import { newToken } from "../../api/http/auth/tokens.ts";
import { exampleSnapshot } from "../contract/api-subject.ts";
import { value } from "../contract/store-rows.ts";
import { noPostgres, PostgresServer } from "../kit/postgres.ts";
import { HEADERS as headers, load, openedFor, serve } from "./postgres-process.ts";

const KILLS = 20;

/** A server that syncs to the disk before it acknowledges, with a database. */
async function started(): Promise<PostgresServer> {
  const server = await PostgresServer.start();
  onTestFinished(() => server.dispose());
  await server.database("history");
  return server;
}
const json = async <T>(url: string, body: unknown): Promise<T> => {
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  return (await response.json()) as T;
};

if (noPostgres !== null) test.skip(`API processes over Postgres: ${noPostgres}`, () => {});
else
  describe("API processes over one Postgres", { timeout: 300_000 }, () => {
    test("keep acknowledged decisions when the database is killed, and run on without recording", async () => {
      const server = await started();
      const { url, child } = await serve(server.url("history"));
      const asked = load(url);
      for (let kill = 0; kill < KILLS; kill++) {
        await asked.more(20);
        await server.kill();
        await asked.more(0, 5);
        // tokens are in the history: without the history no caller can be identified
        const unknown = await fetch(`${url}/v1/nodes`, { headers: { authorization: `Bearer ${newToken().text}` } });
        expect([unknown.status, ((await unknown.json()) as { code: string }).code]).toEqual([
          503,
          "history_unavailable",
        ]);
        expect((await fetch(`${url}/readyz`)).status).toBe(503);
        await server.run();
      }
      await asked.more(20);
      expect(child.exitCode).toBeNull();
      await asked.end(await openedFor(server.url("history")));
    });

    test("decide turns of one node in the same way, sent in turn or at once, and lose and miscount none", async () => {
      const server = await started();
      const two = [await serve(server.url("history")), await serve(server.url("history"))];
      interface Answer {
        readonly snapshotId: string;
        readonly decisions: readonly [{ readonly id: string; readonly again?: { readonly times: number } }];
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
        expect(answer.decisions[0].again?.times).toBe(i + 1);
      }
      expect(ids.size).toBe(1);
      const store = await openedFor(server.url("history"));
      const [id] = [...ids] as [string];
      expect(value(await store.getDecision(id))?.series).toMatchObject({ times: TURNS + 1, lastSnapshotId: base });
      // one server records another decision, and the other server, which does not know it yet, continues from there
      const changed = { set: { kubeletConfiguration: { podPidsLimit: 4242 }, sequence: 30 } };
      const other = await turn(0, { base, changes: changed });
      expect(other.decisions[0].id).not.toBe(id);
      const back = await turn(1, { base: other.snapshotId, changes: { set: { sequence: 31 } } });
      expect(back.decisions[0].id).toBe(other.decisions[0].id);
      expect(value(await store.getDecision(back.decisions[0].id))?.series).toMatchObject({ times: 2 });
      // two turns at the same time, from the same base
      const from = back.snapshotId;
      const at = (i: number) => turn(i, { base: from, changes: { set: { sequence: 100 + i } } });
      const answers = await Promise.all(Array.from({ length: TURNS }, (_, i) => at(i)));
      for (const answer of answers) expect(answer.decisions[0].id).toBe(back.decisions[0].id);
      expect(value(await store.getDecision(back.decisions[0].id))?.series).toMatchObject({ times: 2 + TURNS });
      expect(value(await store.tallyOf("n1", 0)).decisions).toBe(TURNS + 1 + 2 + TURNS);
    });

    test("see each other's decisions in the event stream, and have the same metrics of the fleet", async () => {
      const server = await started();
      const [one, other] = [await serve(server.url("history")), await serve(server.url("history"))];
      const gone = new AbortController();
      onTestFinished(() => gone.abort());
      const accept = { ...headers, accept: "text/event-stream" };
      const stream = await fetch(`${other.url}/live`, { headers: accept, signal: gone.signal });
      expect(stream.headers.get("content-type")).toBe("text/event-stream");
      let message = "";
      const reading = (async () => {
        for await (const chunk of stream.body as ReadableStream<Uint8Array>) message += new TextDecoder().decode(chunk);
      })().catch(() => {});
      await expect.poll(() => message).toContain('data: {"id":null');
      const ids: string[] = [];
      for (const node of ["n1", "n2"]) {
        const { id } = await json<{ id: string }>(`${one.url}/v1/decisions/cgroups`, {
          snapshot: exampleSnapshot(node),
        });
        ids.push(id);
        await expect.poll(() => message, { timeout: 5000 }).toContain(`"id":"${id}"`);
      }
      const answered = async (url: string, path: string) => (await fetch(url + path, { headers })).text();
      for (const path of ["/v1/nodes", "/v1/decisions", "/v1/nodes/n1", `/v1/decisions/${ids[0]}`])
        expect(await answered(one.url, path)).toBe(await answered(other.url, path));
      // the page without the texts about the age of something
      const page = async (url: string) =>
        (await answered(url, "/"))
          .replace(/<time[\s\S]*?<\/time>/g, "")
          .replaceAll(url, "")
          .replace(/nonce[^ >]*/g, "");
      expect(await page(one.url)).toContain("n2");
      const rows = (text: string) => text.match(/<tr[\s\S]*?<\/tr>/g);
      expect(rows(await page(one.url))).toEqual(rows(await page(other.url)));
      gone.abort();
      await reading;
    });
  });
