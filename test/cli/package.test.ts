import { existsSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, resolve } from "node:path";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { capturedSnapshot } from "../contract/captured.ts";
import { CACHE } from "../kit/cache.ts";
import { testCluster } from "../kit/cluster.ts";
import { realNode } from "../kit/real-node.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { install, pack } from "./packed.ts";
import { ended, manifest, NODE, printed, type RunOptions, run, start } from "./run.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 300_000 });

const ROOT = resolve(import.meta.dirname, "../..");
const MIB = 2 ** 20;

const scratch = scratchFolder();
let command: string;
let home: string;
beforeAll(() => {
  command = install(pack(join(scratch, "packed")), join(scratch, "prefix"));
  home = join(scratch, "prefix/lib/node_modules/nodewise");
});

/** Every file below `dir`, by its path relative to `dir`. */
const filesIn = (dir: string): readonly string[] =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((one) => !one.isDirectory())
    .map((one) => join(one.parentPath, one.name).slice(dir.length + 1));
const textIn = (file: string): string => readFileSync(join(home, file), "utf8");

describe("the packed package", () => {
  test("contains neither TypeScript nor tests, and stays small when installed", () => {
    const files = filesIn(home).filter((file) => !file.startsWith("node_modules/"));
    expect(files.filter((file) => /\.[cm]?ts$|(?:^|\/)test\//.test(file))).toEqual([]);
    const bytes = filesIn(join(scratch, "prefix")).map((file) => lstatSync(join(scratch, "prefix", file)).blocks * 512);
    expect(bytes.reduce((sum, one) => sum + one) / MIB).toBeLessThan(60);
  });

  test("installs only packages needed at run time: no bundler, types or Node", () => {
    expect(readdirSync(join(home, "node_modules")).filter((name) => !name.startsWith("."))).toEqual([
      "better-sqlite3",
      "node-addon-api",
      "uplot",
    ]);
    expect(JSON.parse(textIn("package.json")).engines).toEqual({ node: ">=22.18" });
  });

  test("contains every file that is read at run time", () => {
    const isRead =
      /^actuator\/.*\.proto$|^api\/machines\/.*\.json$|^api\/ui\/(?:client|style)\/|^migrations\/\d.*\.sql$/;
    const inCheckout = ["actuator", "api", "migrations"]
      .flatMap((dir) => filesIn(join(ROOT, dir)).map((file) => join(dir, file)))
      .filter((file) => isRead.test(file));
    expect(inCheckout.length).toBeGreaterThan(40);
    for (const file of inCheckout) expect(textIn(file), file).toBe(readFileSync(join(ROOT, file), "utf8"));
  });

  test("contains man pages", () => {
    expect(textIn("dist/man/nodewise-decide-eviction.1")).toMatch(/^\.TH "NODEWISE\\-DECIDE\\-EVICTION" 1 /);
  });

  test("contains the licences of its bundled packages", () => {
    const licences = textIn("dist/third-party-licenses.txt");
    for (const name of ["hono", "zod", "@grpc/grpc-js", "@kubernetes/client-node", "drizzle-orm", "pino"])
      expect(licences).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\([\\w.-]+\\)$`, "m"));
  });

  test("has a daemon bundle in ASCII with a source map, without other commands' code", () => {
    const code = textIn("dist/daemon.js");
    // a single other character makes V8 store the whole text with two bytes per character
    expect([...code.matchAll(/[^\0-\x7f]/g)]).toEqual([]);
    const imports = /\b(?:import(?:\(|[\w$*{}\s,]*from|)|getBuiltinModule\()"([\w@./:-]+)"/g;
    const names = [...code.matchAll(imports)].map(([, name]) => String(name));
    expect(names.length).toBeGreaterThan(20);
    expect(names.filter((name) => !isBuiltin(name))).toEqual([]);
    expect(code).toMatch(/^\/\/# sourceMappingURL=daemon\.js\.map$/m);
    const { sources } = JSON.parse(textIn("dist/daemon.js.map")) as { sources: readonly string[] };
    const commands = sources.filter((source) => /\/cli\/\w+\//.test(source)).map((source) => source.split("/cli/")[1]);
    expect(commands).toEqual(expect.arrayContaining(["actuator/command.ts", "actuator/actuator.ts"]));
    expect(commands.filter((name) => name?.endsWith("/command.ts"))).toEqual(["actuator/command.ts"]);
  });
});

/** The oldest supported Node, which .ci/oldest-node puts into a cache. */
const OLDEST = join(CACHE, "node-22.18.0/node");
const why = existsSync(OLDEST) ? "" : ` (skipped: there is no ${OLDEST}; .ci/oldest-node fetches it)`;
const NODES = [
  { name: "Node 24", node: NODE, isMissing: false },
  { name: `Node 22.18${why}`, node: OLDEST, isMissing: why !== "" },
];
test("CI has the oldest supported Node", () => {
  if (process.env["CI"] === "true") expect(why).toBe("");
});

describe.each(NODES)("the installed package on $name", ({ node, isMissing }) => {
  const only = test.skipIf(isMissing);
  const ask = (args: readonly string[], options: RunOptions = {}) =>
    run(args, { launcher: command, node, cwd: scratch, ...options });
  const folder = (name: string): string => join(scratch, `${name}-${node === NODE ? "new" : "oldest"}`);

  const snapshot = ["--snapshot", realNode("snapshot.json")];
  only.each([
    { what: "kinds", args: ["kinds", "-o", "json"] },
    { what: "machines", args: ["machines", "-o", "json"] },
    { what: "decide", args: ["decide", "allocatable", "-o", "json", ...snapshot] },
    {
      what: "decide on a machine",
      args: ["decide", "cpus", "--machine", "vm-small", "--pod", manifest("trader.yaml")],
    },
    { what: "lint", args: ["lint", "--config", realNode("configz.json"), ...snapshot] },
  ])("$what says the same as from the checkout", async ({ args }) => {
    const installed = await ask(args);
    const checkout = await run(args, { cwd: scratch });
    expect(installed).toEqual(checkout);
    expect(installed.stdout.length).toBeGreaterThan(100);
  });

  only("reads a live cluster as the checkout does, by an exec plugin, and as kubectl's plugin", async () => {
    const cluster = await testCluster();
    const status = { token: "reader-token" };
    const credential = { apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential", status };
    const exec = { apiVersion: credential.apiVersion, command: "echo", args: [JSON.stringify(credential)] };
    const env = { KUBECONFIG: cluster.kubeconfig({ exec }) };
    const args = ["decide", "allocatable", "--context", "test"];
    const installed = await ask(args, { env });
    expect(installed).toEqual(await run(args, { env }));
    expect(installed).toMatchObject({ code: 0, stdout: expect.stringMatching(/^n1 · allocatable/) });
    const launcher = join(dirname(command), "kubectl-nodewise");
    expect(await run(["decide", "allocatable"], { env, node, launcher })).toEqual(installed);
  });

  only(
    "the API decides in its threads, keeps a history and serves the dashboard; replay reads the history",
    async () => {
      const data = folder("data");
      const child = start(["api", "--port", "0", "--data-dir", data], { launcher: command, node });
      const end = ended(child);
      const url = (await printed(child, /\n/)).trim();
      const ready = await fetch(`${url}/readyz`);
      expect([ready.status, await ready.json()]).toMatchObject([200, { status: "ready" }]);
      const threadsBefore = readdirSync(`/proc/${child.pid}/task`).length;
      const decided = await fetch(`${url}/v1/decisions/cgroups`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ snapshot: capturedSnapshot() }),
      });
      expect([decided.status, await decided.json()]).toMatchObject([200, { kind: "cgroups" }]);
      expect(readdirSync(`/proc/${child.pid}/task`).length).toBeGreaterThan(threadsBefore);
      const pages = await Promise.all(["/", "/docs", "/lint", "/replay"].map(async (path) => fetch(url + path)));
      expect(pages.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      const html = (await Promise.all(pages.map((page) => page.text()))).join("");
      const assets = new Set([...html.matchAll(/\/assets\/[\w.-]+/g)].map(([path]) => path));
      for (const path of [...assets, "/assets/uplot.js", "/assets/uplot.css"]) {
        const asset = await fetch(url + path);
        expect([path, asset.status, (await asset.text()).length > 100]).toEqual([path, 200, true]);
      }
      expect(assets.size).toBeGreaterThan(2);
      child.kill("SIGTERM");
      const { code, signal, stderr } = await end;
      expect([code, signal]).toEqual([0, null]);
      expect(stderr).not.toMatch(/"level":"?(?:error|warn|[56]0)/);
      const replayed = await ask(["replay", "--data-dir", data]);
      expect([replayed.code, replayed.stderr]).toEqual([0, ""]);
      expect(replayed.stdout).toMatch(/\b1\b/);
    },
  );

  only("the actuator passes once, dry or not", async () => {
    const args = ["--once", "--cgroup-mount", join(scratch, "none"), "-o", "json", "--state-dir", folder("once")];
    const once = await ask(["actuator", ...args]);
    expect([once.code, JSON.parse(once.stdout).decidedBy]).toEqual([0, "here"]);
    const dry = await ask(["actuator", "--dry-run", ...args.slice(1)]);
    expect([dry.code, JSON.parse(dry.stdout).decidedBy]).toEqual([0, "here"]);
  });

  only("a daemon is one process with the flags that save memory, from its bundle", async () => {
    const args = ["actuator", "--cgroup-mount", join(scratch, "none"), "--state-dir", folder("daemon")];
    const child = start([...args, "--interval-seconds", "3600"], { launcher: command, node });
    const end = ended(child);
    await printed(child, /cgroups? decided/);
    const words = readFileSync(`/proc/${child.pid}/cmdline`, "utf8").split("\0");
    expect(words).toEqual(expect.arrayContaining(["--max-semi-space-size=2", "--optimize-for-size", ...args]));
    expect(readFileSync(`/proc/${child.pid}/environ`, "utf8").split("\0")).toContain("MALLOC_ARENA_MAX=1");
    expect(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8")).toBe("");
    child.kill("SIGTERM");
    expect(await end).toMatchObject({ code: 0, signal: null });
  });
});

const OLD_NODE = "/usr/bin/node";
const isOld =
  existsSync(OLD_NODE) &&
  /^v?1|^v?20/.test((await run(["process.version"], { node: OLD_NODE, launcher: "-p" })).stdout);
test.skipIf(!isOld)(
  `says on an older Node that it is too old, and exits with 3${isOld ? "" : ` (skipped: ${OLD_NODE} is not older)`}`,
  async () => {
    const ran = await run(["kinds"], { launcher: command, node: OLD_NODE });
    expect(ran).toMatchObject({ code: 3, stdout: "" });
    expect(ran.stderr).toMatch(
      /^nodewise: needs Node 22\.18 or newer, this is [\d.]+: start nodewise with a newer Node\n$/,
    );
  },
);
