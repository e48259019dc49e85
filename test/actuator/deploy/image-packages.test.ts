import { spawnSync } from "node:child_process";
import { cpSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { NODE, run } from "../../cli/run.ts";
import { scratch } from "../manifests/scratch.ts";

vi.setConfig({ testTimeout: 300_000 });

const ROOT = join(import.meta.dirname, "../../..");
const OWN = ["package.json", "api", "actuator", "db", "migrations"];
const text = (file: string): string => readFileSync(join(ROOT, file), "utf8");

/** Commands of `RUN [...]`, none of which is a shell's. */
const commands = text("actuator/deploy/Containerfile")
  .replaceAll("\\\n", "")
  .split("\n")
  .flatMap((line) => (line.startsWith("RUN ") ? [JSON.parse(line.slice(4)) as string[]] : []));

/** What `npm ci --omit=dev` installs, as far as it is here. */
const packages = Object.entries(JSON.parse(text("package-lock.json")).packages as Record<string, { dev?: boolean }>)
  .filter(([path, { dev }]) => path.startsWith("node_modules/") && dev !== true)
  .map(([path]) => path)
  .filter((path) => !path.includes("/node-linux-") && existsSync(join(ROOT, path)));

/** Every file below, with its path from there. */
const filesIn = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => join(one.parentPath, one.name).slice(dir.length + 1));

test("what the image leaves out of its packages is nothing that runs", async () => {
  const app = scratch({});
  // copies: where a module lies is where its packages are looked for
  for (const path of [...packages, ...OWN]) cpSync(join(ROOT, path), join(app, path), { recursive: true });
  const [install, ...others] = commands;
  expect(install).toEqual(["npm", "ci", "--omit=dev"]);
  const before = filesIn(join(app, "node_modules"));
  for (const [program = "", ...args] of others) {
    const { status, stderr } = spawnSync(program, args, { cwd: app, encoding: "utf8" });
    expect([program, status, stderr]).toEqual([program, 0, ""]);
  }
  const left = new Set(filesIn(join(app, "node_modules")));
  const gone = before.filter((file) => !left.has(file));
  expect(gone.length).toBeGreaterThan(1000);
  const isForOthers = /\.map$|\.d\.[cm]?ts$|\/prebuilds\/(?:darwin|win32|linuxmusl)-|^better-sqlite3\/deps\//;
  expect(gone.filter((file) => !isForOthers.test(file))).toEqual([]);

  const launcher = join(app, "api/cli/nodewise.js");
  const ask = (...args: readonly string[]) => run(args, { launcher, node: NODE });
  const pass = await ask("actuator", "--once", "-o", "json", "--state-dir", join(app, "state"));
  expect([pass.code, JSON.parse(pass.stdout).decidedBy]).toEqual([0, "here"]);
  const token = await ask("token", "create", "n1", "--scope", "decide", "--data-dir", join(app, "data"));
  expect([token.code, token.stdout]).toEqual([0, expect.stringMatching(/^nw_/m)]);
  // what a daemon is started from
  const bundle = spawnSync(NODE, [join(app, "api/cli/bundle.js")], { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 });
  expect([bundle.status, bundle.stdout.length > 100_000]).toEqual([0, true]);
});
