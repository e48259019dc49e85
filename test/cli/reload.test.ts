import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, test, vi } from "vitest";
import { freePort } from "../e2e/pods/port.ts";
import { podYaml } from "../kit/manifests.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { ended, run, start } from "./run.ts";

let dir: string;
let settings: string;
beforeEach(() => {
  dir = scratchFolder();
  settings = join(dir, "actuator.yaml");
});

const base = () => `stateDir: ${dir}/state\ncgroupMount: ${dir}/none\nkubeletDir: ${dir}/none\nnodeName: n1\n`;
const write = (more: string): void => writeFileSync(settings, base() + more);

/** The bit of signal 1 in a signal mask. */
const SIGHUP = 1n;

/** A daemon and its output lines; `said` waits for a line that it has not returned before. */
function daemon(args: readonly string[]) {
  const child = start(["actuator", ...args]);
  const end = ended(child);
  // each stream has its own position, because the order between the two streams is not known
  const outputs = [child.stdout, child.stderr].map((stream) => {
    const one = { text: "" };
    stream.on("data", (chunk: Buffer) => {
      one.text += chunk;
    });
    return one;
  });
  const said = async (pattern: RegExp): Promise<string> => {
    for (;;) {
      for (const one of outputs) {
        const match = pattern.exec(one.text);
        if (match === null) continue;
        one.text = one.text.slice(match.index + match[0].length);
        return match[0];
      }
      const over = await Promise.race([end, new Promise((resolve) => setTimeout(resolve, 20))]);
      if (over !== undefined) throw new Error(`it ended: ${JSON.stringify(over)}`);
    }
  };
  return { child, end, said, hangUp: () => child.kill("SIGHUP") };
}

test("SIGHUP applies live settings, names those that wait, and keeps all for a faulty file", async () => {
  writeFileSync(join(dir, "a.yaml"), podYaml("a"));
  writeFileSync(join(dir, "b.yaml"), podYaml("b"));
  write(`intervalSeconds: 3600\nmanifests: ${dir}/a.yaml\n`);
  const { child, end, said, hangUp } = daemon(["--settings", settings, "-o", "json"]);
  try {
    await said(/"namespace":"default","name":"a-n1"/);

    write(`intervalSecond: 5\nmanifests: ${dir}/b.yaml\nmode: 1\n`);
    hangUp();
    await said(/actuator\.yaml:5:17: intervalSecond: no such setting; intervalSeconds\?; the old settings stay\n/);

    write(`intervalSeconds: 1800\nmanifests: ${dir}/b.yaml\ncgroupRoot: /other\n`);
    hangUp();
    const message = await said(/settings read again: .*\n/);
    expect(message).toContain(`manifests ${dir}/a.yaml -> ${dir}/b.yaml`);
    expect(message).toContain("intervalSeconds 3600 -> 1800");
    expect(message).toContain("; takes effect after a restart: cgroupRoot /nodewise -> /other");
    // at once, and not only after an hour
    await said(/"namespace":"default","name":"b-n1"/);

    hangUp();
    await said(/takes effect after a restart: cgroupRoot/);
    child.kill("SIGTERM");
    expect((await end).code).toBe(0);
  } finally {
    child.kill("SIGKILL");
  }
});

test("a flag takes precedence over a reloaded settings file", async () => {
  write("intervalSeconds: 3600\n");
  const { child, end, said, hangUp } = daemon(["--settings", settings, "--interval-seconds", "7200"]);
  try {
    await said(/cgroups decided/);
    write("intervalSeconds: 5\nretrySeconds: 7\n");
    hangUp();
    expect(await said(/settings read again: .*\n/)).toBe("settings read again: retrySeconds 60 -> 7\n");
    child.kill("SIGTERM");
    expect((await end).code).toBe(0);
  } finally {
    child.kill("SIGKILL");
  }
});

test("SIGHUP before the settings are read does not end the daemon, and has them read again", async () => {
  spawnSync("mkfifo", [settings]);
  const { child, end, said, hangUp } = daemon(["--settings", settings]);
  const caught = (): bigint => {
    const [, mask = "0"] = /^SigCgt:\s*(\w+)$/m.exec(readFileSync(`/proc/${child.pid}/status`, "utf8")) ?? [];
    return BigInt(`0x${mask}`);
  };
  try {
    // the daemon catches SIGHUP early, before its own code is loaded: another process is still stripping the types
    await vi.waitUntil(() => (caught() & SIGHUP) !== 0n, { timeout: 90_000, interval: 5 });
    hangUp();
    // the daemon opens the FIFO of its settings, into which nothing has been written yet
    const first = await Promise.race([open(settings, "w"), end.then((ran) => Promise.reject(new Error(ran.stderr)))]);
    hangUp();
    await first.writeFile(`${base()}intervalSeconds: 3600\n`);
    await first.close();
    await said(/cgroups decided/);
    const second = await open(settings, "w");
    await second.writeFile(`${base()}intervalSeconds: 7200\n`);
    await second.close();
    expect(await said(/settings read again: .*\n/)).toBe("settings read again: intervalSeconds 3600 -> 7200\n");
    child.kill("SIGTERM");
    expect((await end).code).toBe(0);
  } finally {
    child.kill("SIGKILL");
  }
});

test("without a settings file SIGHUP ends the daemon, like a closed terminal", async () => {
  const { child, end, said, hangUp } = daemon(["--state-dir", join(dir, "state"), "--cgroup-mount", join(dir, "none")]);
  try {
    await said(/cgroups decided/);
    hangUp();
    expect((await end).code).toBe(0);
  } finally {
    child.kill("SIGKILL");
  }
});

test("a replaced token file is used for the next request to the API", async () => {
  const { createServer } = await import("node:http");
  const seen: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    seen.push(request.headers.authorization);
    response.writeHead(503).end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const token = join(dir, "token");
  writeFileSync(token, "one\n");
  write(`intervalSeconds: 3600\napi: http://127.0.0.1:${port}\napiTokenFile: ${token}\n`);
  const { child, end, said, hangUp } = daemon(["--settings", settings]);
  try {
    await said(/cgroups decided/);
    writeFileSync(token, "two\n");
    hangUp();
    await said(/nothing is different/);
    await said(/cgroups decided/);
    rmSync(token);
    hangUp();
    await said(/apiTokenFile: ENOENT/);
    child.kill("SIGTERM");
    expect((await end).code).toBe(0);
    expect(new Set(seen)).toEqual(new Set(["Bearer one", "Bearer two"]));
    expect(seen.at(-1)).toBe("Bearer two");
  } finally {
    child.kill("SIGKILL");
    server.close();
  }
});

test("a faulty reload stays in the status with its place until another one succeeds", async () => {
  const port = await freePort();
  const own = `intervalSeconds: 3600\nstatusListen: 127.0.0.1:${port}\n`;
  write(own);
  const { child, end, said, hangUp } = daemon(["--settings", settings]);
  const shown = async (args: readonly string[] = []): Promise<string> =>
    (await run(["pods", "--status-url", `http://127.0.0.1:${port}`, ...args])).stdout;
  try {
    await said(/cgroups decided/);
    write(`${own}retrySecond: 5\n`);
    hangUp();
    await said(/the old settings stay\n/);
    const place =
      /! settings: .*actuator\.yaml:7:14: retrySecond: no such setting; retrySeconds\?; the old settings stay\n/;
    expect(await shown()).toMatch(place);
    // another turn alone does not correct the settings
    await said(/cgroups decided/);
    expect(await shown()).toMatch(place);
    write(`${own}mode: loud\n`);
    hangUp();
    await said(/the old settings stay\n/);
    const { problems } = JSON.parse(await shown(["-o", "json"])) as { problems: readonly string[] };
    expect(problems.filter((problem) => problem.startsWith("settings: "))).toEqual([
      expect.stringMatching(/actuator\.yaml:7:7: mode: /),
    ]);
    write(own);
    hangUp();
    await said(/settings read again: nothing is different\n/);
    expect(await shown()).not.toContain("! settings");
    child.kill("SIGTERM");
    expect((await end).code).toBe(0);
  } finally {
    child.kill("SIGKILL");
  }
});
