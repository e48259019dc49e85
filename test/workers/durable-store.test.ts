import { env, runInDurableObject } from "cloudflare:test";
import type { Result } from "../../api/base/result.ts";
import { openDurable } from "../../db/sqlite/durable/open.ts";
import type { Store } from "../../db/store.ts";
import { sqliteBackDoor } from "../contract/sqlite-back-door.ts";
import { storeContract } from "../contract/store.ts";

/** The store of an object. Each method runs inside the object, because its database cannot be used from outside. */
function within(stub: Parameters<typeof runInDurableObject>[0]): Store {
  let opened: Store | undefined;
  const run = <T>(work: (store: Store) => T | Promise<T>): Promise<T> =>
    runInDurableObject(stub, (_object, { storage }) => {
      opened ??= openDurable(storage);
      return work(opened);
    });
  const streamed = (name: (typeof STREAMS)[number]) =>
    async function* (...args: readonly unknown[]) {
      yield* await run(async (store) => {
        const read: unknown[] = [];
        const stream = store[name] as (...args: readonly unknown[]) => AsyncIterable<unknown>;
        for await (const one of stream(...args)) read.push(one);
        return read;
      });
    };
  const streams = new Map<string, unknown>(STREAMS.map((name) => [name, streamed(name)]));
  return new Proxy({} as Store, {
    get: (_target, name: keyof Store) =>
      streams.get(name) ??
      ((...args: readonly unknown[]) =>
        run((store) => (store[name] as (...args: readonly unknown[]) => Promise<Result<unknown, unknown>>)(...args))),
  });
}
const STREAMS = ["streamDecisions", "streamLog", "exportRows"] as const satisfies readonly (keyof Store)[];

storeContract("the store in a Durable Object, inside workerd", async () => {
  const stub = env.OBJECTS.get(env.OBJECTS.idFromName("store"));
  return {
    store: within(stub),
    another: within(env.OBJECTS.get(env.OBJECTS.idFromName("another"))),
    backDoor: sqliteBackDoor((sql) => runInDurableObject(stub, (_object, { storage }) => void storage.sql.exec(sql))),
    dispose: async () => {},
  };
});
