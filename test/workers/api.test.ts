import { applyD1Migrations, env, SELF } from "cloudflare:test";
import { openD1 } from "../../db/open-d1.ts";
import { apiContract } from "../contract/api.ts";

apiContract("the API inside workerd, over D1", async () => {
  await applyD1Migrations(env.DB, env.MIGRATIONS);
  return {
    fetch: (path, init) => SELF.fetch(`https://nodewise.test${path}`, init),
    store: openD1(env.DB),
    dispose: async () => {},
  };
});
