import { chownSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { NodeStatus } from "../../actuator/status/node-status.ts";
import { nodeStatus } from "../kit/node-status.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { run } from "./run.ts";
import { statusServer } from "./status-server.ts";

let reported: Partial<NodeStatus> = {};
const daemon = statusServer(() => nodeStatus(reported));

const WRONG: readonly (readonly [string, readonly string[]])[] = [
  ["missing required argument 'pod'", ["logs"]],
  ["Expected a whole number from -1 on.", ["logs", "web", "--tail", "many"]],
  ["Expected a whole number from 1 on.", ["logs", "web", "--limit-bytes", "0"]],
  ["Expected a duration above zero, such as 5s, 2m or 3h.", ["logs", "web", "--since", "yesterday"]],
  ["Expected a time such as 2026-01-31T12:00:00Z.", ["logs", "web", "--since-time", "12:00"]],
  [
    "cannot be used with option '--since-time",
    ["logs", "web", "--since", "1h", "--since-time", "2026-01-31T12:00:00Z"],
  ],
  ["cannot be used with option '-c, --container", ["logs", "web", "-c", "app", "--all-containers"]],
  ["missing required argument 'command'", ["exec", "web"]],
  ["unknown option '-l'", ["exec", "web", "ls", "-l"]],
  [
    "--timeout: the runtime has no timeout for a command with -i or -t",
    ["exec", "-i", "web", "--timeout", "9", "--", "cat"],
  ],
  ["--runtime-endpoint: runtime endpoint `tcp://h:1`", ["exec", "web", "--runtime-endpoint", "tcp://h:1", "--", "ls"]],
];
test("invalid arguments of logs and exec are bad usage, with what is allowed", { timeout: 180_000 }, async () => {
  const ran = await Promise.all(WRONG.map(([, args]) => run(args)));
  for (const [i, [words]] of WRONG.entries())
    expect(ran[i]).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(words) });
});

test("an unreachable runtime is reported with what to do", { timeout: 180_000 }, async () => {
  const dir = scratchFolder();
  const at = ["--runtime-endpoint", join(dir, "none.sock")];
  for (const args of [
    ["logs", "web", ...at],
    ["exec", "web", ...at, "--", "ls"],
  ])
    expect(await run(args)).toMatchObject({
      code: 4,
      stdout: "",
      stderr: expect.stringContaining("is the runtime running, and is the endpoint right?"),
    });
});

test("the runtime comes from the option, the settings, the daemon or the default, in that order", {
  timeout: 180_000,
}, async () => {
  const dir = daemon.scratch;
  const socket = (name: string): string => `unix://${join(dir, name)}.sock`;
  const asked = (name: string): string => `there is no socket at ${join(dir, name)}.sock: `;
  const settings = join(dir, "actuator.yaml");
  writeFileSync(settings, `runtimeEndpoint: ${socket("settings")}\n`);
  const state = join(dir, "state");
  mkdirSync(state);
  writeFileSync(join(state, "status.json"), JSON.stringify(nodeStatus({ runtimeEndpoint: socket("file") })));
  const at = ["logs", "web", "--status-url", daemon.url];
  reported = { runtimeEndpoint: socket("status") };
  const ran = async (...args: string[]) => {
    const { code, stderr } = await run(args);
    return [code, stderr];
  };
  expect(await ran(...at)).toEqual([4, expect.stringContaining(asked("status"))]);
  expect(await ran("exec", ...at.slice(1), "--", "ls")).toEqual([4, expect.stringContaining(asked("status"))]);
  expect(await ran(...at, "--settings", settings)).toEqual([4, expect.stringContaining(asked("settings"))]);
  const option = ["--runtime-endpoint", socket("option")];
  expect(await ran(...at, "--settings", settings, ...option)).toEqual([4, expect.stringContaining(asked("option"))]);
  expect(await ran("logs", "web", "--state-dir", state)).toEqual([4, expect.stringContaining(asked("file"))]);
  // an older daemon reports no endpoint
  reported = {};
  const usual = "asking the runtime at unix:///run/containerd/containerd.sock (name another with --runtime-endpoint";
  expect(await ran(...at)).toEqual([4, expect.stringContaining(usual)]);
});

test("an unreachable daemon, faulty settings or a foreign socket are errors, and no runtime is used", {
  timeout: 180_000,
}, async () => {
  const dir = daemon.scratch;
  const state = ["--state-dir", join(dir, "nobody")];
  expect(await run(["logs", "web", ...state])).toMatchObject({ code: 4, stderr: expect.stringContaining("ENOENT") });
  const settings = join(dir, "wrong.yaml");
  writeFileSync(settings, "runtimeEndpoint: tcp://h:1\n");
  expect(await run(["exec", "web", "--settings", settings, "--", "ls"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`${settings}:1:`),
  });
  if (process.getuid?.() !== 0) return;
  const socket = join(dir, "others.sock");
  writeFileSync(socket, "");
  chownSync(socket, 65534, 65534);
  reported = { runtimeEndpoint: `unix://${socket}` };
  expect(await run(["logs", "web", "--status-url", daemon.url])).toMatchObject({
    code: 4,
    stdout: "",
    stderr: expect.stringContaining("whose socket belongs to user 65534"),
  });
});
