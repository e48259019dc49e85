import { applyD1Migrations, env, listDurableObjectIds, runDurableObjectAlarm } from "cloudflare:test";
import { beforeAll } from "vitest";
import worker from "../../api/worker.ts";
import { openStore } from "../../db/open/worker.ts";
import { apiContract } from "../contract/api.ts";

const bound = { DB: env.DB, NODES: env.OBJECTS };

beforeAll(() => applyD1Migrations(env.DB, env.MIGRATIONS));

/** Has the objects tell the fleet what they would tell it within minutes. */
async function toldFleet(): Promise<void> {
  for (const id of await listDurableObjectIds(env.OBJECTS)) await runDurableObjectAlarm(env.OBJECTS.get(id));
}

apiContract("the API inside workerd, over a Durable Object for each node and D1 for the fleet", async () => ({
  fetch: async (path, init) => {
    if ((init?.method ?? "GET") === "GET" || /^\/v1\/(replay|upgrade)/.test(path)) await toldFleet();
    return worker.fetch(new Request(`https://nodewise.test${path}`, init), bound);
  },
  store: openStore(bound),
  dispose: async () => {},
}));
