import { mkdtempSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { PATIENT } from "../patient.ts";
import { ended, LAUNCHER, manifest, printed, run, start } from "./run.ts";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let scratch: string;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "nodewise-serve-"));
});
afterAll(() => rmSync(scratch, { recursive: true }));

describe("nodewise api", () => {
  test("prints its address when it listens, serves, logs to standard error, and ends with 0 on a signal", async () => {
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

  test("--keep-decisions is kept from the start on: what is too much by then goes at once", async () => {
    const dataDir = join(scratch, "kept");
    const serve = async (...args: string[]) => {
      const child = start(["api", "--port", "0", "--data-dir", dataDir, ...args]);
      const end = ended(child);
      const url = (await printed(child, /\n/)).trim();
      return { child, end, url };
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
    second.child.kill("SIGTERM");
    expect((await second.end).stderr).toContain('"msg":"history pruned"');
  });

  test("a taken port, a host beyond loopback without a token, and an unusable folder are one line each", async () => {
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
  ])("bad usage %j %j ends with 2", async (args, env, message) => {
    const ran = await run(["api", ...args], { env });
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr).toMatch(message);
  });
});

describe("nodewise up", () => {
  test("shows this machine's allocatable and cgroups, says where to look, and ends with 0 on Ctrl-C", async () => {
    const dataDir = join(scratch, "up");
    const args = [
      "up",
      "--port",
      "0",
      "--data-dir",
      dataDir,
      "--node-name",
      "here",
      "--manifests",
      manifest("two-pods.yaml"),
    ];
    const child = start(args);
    const end = ended(child);
    const text = await printed(child, /Ctrl-C/);
    expect(text).toMatch(/^This machine\n\nhere · allocatable · kubelet-/);
    expect(text).toMatch(/^memory +\d+Ki .*%$/m);
    expect(text).toMatch(/─ default\/web-here +\d+ /);
    const url = /^Dashboard +(http:\/\/127\.0\.0\.1:\d+)\/$/m.exec(text)?.[1];
    const nodes = (await (await fetch(`${url}/v1/nodes`)).json()) as { nodes: { name: string }[] };
    expect(nodes.nodes.map(({ name }) => name)).toEqual(["here"]);
    child.kill("SIGINT");
    expect(await end).toMatchObject({ code: 0, signal: null, stderr: "" });
    const recorded = await run(["history", "--data-dir", dataDir, "-o", "json"]);
    expect(
      JSON.parse(recorded.stdout)
        .map((d: { kind: string }) => d.kind)
        .toSorted(),
    ).toEqual(["allocatable", "cgroups"]);
  });
});
