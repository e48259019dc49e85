import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { D1Database } from "@cloudflare/workers-types";
import Sqlite from "better-sqlite3";
import { expect, test } from "vitest";
import { getPlatformProxy } from "wrangler";
import { openD1 } from "../../db/sqlite/d1/open.ts";
import { LATEST_MIGRATION } from "../../db/sqlite/dialect.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { decisionRow, T0, value } from "./store-rows.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const configPath = join(root, "wrangler.toml");

/** Runs `wrangler d1 ...` on a D1 database that wrangler keeps in `folder`. */
async function d1(folder: string, ...args: readonly string[]): Promise<void> {
  const wrangler = join(root, "node_modules/wrangler/bin/wrangler.js");
  const place = ["--local", "--persist-to", folder, "--config", configPath];
  const env = { ...process.env, CI: "true", WRANGLER_SEND_METRICS: "false", WRANGLER_LOG_PATH: folder };
  await promisify(execFile)(process.execPath, [wrangler, "d1", ...args, ...place], { cwd: root, env });
}
/** The SQL statement of the guide's `wrangler d1 execute DB --remote --command "..."`. */
function confirmingSql(): string {
  const guide = readFileSync(join(root, "docs/guide/history.md"), "utf8");
  const [, sql] = /wrangler d1 execute DB --remote --command "(.+)"$/m.exec(guide) ?? [];
  if (sql === undefined) throw new Error("the guide says no longer how a sweep is confirmed on Workers");
  return sql;
}

test("a database that wrangler created and D1 wrote can be opened on Node", async () => {
  const folder = scratchFolder();
  await d1(folder, "migrations", "apply", "DB");
  await d1(folder, "execute", "DB", "--command", confirmingSql());
  const proxy = await getPlatformProxy<{ DB: D1Database }>({ configPath, persist: { path: join(folder, "v3") } });
  try {
    const decision = decisionRow({ body: JSON.stringify("long ".repeat(20_000)) });
    value(await openD1(proxy.env.DB).record({ decision }));
    const databases = join(folder, "v3/d1/miniflare-D1DatabaseObject");
    const [name] = readdirSync(databases).filter((entry) => /^[0-9a-f]{64}\.sqlite$/.test(entry));
    const store = value(openNode({ file: join(databases, name ?? "none") }));
    expect(value(await store.getDecision(decision.id))).toEqual(decision);
    expect(value(await store.ready(T0)).migration).toBe(LATEST_MIGRATION);
    const sweeps = new Sqlite(join(databases, name ?? "none"), { readonly: true })
      .prepare("SELECT * FROM sweeps")
      .all();
    expect(sweeps).toEqual([expect.objectContaining({ id: 1 })]);
    await store.close();
  } finally {
    await proxy.dispose();
  }
}, 180_000);
