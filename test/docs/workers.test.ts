import { execFileSync } from "node:child_process";
import { copyFileSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { run } from "../cli/run.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { running, wrangler } from "../ui/worker-dev.ts";
import { ROOT } from "./sessions.ts";
import { expectAsShown } from "./shown.ts";

const PLACE = ["--local", "--env", "objects"];

/** A checkout in which this test may write files. */
function checkout(): string {
  const folder = scratchFolder();
  copyFileSync(join(ROOT, "wrangler.toml"), join(folder, "wrangler.toml"));
  for (const name of ["api", "db", "migrations", "node_modules", "package.json", "tsconfig.json"])
    symlinkSync(join(ROOT, name), join(folder, name));
  return folder;
}

test("the Workers guide's first token opens the Worker, and a printed token opens it for its node", async () => {
  const folder = checkout();
  const generated = await run(["token", "generate"]);
  expectAsShown("docs/guide/workers.md", "nodewise token generate > .dev.vars", generated.stderr);
  // as in the guide, whose shell then reads its own variable from the file
  execFileSync("sh", ["-c", "cat > .dev.vars"], { cwd: folder, input: generated.stdout });
  const vars = readFileSync(join(folder, ".dev.vars"), "utf8");
  const token = execFileSync("sh", ["-c", '. ./.dev.vars; echo "$NODEWISE_TOKEN"'], { cwd: folder, encoding: "utf8" });
  expect(vars).toContain(`NODEWISE_TOKEN=${token}`);
  wrangler(["d1", "migrations", "apply", "DB", ...PLACE], folder);

  const made = await run([
    "token",
    "create",
    "edge-1",
    "--scope",
    "decide",
    "--node",
    "edge-1",
    "--print",
    "-o",
    "json",
  ]);
  const printed = JSON.parse(made.stdout) as { readonly token: string; readonly sql: string };
  wrangler(["d1", "execute", "DB", ...PLACE, "--command", printed.sql], folder);

  const dev = await running(PLACE, folder);
  try {
    // the same as curl -s -H "authorization: Bearer $NODEWISE_TOKEN"
    const ask = (path: string, bearer: string, body?: object) =>
      fetch(dev.url + path, {
        method: body === undefined ? "GET" : "POST",
        headers: { authorization: `Bearer ${bearer.trim()}`, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    expect((await ask("/v1/nodes", token)).status).toBe(200);
    const turn = { snapshot: { node: { metadata: { name: "edge-1" } } }, decisions: [] };
    expect((await ask("/v1/nodes/edge-1/turns", printed.token, turn)).status).toBe(200);
    expect((await ask("/v1/nodes/edge-2/turns", printed.token, turn)).status).toBe(403);
    expect((await ask("/v1/nodes/edge-1", token)).status).toBe(200);
    expect(dev.said()).not.toContain(token.trim());
  } finally {
    await dev.close();
  }
}, 240_000);
