import { existsSync } from "node:fs";
import type { StoreFailure } from "../../db/failure.ts";
import { openNode } from "../../db/open-node.ts";
import type { Store } from "../../db/store.ts";
import type { Result } from "../model/result.ts";
import { historyFile } from "../server.ts";
import { EXIT, type Fault, fault, type Outcome } from "./exit.ts";

/** Works on the history of a data directory and closes it. Errors: it is not there (unless `create`), or cannot be used. */
export async function withHistory(
  dataDir: string,
  create: boolean,
  work: (store: Store) => Promise<Outcome>,
): Promise<Outcome> {
  const file = historyFile(dataDir);
  if (!create && !existsSync(file))
    return fault(
      EXIT.failed,
      `there is no history at ${file}: name its folder with --data-dir, or start \`nodewise up\``,
    );
  const store = openNode({ file });
  if (!store.ok) return fault(EXIT.failed, store.error.message);
  try {
    return await work(store.value);
  } finally {
    await store.value.close();
  }
}

export const storeFault = <T>(result: Result<T, StoreFailure> & { readonly ok: false }): Result<never, Fault> =>
  fault(EXIT.failed, result.error.message);
