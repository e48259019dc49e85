import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { ended, LAUNCHER, NODE, type RunOptions, run, runProcess, start } from "../cli/run.ts";
import { isUp } from "./pods/daemon.ts";
import { podOf } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";
import { holds, until } from "./pods/until.ts";

const LONG_MS = 300_000;
const why = noPods("nodewise logs and exec");
const [TALKS_POD, TWO] = ["talks-e2e", "default/two-e2e"];
const TALKS = "echo one; echo to the other >&2; sleep 1000 & trap 'exit 0' TERM; wait";
/** The container exits whenever the file exists. */
const RESTARTS = "echo began; while [ ! -e /end ]; do sleep 0.1; done; echo ends; exit 3";

describe.skipIf(why !== undefined)("nodewise logs and exec over a real containerd", { timeout: LONG_MS }, () => {
  let node: PodNode;
  /** The output of `talks` in the order in which the runtime wrote it: stdout and stderr are two streams. */
  let logged: readonly string[] = [];
  beforeAll(async () => {
    node = await PodNode.start({ configuration: { containerLogMaxSize: "20k", containerLogMonitorInterval: "3s" } });
    const init = [{ name: "first", script: "echo prepared" }];
    node.put("talks", podOf("talks", { containers: [{ script: TALKS }], initContainers: init }));
    node.put(
      "two",
      podOf("two", {
        containers: [
          { name: "a", script: TALKS },
          { name: "b", script: RESTARTS },
        ],
      }),
    );
    node.put("other", podOf("two", { metadata: { namespace: "other" } }));
    const { pods } = await node
      .startDaemon()
      .until("every pod", (status) => (status.pods.length === 3 && status.pods.every(isUp) ? status : undefined));
    expect(pods.map(({ namespace, name }) => `${namespace}/${name}`).sort()).toEqual([
      "default/talks-e2e",
      TWO,
      "other/two-e2e",
    ]);
    const [talks] = await node.containersOf("talks");
    // the runtime writes a line after the container has written it
    logged = await until("both lines in the log", () => {
      const lines = readFileSync(talks?.logPath ?? "", "utf8").split("\n");
      return lines.length > 2 ? lines : undefined;
    });
  }, LONG_MS);
  afterAll(() => node?.stop(), LONG_MS);

  const at = (): readonly string[] => ["--runtime-endpoint", node.containerd.endpoint, "--status-url", node.statusUrl];
  const logs = (...args: string[]) => run(["logs", ...at(), ...args]);
  const exec = (args: readonly string[], options: RunOptions = {}) => run(["exec", ...at(), ...args], options);

  describe("logs", () => {
    test("writes each stream to its own, and leaves out init containers by default", async () => {
      expect(await logs(TALKS_POD)).toMatchObject({ code: 0, stdout: "one\n", stderr: "to the other\n" });
      expect(await logs(TALKS_POD, "-c", "first")).toMatchObject({ code: 0, stdout: "prepared\n" });
      const all = await logs(TALKS_POD, "--all-containers", "--prefix", "--timestamps", "--tail", "1");
      expect(all.stdout).toMatch(/^\[pod\/talks-e2e\/first\] \d{4}-\S{14}\.\d{9}Z prepared\n/);
      const isFirst = logged[0]?.includes(" stdout ") === true;
      const two = isFirst ? { stdout: "on", stderr: "" } : { stdout: "", stderr: "to" };
      expect(await logs(TALKS_POD, "--limit-bytes", "2")).toMatchObject(two);
      expect(await logs(TALKS_POD, "--since", "10m")).toMatchObject({ code: 0, stdout: "one\n" });
      const later = new Date(Date.now() + 60_000).toISOString();
      expect(await logs(TALKS_POD, "--since-time", later)).toMatchObject({ code: 0, stdout: "", stderr: "" });
    });
    test("and exec find the runtime by the daemon's status", async () => {
      const messages = ["--status-url", node.statusUrl, TALKS_POD];
      expect(await runProcess(["logs", ...messages])).toMatchObject({
        code: 0,
        stdout: "one\n",
        stderr: "to the other\n",
      });
      expect(await runProcess(["exec", ...messages, "--", "echo", "it"])).toMatchObject({
        code: 0,
        stdout: "it\n",
        stderr: "",
      });
    });
    test("lists the names to choose from when the container is ambiguous", async () => {
      const reportOf = async (...args: string[]) => {
        const { code, stdout, stderr } = await logs(...args);
        expect(stdout).toBe("");
        return [code, stderr.trimEnd().replaceAll(node.containerd.endpoint, "SOCKET")];
      };
      expect(await reportOf(TWO)).toEqual([
        2,
        "nodewise: a container name must be specified for pod default/two-e2e, choose one of: [a b], with -c",
      ]);
      expect(await reportOf(TWO, "-c", "c")).toEqual([
        2,
        "nodewise: container c is not valid for pod default/two-e2e: it has a, b",
      ]);
      expect(await reportOf("two-e2e", "-c", "a")).toEqual([
        2,
        "nodewise: `two-e2e` is the name of default/two-e2e and of other/two-e2e: name one of them",
      ]);
      expect(await reportOf("talks")).toEqual([
        2,
        "nodewise: the runtime at SOCKET holds no pod `talks`: is it `talks-e2e`? `nodewise pods` lists those of this node, and why one does not run",
      ]);
      expect(await reportOf(TALKS_POD, "--previous")).toEqual([
        4,
        'nodewise: previous terminated container "app" in pod "default/talks-e2e" not found',
      ]);
      expect((await logs(TWO, "-c", "a", "-n", "other")).code).toBe(2);
    });
    test("-f follows over rotations and restarts to the end of the pod", async () => {
      const child = start(["logs", ...at(), TWO, "-c", "b", "-f"]);
      const whole = ended(child);
      onTestFinished(() => void child.kill("SIGKILL"));
      let text = "";
      child.stdout.on("data", (bytes: Buffer) => {
        text += bytes;
      });
      // a follower begins with the instance that is newest when it starts, so it has to start before the restart
      await until("the follower's start", () => holds(text === "began\n"));
      const [app] = await node.containersOf("two", "b");
      await node.exec(app?.id ?? "", "seq 1 3000 | sed 's/^/line /' > /proc/1/fd/1");
      const directory = readdirSync(join(node.dir, "logs")).find((name) => name.startsWith("default_two-"));
      const files = () => readdirSync(join(node.dir, "logs", directory ?? "", "b"));
      await until("a rotation", () => holds(files().length > 1));
      await node.exec(app?.id ?? "", "seq 3001 3010 | sed 's/^/line /' > /proc/1/fd/1; touch /end");
      await until("the next start", () => holds(text.split("began\n").length > 2));
      node.remove("two");
      expect(await whole).toMatchObject({ code: 0 });
      const numbers = [...text.matchAll(/^line (\d+)$/gm)].map(([, number]) => Number(number));
      expect(numbers).toEqual(Array.from({ length: 3010 }, (_, i) => i + 1));
      expect(text.replaceAll(/^line \d+\n/gm, "")).toMatch(/^began\nends\nbegan\n/);
    });
  });

  describe("exec", () => {
    const sh = (script: string) => ["--", "sh", "-c", script];

    test("writes output to both streams, and exits with the command's exit code", async () => {
      const ran = await exec([TALKS_POD, ...sh("echo out; echo err >&2; exit 7")]);
      expect(ran).toMatchObject({ code: 7, stdout: "out\n", stderr: "err\n" });
      expect(await exec([TALKS_POD, "--", "echo", "-n", "--tail"])).toMatchObject({ code: 0, stdout: "--tail" });
    });
    test("reports a command that cannot run or takes too long as a shell does", async () => {
      const missing = await exec([TALKS_POD, "--", "no-such-program"]);
      expect(missing).toMatchObject({
        code: 127,
        stderr: expect.stringContaining("executable file not found in $PATH"),
      });
      expect(await exec([TALKS_POD, "--", "/etc"])).toMatchObject({ code: 126 });
      const late = await exec([TALKS_POD, "--timeout", "1", ...sh("sleep 100")]);
      expect(late).toMatchObject({ code: 124, stderr: "nodewise: the command took longer than 1 s, and was killed\n" });
      const init = await exec([TALKS_POD, "-c", "first", "--", "true"]);
      expect(init).toMatchObject({ code: 4, stderr: expect.stringContaining("does not run (it is exited)") });
    });
    test("says how to get output larger than the runtime's limit, and -i writes all of it", async () => {
      const much = sh("echo ran > /ran; head -c 17000000 /dev/zero");
      expect(await exec([TALKS_POD, ...much])).toMatchObject({
        code: 4,
        stdout: "",
        stderr: expect.stringMatching(/^nodewise: the command ran, and wrote more .* with -i /),
      });
      expect(await exec([TALKS_POD, "--", "cat", "/ran"])).toMatchObject({ code: 0, stdout: "ran\n" });
      const whole = await exec(["-i", TALKS_POD, ...much]);
      expect([whole.code, whole.stdout.length, whole.stderr]).toEqual([0, 17_000_000, ""]);
    });
    test("-i passes standard input to its end, and keeps both streams apart", async () => {
      const input = Buffer.alloc(3_000_000, "0123456789abcde\n");
      const echoed = await exec(["-i", TALKS_POD, ...sh("cat; echo done >&2; exit 5")], { input });
      expect([echoed.code, echoed.stderr, echoed.stdout.length]).toEqual([5, "done\n", input.length]);
      expect(echoed.stdout === input.toString()).toBe(true);
      expect(await exec(["-i", TALKS_POD, "--", "no-such-program"])).toMatchObject({ code: 127 });
    });
    test("-t allocates a terminal, unless standard input is none", async () => {
      const script = "test -t 1 && echo terminal; exit 9";
      const noTerminal = "nodewise: Unable to use a TTY - input is not a terminal or the right kind of file\n";
      expect(await exec(["-t", TALKS_POD, ...sh(script)])).toEqual(
        expect.objectContaining({ code: 9, stdout: "", stderr: noTerminal }),
      );
      const words = [NODE, LAUNCHER, "exec", ...at(), "-t", TALKS_POD, ...sh(script)];
      const quoted = words.map((word) => `'${word}'`).join(" ");
      const real = await ended(spawn("script", ["-qec", quoted, "/dev/null"], { stdio: ["ignore", "pipe", "pipe"] }));
      expect(real).toMatchObject({ code: 9, stdout: expect.stringMatching(/^terminal\s+$/) });
      const piped = await exec(["-it", TALKS_POD, ...sh(`cat; ${script}`)], { input: "in\n" });
      expect(piped).toMatchObject({
        code: 9,
        stdout: "in\n",
        stderr: noTerminal,
      });
    });
  });
});
