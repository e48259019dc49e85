import { applyD1Migrations, env, runDurableObjectAlarm } from "cloudflare:test";
import { beforeAll } from "vitest";
import worker from "../../api/worker.ts";
import { openStore } from "../../db/open/worker.ts";
import { apiContract } from "../contract/api.ts";

/** The Durable Objects that were requested since the last `rolledUpFleet`. */
const asked = new Map<string, ReturnType<typeof env.OBJECTS.get>>();
const NODES = new Proxy(env.OBJECTS, {
  get: (target, name) => {
    if (name !== "get") return Reflect.get(target, name).bind(target);
    return (id: Parameters<typeof target.get>[0]) => {
      const stub = target.get(id);
      asked.set(id.toString(), stub);
      return stub;
    };
  },
});
const bound = { DB: env.DB, NODES };

/** Makes the objects send to the fleet what they would send within minutes. */
async function rolledUpFleet(): Promise<void> {
  const stubs = [...asked.values()];
  asked.clear();
  await Promise.all(stubs.map(runDurableObjectAlarm));
}

beforeAll(() => applyD1Migrations(env.DB, env.MIGRATIONS));

apiContract("the API inside workerd, over a Durable Object for each node and D1 for the fleet", async () => ({
  fetch: async (path, init) => {
    const isDeciding =
      init?.method === "POST" && /^\/v1\/(?:decisions\/[a-z]|batch|results|nodes\/.*\/turns)/.test(path);
    if (!isDeciding) await rolledUpFleet();
    return worker.fetch(new Request(`https://nodewise.test${path}`, init), bound);
  },
  store: openStore(bound),
  dispose: async () => {},
}));
