import { execFileSync, spawn } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { scratchFolder } from "../kit/scratch.ts";
import { PATIENT } from "../patient.ts";
import { ended, environment, LAUNCHER, manifest, printed, run, start } from "./run.ts";

const scratch = scratchFolder();
const ROOT = join(import.meta.dirname, "../..");

describe("nodewise api", () => {
  test("prints its address once it listens, logs to standard error, and exits with 0 on a signal", async () => {
    const child = start(["api", "--port", "0"], { env: { NODEWISE_DATA_DIR: join(scratch, "signal") } });
    const end = ended(child);
    const text = await printed(child, /\n/);
    expect(text).toMatch(/^http:\/\/127\.0\.0\.1:\d+\n$/);
    expect(await (await fetch(`${text.trim()}/healthz`)).json()).toMatchObject({ status: "ok" });
    child.kill("SIGTERM");
    const { code, signal, stdout, stderr } = await end;
    expect({ code, signal, stdout }).toEqual({ code: 0, signal: null, stdout: text });
    expect(
      stderr
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line).msg),
    ).toContain("listening");
    expect(statSync(join(scratch, "signal")).mode & 0o777).toBe(0o700);
  });

  test("--keep-decisions applies from the start: surplus decisions are removed at once", async () => {
    const dataDir = join(scratch, "kept");
    const serve = async (...args: string[]) => {
      const child = start(["api", "--port", "0", "--data-dir", dataDir, ...args]);
      const end = ended(child);
      let logged = "";
      child.stderr.on("data", (chunk: Buffer) => {
        logged += chunk;
      });
      const url = (await printed(child, /\n/)).trim();
      return { child, end, url, logged: () => logged };
    };
    const first = await serve();
    for (const cpu of ["1", "2", "3"]) {
      const snapshot = { node: { metadata: { name: "n" }, status: { capacity: { cpu, memory: "1Gi" } } } };
      const headers = { "content-type": "application/json" };
      const body = JSON.stringify({ snapshot });
      const answer = await fetch(`${first.url}/v1/decisions/allocatable`, { method: "POST", headers, body });
      expect(answer.status).toBe(200);
    }
    first.child.kill("SIGTERM");
    await first.end;
    const second = await serve("--keep-decisions", "1");
    const stored = async () =>
      ((await (await fetch(`${second.url}/v1/nodes/n/decisions`)).json()) as { decisions: unknown[] }).decisions.length;
    await vi.waitUntil(async () => (await stored()) === 1, PATIENT);
    await expect.poll(second.logged, PATIENT).toContain('"msg":"history pruned"');
    second.child.kill("SIGTERM");
    await second.end;
  });

  test("reports a taken port, a public host without a token, and an unusable folder in one line each", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => taken.once("listening", resolve));
    const { port } = taken.address() as { port: number };
    const dir = join(scratch, "faults");
    const cases = [
      [
        4,
        ["--port", String(port), "--data-dir", dir],
        /^nodewise: cannot listen on 127\.0\.0\.1 port \d+: EADDRINUSE: .*\n$/,
      ],
      [
        2,
        ["--host", "0.0.0.0", "--port", "0", "--data-dir", dir],
        /^nodewise: listening on 0\.0\.0\.0 needs a token.*\n$/,
      ],
      [4, ["--port", "0", "--data-dir", join(LAUNCHER, "x")], /^nodewise: cannot open database .*ENOTDIR.*\n$/],
    ] as const;
    for (const [code, args, message] of cases) {
      const ran = await run(["api", ...args]);
      expect(ran).toMatchObject({ code, stdout: "" });
      expect(ran.stderr.replace(/^\{.*\}\n/gm, "")).toMatch(message);
    }
    taken.close();
  });

  test.each([
    [["--port", "65536"], {}, /'--port <n>' argument '65536' is invalid\. Expected a whole number from 0 to 65535\./],
    [[], { NODEWISE_PORT: "http" }, /'--port <n>' value 'http' from env 'NODEWISE_PORT' is invalid/],
    [["--max-body-bytes", "12"], {}, /Expected a whole number of at least 1024\./],
  ])("exits with 2 for bad usage %j %j", async (args, env, message) => {
    const ran = await run(["api", ...args], { env });
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr).toMatch(message);
  });
});

describe("nodewise up", () => {
  test("keeps its history in a directory of its own, and says where and how it is read", async () => {
    const state = join(scratch, "state");
    const child = start(["up", "--port", "0", "--node-name", "here"], { env: { XDG_STATE_HOME: state } });
    const end = ended(child);
    const text = await printed(child, /Ctrl-C/);
    const dir = join(state, "nodewise", "up");
    expect(text).toContain(`History    ${join(dir, "history.db")} (\`nodewise history --data-dir ${dir}\` lists it)\n`);
    expect(text).toContain(`\`nodewise token create NAME --data-dir ${dir}\` closes it`);
    child.kill("SIGINT");
    expect((await end).code).toBe(0);
    expect(readdirSync(join(state, "nodewise"))).toEqual(["up"]);
    const usual = await run(["history"], { env: { XDG_STATE_HOME: state } });
    expect(usual).toMatchObject({ code: 4, stderr: expect.stringContaining("there is no history at") });
  });

  test("refuses a data directory that it did not create", async () => {
    const real = join(scratch, "real");
    const made = await run(["token", "create", "ci", "--data-dir", real]);
    expect(made.code, made.stderr).toBe(0);
    const before = readdirSync(real).map((name) => [name, readFileSync(join(real, name), "base64")]);
    for (const [args, env] of [
      [["--data-dir", real], {}],
      [[], { NODEWISE_DATA_DIR: real }],
    ] as const) {
      const ran = await run(["up", "--port", "0", "--node-name", "here", ...args], { env });
      expect(ran).toMatchObject({ code: 2, stdout: "" });
      expect(ran.stderr).toContain(`nodewise: ${real} holds a history that \`nodewise up\` did not make`);
      expect(ran.stderr).toMatch(/another --data-dir .* `nodewise api --data-dir .*real`\n$/);
    }
    expect(readdirSync(real).map((name) => [name, readFileSync(join(real, name), "base64")])).toEqual(before);

    const own = join(scratch, "own");
    const args = ["up", "--port", "0", "--node-name", "here", "--data-dir", own];
    // the command makes its history, and then refuses to listen without a token
    const closed = await run([...args, "--host", "0.0.0.0"]);
    expect([closed.code, readdirSync(own)]).toEqual([2, expect.arrayContaining(["history.db", "made-by-nodewise-up"])]);
    const child = start(args);
    const end = ended(child);
    await printed(child, /Ctrl-C/);
    child.kill("SIGINT");
    expect((await end).code).toBe(0);
  });

  test("npm start keeps the demo in an ignored folder of the checkout, or in NODEWISE_DATA_DIR", () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    const command = scripts.start.replace(/^node /, "printf '%s\\n' ");
    const said = (env: Record<string, string>) =>
      execFileSync("/bin/sh", ["-c", command], { cwd: ROOT, env }).toString();
    expect(said({})).toContain("--data-dir\ndata\n");
    expect(said({ NODEWISE_DATA_DIR: "/tmp/a b" })).toContain("--data-dir\n/tmp/a b\n");
    expect(readFileSync(join(ROOT, ".gitignore"), "utf8").split("\n")).toContain("/data/");
  });

  test("npm start shows a captured node and this machine, says where to look, and ends on Ctrl-C", async () => {
    const dataDir = join(scratch, "up");
    const args = ["--port", "0", "--node-name", "here", "--manifests", manifest("two-pods.yaml")];
    const env = environment({ NODEWISE_DATA_DIR: dataDir });
    // Ctrl-C at a terminal signals the whole process group
    const child = spawn("npm", ["start", "--", ...args], { cwd: ROOT, env, stdio: "pipe", detached: true });
    const end = ended(child);
    const text = await printed(child, /Ctrl-C/);
    expect(text).toMatch(/^Node n1, from test\/data\/real-node\/snapshot\.json\n\nn1 · allocatable · kubelet-/m);
    expect(text).toMatch(/^This machine\n\nhere · allocatable · kubelet-/m);
    expect(text).toMatch(/^memory +[\d.]+ GiB .*%$/m);
    expect(text).toMatch(/─ default\/web-here +\d+ /);
    const url = /^Dashboard +(http:\/\/127\.0\.0\.1:\d+)\/$/m.exec(text)?.[1];
    const nodes = (await (await fetch(`${url}/v1/nodes`)).json()) as { nodes: { name: string }[] };
    expect(nodes.nodes.map(({ name }) => name).toSorted()).toEqual(["here", "n1"]);
    process.kill(-(child.pid as number), "SIGINT");
    // this is npm's own exit; the command exited with 0, as checked above
    expect(await end).toMatchObject({ signal: "SIGINT", stderr: "" });
    const recorded = await run(["history", "--data-dir", dataDir, "--node", "here", "-o", "json"]);
    expect(
      JSON.parse(recorded.stdout)
        .map((d: { kind: string }) => d.kind)
        .toSorted(),
    ).toEqual(["allocatable", "cgroups"]);
  });
});
