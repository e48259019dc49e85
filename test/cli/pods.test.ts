import { mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { daemonMetrics } from "../../actuator/status/metrics.ts";
import type { NodeStatus } from "../../actuator/status/node-status.ts";
import { type StatusServer, startStatusServer } from "../../actuator/status/server.ts";
import { freePort } from "../e2e/pods/port.ts";
import { CRASHING, ENDED, nodeStatus, podRow, seenEvent, WAITING, WEB } from "../kit/node-status.ts";
import { ended, printed, run, start } from "./run.ts";
import { statusServer } from "./status-server.ts";

const BAD = "\u001b[2J\u202e";
const EVENTS = [
  seenEvent("Started", WEB, { container: "app" }),
  seenEvent("BackOff", CRASHING, { type: "Warning", count: 9, message: `Back-off ${BAD}` }),
];
const STATUS = nodeStatus({
  problems: [`runtime: slow ${BAD}`],
  refusedManifests: [
    {
      pod: "shop/db",
      file: "/m/db.yaml",
      faults: [
        { path: "spec.containers[0].livenessProbe", message: `probes are not run here ${BAD}`, line: 9, column: 5 },
      ],
    },
  ],
  events: EVENTS,
});

let now: NodeStatus = STATUS;
const daemon = statusServer(() => now);
const ask = (...args: string[]) => run([...args, "--status-url", daemon.url]);
async function lines(...args: string[]): Promise<readonly string[]> {
  const ran = await ask(...args);
  expect([ran.code, ran.stderr]).toEqual([0, ""]);
  return ran.stdout.split("\n");
}
async function withServer(answer: (server: Server) => void, use: (url: string) => Promise<void>): Promise<void> {
  const server = createServer();
  answer(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  server.closeAllConnections();
  server.close();
}

describe("nodewise pods", () => {
  test("prints a row per pod, what is wrong with it, and the manifests that are not run", async () => {
    expect(await lines("pods")).toEqual([
      "n1 · enforce · containerd 2.1.4 · pass 12 2s ago: 48 ms, 2 written, 1 drifted, decided here",
      "! runtime: slow ␛[2J\\u202e",
      "",
      "NAMESPACE  NAME      PHASE                       READY  RESTARTS  QOS         CPUS     AGE",
      "jobs       batch     Pending, waits (OutOfcpu)     0/1         0  Burstable            10m",
      "  refused 3 times in 1m30s, tried again when it could fit: OutOfcpu: Node didn't have enough resource: cpu",
      "jobs       done      Succeeded                     0/1         0  Burstable             5m",
      "shop       crashing  Running (CrashLoopBackOff)    0/1         9  Burstable             5m",
      "  CrashLoopBackOff: back-off 5m0s restarting failed container=app",
      "shop       web       Running                       2/2         2  Guaranteed  0-1 2-3   5m",
      "",
      "refused shop/db",
      "  /m/db.yaml:9:5: spec.containers[0].livenessProbe: probes are not run here ␛[2J\\u202e",
      "",
    ]);
  });

  test("prints drifted files with both values, whoever owns them", async () => {
    const row = {
      path: "/kubepods",
      file: `cpu.shares${BAD}`,
      actual: "77",
      wanted: "2048",
      cause: "never_written",
    } as const;
    now = nodeStatus({
      pods: [],
      pass: { ...(STATUS.pass as NonNullable<NodeStatus["pass"]>), drift: 3, drifted: [row] },
    });
    const message = (await lines("pods")).join("\n");
    now = STATUS;
    expect(message).toMatch(
      /\nCGROUP +FILE +FOUND +WANTED +CAUSE\n\/kubepods +cpu\.shares␛\[2J\\u202e +77 +2048 +never_written\n/,
    );
    expect(message).toContain("\nand 2 files more\n");
  });

  test("prints one namespace's pods, with events", async () => {
    const messages = await lines("pods", "-n", "jobs", "--events");
    expect(messages.filter((line) => /^(?:jobs|shop|refused)/.test(line))).toHaveLength(2);
    expect(messages.at(-2)).toBe("no events");
    const all = await lines("pods", "--events");
    expect(all.at(-2)).toBe("5s (x9 over 5s)  Warning  BackOff  shop/crashing             Back-off ␛[2J\\u202e");
  });

  test("prints one pod with its containers, cgroup values, drift and events", async () => {
    const message = (await lines("pods", "shop/web")).join("\n");
    expect(message).toContain("shop/web  Running\nGuaranteed · priority 0 · 10.0.0.2 · uid uid-web · started 5m ago\n");
    expect(message).toContain("cpu: uses 250m, request 500m, limit 1, throttled 31.2 %\n");
    expect(message).toContain("memory: uses 240 MiB, request 256 MiB, limit 256 MiB\n");
    expect(message).toMatch(/\nsetup +init +terminated \(Completed, exit 0\) +yes +7 /);
    expect(message).toMatch(/\n\(pod\) +\/kubepods\/poduid-web +cpu\.shares +1024 +2 +drift\n/);
    expect(message).toMatch(/\n +memory\.limit_in_bytes +268435456 +268435456\n/);
    expect(message).toMatch(/\n +pids\.max +100 +– +missing\n/);
    expect(message).toMatch(/\n +cpu\.weight +17 +4 +the runtime's formula\n/);
    expect(message).toMatch(/Started +shop\/web +app +Started it/);
    expect(message).not.toContain("BackOff");
    expect((await lines("pods", "db")).join("\n")).toContain(
      "refused shop/db\n  /m/db.yaml:9:5: spec.containers[0].livenessProbe: ",
    );
  });

  test("finds a refused pod by its manifest's name, and prints manifest problems for an unknown name", async () => {
    const fault = { path: "spec.containers[0].image", message: "Required value", line: 5, column: 3 };
    const problems = ["pods: /m/db.yaml:3:1: is no YAML", "pods: /m/db-2.yaml:1:1: is empty"];
    now = nodeStatus({ problems, refusedManifests: [{ pod: "shop/web-9-n1", file: "/m/w.yaml", faults: [fault] }] });
    const refused = (await lines("pods", "web-9")).join("\n");
    const whole = (await lines("pods", "shop/web-9-n1")).join("\n");
    const none = await ask("pods", "db");
    now = STATUS;
    for (const text of [refused, whole])
      expect(text).toContain("refused shop/web-9-n1\n  /m/w.yaml:5:3: spec.containers[0].image: Required value");
    expect(none.code).toBe(2);
    expect(none.stderr).toMatch(/node n1 has no pod `db`:.*\n.*! pods: \/m\/db\.yaml:3:1: is no YAML\n$/);
  });

  test("prints a terminating pod's end, and a pending resize", async () => {
    const sinceMs = Date.parse(STATUS.at) - 20_000;
    const end = {
      cause: "preempted",
      reason: "Preempting",
      message: "Preempted in order to admit critical pod",
      sinceMs,
      graceSeconds: 30,
      decisionId: "d-7",
    } as const;
    const resize = { reason: "Deferred", message: "Node didn't have enough resource: cpu", sinceMs } as const;
    now = nodeStatus({
      pods: [podRow("a", { state: "terminating", reason: "Preempting", end }), podRow("b", { resize })],
    });
    const message = (await lines("pods")).join("\n");
    now = STATUS;
    expect(message).toMatch(
      /a +Running, ends \(Preempting\) .*\n {2}preempted 20s ago: Preempted in order to admit critical pod \(decision d-7\)\n/,
    );
    expect(message).toMatch(/\n {2}resize Deferred for 20s: Node didn't have enough resource: cpu\n/);
  });

  test("prints everything as data", async () => {
    expect(JSON.parse((await ask("pods", "-o", "json")).stdout)).toEqual(STATUS);
    expect(parse((await ask("pods", "-o", "yaml")).stdout)).toEqual(STATUS);
    const one = JSON.parse((await ask("pods", "batch", "-o", "json")).stdout);
    expect(one).toEqual({ at: STATUS.at, nodeName: "n1", pods: [WAITING], refusedManifests: [], events: [] });
  });

  test("escapes names so that they cannot move the cursor", async () => {
    now = nodeStatus({
      nodeName: `n${BAD}`,
      pods: [podRow(`evil${BAD}`, { message: `line\nbreak${BAD}`, qos: "BestEffort" })],
    });
    const listed = (await ask("pods")).stdout;
    const one = (await ask("pods", `evil${BAD}`)).stdout;
    const topped = (await ask("top")).stdout;
    now = STATUS;
    for (const text of [listed, one, topped]) {
      expect(text).toContain("evil␛[2J\\u202e");
      expect(text).not.toContain("\u001b");
      expect(text).not.toContain("\u202e");
    }
    expect(listed).toContain("  line␊break␛[2J\\u202e\n");
  });

  test("prints what the daemon last wrote, and how old that is", async () => {
    const at = new Date(Date.now() - 5 * 3600_000 - 1000).toISOString();
    writeFileSync(join(daemon.scratch, "status.json"), JSON.stringify({ ...STATUS, at }));
    const { code, stdout } = await run(["pods", "--state-dir", daemon.scratch]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^as process 4711 last wrote it, 5h old: .*status\.json\nn1 · enforce/);
  });

  test("--watch redraws, goes on while the daemon is away, and exits with 0 on a signal", async () => {
    const serve = async (port: number, name: string): Promise<StatusServer> => {
      const status = () => nodeStatus({ pods: [podRow(name)] });
      const listen = { host: "127.0.0.1", port };
      const started = await startStatusServer({ listen, status, metrics: daemonMetrics(), ownNames: [] });
      if (!started.ok) throw new Error(started.error);
      return started.value;
    };
    // a port that no other program gets while the test does not listen on it
    const port = await freePort();
    const first = await serve(port, "first");
    const child = start(["pods", "--watch", "0.1", "--status-url", first.url]);
    const end = ended(child);
    await printed(child, /first[\s\S]*first/);
    const away = printed(child, /does not answer/, "stderr");
    await first.close();
    await away;
    const second = await serve(port, "second");
    await printed(child, /second/);
    child.kill("SIGINT");
    expect(await end).toMatchObject({ code: 0, signal: null });
    await second.close();
  });
});

describe("nodewise top", () => {
  test("prints the pods' use of their limits, most CPU first", async () => {
    const messages = await lines("top");
    expect(messages.slice(3)).toEqual([
      "POD            PHASE                       QOS          CPU  OF                               MEMORY  OF                                THROTTLED  PRESSURE cpu/memory/io",
      "shop/crashing  Running (CrashLoopBackOff)  Burstable   900m  request 100m  ████████████████    8 MiB  request 64 MiB  ██··············",
      "shop/web       Running                     Guaranteed  250m  limit 1       ████····╎·······  240 MiB  limit 256 MiB   ███████████████·     31.2 %              3.1/0/12 %",
      "2 pods: cpu 1150m, memory 248 MiB",
      "█ used of the limit, or of the request without one   ╎ request",
      "",
    ]);
  });

  test("sorts by memory or name, and prints data", async () => {
    const names = async (...args: string[]) =>
      JSON.parse((await ask("top", "-o", "json", ...args)).stdout).pods.map(({ name }: { name: string }) => name);
    expect(await names()).toEqual([CRASHING.name, WEB.name]);
    expect(await names("--sort", "memory")).toEqual([WEB.name, CRASHING.name]);
    now = nodeStatus({ pods: [WEB, podRow("a"), ENDED] });
    expect(await names()).toEqual([WEB.name, "a"]);
    expect(await names("--sort", "name")).toEqual(["a", WEB.name]);
    const { stdout } = await ask("top");
    now = STATUS;
    expect(stdout).toMatch(/\nshop\/a +Running +Burstable +– +request 100m +– +request 64 MiB\n/);
  });
});

describe("nodewise pods explains in one line", () => {
  test("that no daemon answers, with the file it left", async () => {
    const home = join(daemon.scratch, "home");
    const dir = join(home, "nodewise", "actuator");
    mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, "status.json"), JSON.stringify(STATUS));
    let gone = "";
    await withServer(
      () => {},
      async (url) => {
        gone = url;
      },
    );
    for (const command of ["pods", "top"]) {
      const ran = await run([command, "--status-url", gone], { env: { XDG_STATE_HOME: home } });
      expect([ran.code, ran.stdout]).toEqual([4, ""]);
      expect(ran.stderr).toBe(
        `nodewise: ${gone} does not answer (ECONNREFUSED): is \`nodewise actuator\` running there, with pods to run or statusListen set? Name that address with --status-url, or see what it last wrote with --state-dir ${dir}\n`,
      );
    }
  });

  test.each([
    [["pods", "nosuch"], 2, /^nodewise: node n1 has no pod `nosuch`: `nodewise pods` lists those that it has\n$/],
    [["pods", "--watch", "0"], 2, /Expected seconds from 0\.1 to 3600/],
    [["pods", "--state-dir", "/nonexistent"], 2, /cannot be used with option/],
    [["top", "--sort", "age"], 2, /Allowed choices are cpu, memory, name/],
  ])("%j, with exit code %d", async (args, code, message) => {
    const ran = await ask(...args);
    expect([ran.code, ran.stdout], ran.stderr).toEqual([code, ""]);
    expect(ran.stderr).toMatch(message);
  });

  test("an ambiguous pod name, a wrong address, and a missing or invalid status file", async () => {
    now = nodeStatus({ pods: [WEB, podRow("web", { namespace: "test" })] });
    const two = await ask("pods", "web");
    now = STATUS;
    expect(two).toMatchObject({
      code: 2,
      stderr: "nodewise: `web` is the name of shop/web and of test/web: name one of them\n",
    });
    const address = await run(["pods", "--status-url", "ftp://x"]);
    expect(address).toMatchObject({ code: 2, stderr: expect.stringContaining("`ftp://x` is not an address") });
    const missing = await run(["pods", "--state-dir", join(daemon.scratch, "nothing")]);
    expect(missing).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/status\.json: ENOENT: no daemon wrote there/),
    });
    mkdirSync(join(daemon.scratch, "broken"));
    writeFileSync(join(daemon.scratch, "broken", "status.json"), "{");
    const broken = await run(["top", "--state-dir", join(daemon.scratch, "broken")]);
    expect(broken).toMatchObject({ code: 4, stderr: expect.stringMatching(/status\.json: not JSON\n$/) });
  });

  test("that another program answers at the address", async () => {
    await withServer(
      (server) => server.on("request", (_, response) => response.end("<html>")),
      async (url) => {
        const ran = await run(["pods", "--status-url", url]);
        expect([ran.code, ran.stderr]).toEqual([
          4,
          `nodewise: ${url}/v1/status: not JSON: is this a nodewise daemon, of this version?\n`,
        ]);
      },
    );
    await withServer(
      (server) => server.on("request", (_, response) => response.writeHead(404).end("no")),
      async (url) => {
        const ran = await run(["pods", "--status-url", url]);
        expect(ran.stderr).toBe(`nodewise: ${url}/v1/status answered 404: is this a nodewise daemon?\n`);
      },
    );
    await withServer(
      (server) => server.on("connection", (socket) => socket.destroy()),
      async (url) => expect(await run(["pods", "--status-url", url])).toMatchObject({ code: 4, stdout: "" }),
    );
  });
});

test("nodewise pods shows why the daemon's last start was refused, until it has started", {
  timeout: 180_000,
}, async () => {
  const home = join(daemon.scratch, "refusing");
  const dir = join(home, "nodewise/actuator");
  mkdirSync(dir, { recursive: true });
  const env = { XDG_STATE_HOME: home };
  // a directory without cgroups makes the daemon exit with 3
  const begin = ["actuator", "--mode", "enforce", "--state-dir", dir, "--cgroup-mount", daemon.scratch];
  const manifests = join(home, "manifests");
  mkdirSync(manifests);
  const refused = await run([...begin, "--manifests", manifests], { env });
  const why = /^nodewise: (.*)/.exec(refused.stderr.split("\n").filter(Boolean).at(-1) ?? "")?.[1] ?? "none";
  expect([refused.code, why]).toEqual([3, expect.stringContaining("no cgroup hierarchy")]);
  const reported = expect.stringMatching(/the last start of the daemon, at \S+, was refused: /);
  const missing = await run(["pods", "--state-dir", dir]);
  expect([missing.code, missing.stderr]).toEqual([4, reported]);
  expect(missing.stderr).toContain(why);
  const gone = `http://127.0.0.1:${await freePort()}`;
  expect((await run(["pods", "--status-url", gone], { env })).stderr).toContain(why);
  const old = new Date(Date.now() - 60_000);
  const file = join(dir, "status.json");
  writeFileSync(file, JSON.stringify({ ...STATUS, at: old.toISOString() }));
  utimesSync(file, old, old);
  expect((await run(["pods", "--state-dir", dir])).stdout).toContain(why);
  // the daemon has started since then
  utimesSync(file, new Date(Date.now() + 1000), new Date(Date.now() + 1000));
  expect((await run(["pods", "--state-dir", dir])).stdout).not.toContain(why);
});
