import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { D1Database } from "@cloudflare/workers-types";
import { expect, test } from "vitest";
import { getPlatformProxy } from "wrangler";
import { openD1 } from "../../db/d1/open.ts";
import { LATEST_MIGRATION } from "../../db/history.ts";
import { openNode } from "../../db/sqlite/open.ts";
import { decisionRow, T0, value } from "./store-rows.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const configPath = join(root, "wrangler.toml");

/** Applies migrations/ as the guide says, to a D1 database that wrangler keeps in `folder`. */
async function migrate(folder: string): Promise<void> {
  const wrangler = join(root, "node_modules/wrangler/bin/wrangler.js");
  const place = ["--local", "--persist-to", folder, "--config", configPath];
  const env = { ...process.env, CI: "true", WRANGLER_SEND_METRICS: "false", WRANGLER_LOG_PATH: folder };
  await promisify(execFile)(process.execPath, [wrangler, "d1", "migrations", "apply", "DB", ...place], {
    cwd: root,
    env,
  });
}

test("the file that wrangler made and D1 wrote opens on Node as it is", async () => {
  const folder = mkdtempSync(join(tmpdir(), "nodewise-d1-"));
  await migrate(folder);
  const proxy = await getPlatformProxy<{ DB: D1Database }>({ configPath, persist: { path: join(folder, "v3") } });
  try {
    const decision = decisionRow({ body: JSON.stringify("long ".repeat(20_000)) });
    value(await openD1(proxy.env.DB).record({ decision }));
    const databases = join(folder, "v3/d1/miniflare-D1DatabaseObject");
    const [name] = readdirSync(databases).filter((entry) => /^[0-9a-f]{64}\.sqlite$/.test(entry));
    const store = value(openNode({ file: join(databases, name ?? "none") }));
    expect(value(await store.getDecision(decision.id))).toEqual(decision);
    expect(value(await store.ready(T0)).migration).toBe(LATEST_MIGRATION);
    await store.close();
  } finally {
    await proxy.dispose();
    rmSync(folder, { recursive: true });
  }
}, 60_000);
