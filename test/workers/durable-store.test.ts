import { env, runInDurableObject } from "cloudflare:test";
import type { Result } from "../../api/model/result.ts";
import type { StreamedDecision, StreamFailure } from "../../db/rows.ts";
import { openDurable } from "../../db/sqlite/durable/open.ts";
import type { Store } from "../../db/store.ts";
import { sqliteBackDoor } from "../contract/sqlite-back-door.ts";
import { storeContract } from "../contract/store.ts";

/** The store of an object, each method called within it: its database cannot be used from without. */
function within(stub: Parameters<typeof runInDurableObject>[0]): Store {
  let opened: Store | undefined;
  const run = <T>(work: (store: Store) => T | Promise<T>): Promise<T> =>
    runInDurableObject(stub, (_object, { storage }) => {
      opened ??= openDurable(storage);
      return work(opened);
    });
  async function* streamDecisions(...args: Parameters<Store["streamDecisions"]>) {
    yield* await run(async (store) => {
      const read: Result<StreamedDecision, StreamFailure>[] = [];
      for await (const one of store.streamDecisions(...args)) read.push(one);
      return read;
    });
  }
  return new Proxy({} as Store, {
    get: (_target, name: keyof Store) =>
      name === "streamDecisions"
        ? streamDecisions
        : (...args: readonly unknown[]) =>
            run((store) =>
              (store[name] as (...args: readonly unknown[]) => Promise<Result<unknown, unknown>>)(...args),
            ),
  });
}

storeContract("the store in a Durable Object, inside workerd", async () => {
  const stub = env.OBJECTS.get(env.OBJECTS.idFromName("store"));
  return {
    store: within(stub),
    backDoor: sqliteBackDoor((sql) => runInDurableObject(stub, (_object, { storage }) => void storage.sql.exec(sql))),
    dispose: async () => {},
  };
});
