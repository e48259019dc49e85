import { test } from "vitest";
import { startApi } from "../../api/server.ts";
import { openPostgres } from "../../db/postgres/open.ts";
import { FAST, noPostgres, PASSWORD, PostgresServer } from "../kit/postgres.ts";
import { apiContract } from "./api.ts";
import { value } from "./store-rows.ts";

const silent = { info() {}, warn() {}, error() {} };

if (noPostgres !== null) test.skip(`the API over Postgres: ${noPostgres}`, () => {});
else
  apiContract("the API on Node, over loopback and a history in Postgres", async () => {
    const server = await PostgresServer.start(FAST);
    const database = { url: await server.database("history"), password: PASSWORD };
    const api = await startApi({ port: 0, database, log: silent });
    if (!api.ok) throw new Error(api.error.message);
    const store = value(await openPostgres(database));
    return {
      fetch: (path, init) => fetch(api.value.url + path, init),
      store,
      dispose: async () => {
        await api.value.close();
        await store.close();
        await server.dispose();
      },
    };
  });
