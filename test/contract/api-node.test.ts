import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { startApi } from "../../api/server.ts";
import { historyFile } from "../../db/open/node.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import { RAM_DISK } from "../kit/ram-disk.ts";
import { apiContract } from "./api.ts";
import { value } from "./store-rows.ts";

const silent = { info() {}, warn() {}, error() {} };

apiContract("the API on Node, over loopback and a history in a file", async () => {
  const dataDir = mkdtempSync(join(RAM_DISK, "nodewise-api-"));
  const api = await startApi({ port: 0, dataDir, log: silent });
  if (!api.ok) throw new Error(api.error.message);
  const store = value(openNode({ file: historyFile(dataDir) }));
  return {
    fetch: (path, init) => fetch(api.value.url + path, init),
    store,
    dispose: async () => {
      await api.value.close();
      await store.close();
      rmSync(dataDir, { recursive: true });
    },
  };
});
