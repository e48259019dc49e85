import { test } from "vitest";
import { openPostgres } from "../../db/postgres/open.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import { FAST, noPostgres, PASSWORD, PostgresServer } from "../kit/postgres.ts";
import { postgresBackDoor } from "./postgres-back-door.ts";
import { storeContract } from "./store.ts";
import { T0, value } from "./store-rows.ts";

const DAY_MS = 24 * 3600 * 1000;

if (noPostgres !== null) test.skip(`the store over Postgres: ${noPostgres}`, () => {});
else
  storeContract("the store over Postgres", async () => {
    const server = await PostgresServer.start(FAST);
    const url = await server.database("history");
    // with this time, no test's rows are on a day that has a partition
    const store = value(await openPostgres({ url, password: PASSWORD }, { nowMs: T0 + 4000 * DAY_MS }));
    const backDoor = server.client("history");
    await backDoor.connect();
    await backDoor.query("SET search_path = nodewise");
    return {
      store,
      another: value(openNode({ file: ":memory:" })),
      backDoor: postgresBackDoor((sql) => backDoor.query(sql)),
      dispose: async () => {
        await backDoor.end();
        await store.close();
        await server.dispose();
      },
    };
  });
