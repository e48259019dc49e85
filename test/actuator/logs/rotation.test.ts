import { mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { RuntimeContainer, RuntimePods } from "../../../actuator/containerd/cri.ts";
import { LogRotation, type RotationDeps, systemLogFiles } from "../../../actuator/pods/logs/rotation.ts";
import { err } from "../../../api/base/result.ts";
import { v1_36 } from "../../../api/profiles/v1_36.ts";
import { ownDirectory, WrittenLog } from "./written-log.ts";

type Shown = Pick<RuntimeContainer, "id" | "state" | "logPath">;

function ground(more: Partial<RotationDeps> = {}) {
  const podLogsDirectory = join(ownDirectory(), "pods");
  const logs = new Map<string, WrittenLog>();
  const messages: string[] = [];
  const reopened: string[] = [];
  const counts = { rotated: 0, failed: 0 };
  const world = {
    containers: [] as Shown[],
    configuration: { containerLogMaxSize: "100", containerLogMaxFiles: 3 } as unknown,
  };
  const rotation = new LogRotation({
    profile: v1_36,
    runtime: {
      reopenLog: async (id) => {
        reopened.push(id);
        return logs.get(id)?.reopen() ?? err({ call: "ReopenContainerLog", code: "NOT_FOUND", message: "not found" });
      },
    },
    runtimePods: () =>
      new Map([
        ["u", { namespace: "shop", name: "web", uid: "u", sandboxes: [], containers: world.containers }],
      ]) as unknown as RuntimePods,
    configuration: () => world.configuration,
    podLogsDirectory,
    counters: { logRotated: () => counts.rotated++, logRotationFailed: () => counts.failed++ },
    onProblem: ({ from, message }) => messages.push(`${from}: ${message.replaceAll(podLogsDirectory, "LOGS")}`),
    ...more,
  });
  onTestFinished(() => rotation.close());
  const look = async (): Promise<void> => {
    await rotation.rotateLogs();
    await rotation.rest();
  };
  const logOf = (id: string, state: Shown["state"] = "running"): WrittenLog => {
    const log = new WrittenLog(join(podLogsDirectory, "shop_web_u", id));
    logs.set(id, log);
    world.containers.push({ id, state, logPath: log.path, name: id } as Shown);
    return log;
  };
  const problems = () => rotation.problems().map(({ message }) => message.replaceAll(podLogsDirectory, "LOGS"));
  return { world, rotation, look, logOf, messages, reopened, counts, problems, podLogsDirectory };
}

test("a running container's log is rotated once it has the maximum size, smaller and ended ones are not", async () => {
  const { look, logOf, counts, messages } = ground();
  const [large, small, ended] = [logOf("large"), logOf("small"), logOf("ended", "exited")];
  for (const log of [large, ended]) log.write(10);
  small.write(1);
  await look();
  expect([large, small, ended].map((log) => log.files().length)).toEqual([2, 1, 1]);
  await look();
  expect([large.files().length, counts, messages]).toEqual([2, { rotated: 1, failed: 0 }, []]);
  for (let i = 0; i < 4; i++) {
    large.write(10);
    await look();
  }
  expect(large.files().length).toBe(3);
});

test("a changed configuration is used at the next look; one that a kubelet refuses is reported", async () => {
  const { world, look, logOf, messages, problems } = ground();
  const log = logOf("app");
  world.configuration = { containerLogMaxSize: "-1" };
  log.write(100);
  await look();
  expect(log.files()).toHaveLength(1);
  world.configuration = { containerLogMaxSize: "1k", containerLogMaxFiles: 2 };
  await look();
  expect(log.files()).toHaveLength(2);
  world.configuration = { containerLogMaxSize: "1k", containerLogMaxFiles: 1 };
  log.write(100);
  await look();
  await look();
  expect(log.files()).toHaveLength(2);
  const words =
    "invalid configuration: containerLogMaxFiles must be greater than 1; logs are rotated at 1000 bytes, 2 files each, until then";
  expect([messages, problems()]).toEqual([[`logs: ${words}`], [words]]);
  world.configuration = {};
  await look();
  expect(problems()).toEqual([]);
});

test("a missing log is reopened, and a runtime that cannot do so is reported once", async () => {
  const { world, look, logOf, messages, problems, reopened, podLogsDirectory } = ground();
  const log = logOf("app");
  rmSync(log.path);
  await look();
  expect([log.files(), reopened, problems()]).toEqual([["0.log"], ["app"], []]);
  world.containers.push({
    id: "gone",
    name: "gone",
    state: "running",
    logPath: join(podLogsDirectory, "shop_web_u/gone/0.log"),
  } as never);
  await look();
  await look();
  const message =
    "the log of shop/web gone, LOGS/shop_web_u/gone/0.log: it is not there, and was not created again: ReopenContainerLog: NOT_FOUND: not found";
  expect([messages, problems()]).toEqual([[`logs: ${message}`], [message]]);
  world.containers.pop();
  await look();
  expect(problems()).toEqual([]);
});

test("links in place of a log or a directory above it are not followed out of the log directory", async () => {
  const { world, look, logOf, problems, podLogsDirectory } = ground();
  const outside = ownDirectory();
  const secret = join(outside, "0.log");
  writeFileSync(secret, "x".repeat(1000));
  const log = logOf("app");
  rmSync(log.path);
  symlinkSync(secret, log.path);
  symlinkSync(outside, join(podLogsDirectory, "shop_web_u", "linked"));
  world.containers.push({
    id: "linked",
    name: "linked",
    state: "running",
    logPath: join(podLogsDirectory, "shop_web_u/linked/0.log"),
  } as never);
  world.containers.push({ id: "elsewhere", name: "elsewhere", state: "running", logPath: secret } as never);
  await look();
  const { size, nlink } = statSync(secret);
  expect([size, nlink, problems().map((one) => one.replaceAll(outside, "OUT"))]).toEqual([
    1000,
    1,
    [
      "the log of shop/web app, LOGS/shop_web_u/app/0.log: it is not a regular file, and is left alone",
      "the log of shop/web linked, LOGS/shop_web_u/linked/0.log: OUT is outside of LOGS",
      "the log of shop/web elsewhere, OUT/0.log: OUT is outside of LOGS",
    ],
  ]);
  expect(readFileSync(secret, "utf8")).toBe("x".repeat(1000));
});

test("an ended container's log gets its name back after an interrupted rotation", async () => {
  const { look, logOf } = ground();
  const log = logOf("app", "exited");
  log.write();
  await systemLogFiles.rename(log.path, `${log.path}.20260101-000000`);
  await look();
  expect(log.files()).toEqual(["0.log"]);
});

test("rotations run at most containerLogMaxWorkers at a time, and never twice for one log", async () => {
  const compressing: string[] = [];
  let most = 0;
  const gate = Promise.withResolvers<void>();
  const files = {
    ...systemLogFiles,
    compress: async (from: string, to: string, signal: AbortSignal) => {
      compressing.push(from);
      most = Math.max(most, compressing.length);
      await gate.promise;
      await systemLogFiles.compress(from, to, signal);
      compressing.splice(compressing.indexOf(from), 1);
    },
  };
  const { world, rotation, look, logOf, counts } = ground({ files });
  world.configuration = { containerLogMaxSize: "100", containerLogMaxFiles: 5, containerLogMaxWorkers: 2 };
  const logs = ["a", "b", "c", "d"].map((id) => logOf(id));
  for (const log of logs) log.write(10);
  await look();
  for (const log of logs) log.write(10);
  await rotation.rotateLogs();
  await expect.poll(() => compressing.length).toBe(2);
  await rotation.rotateLogs();
  gate.resolve();
  await rotation.rest();
  expect([most, counts]).toEqual([2, { rotated: 8, failed: 0 }]);
  for (const log of logs) expect(log.files().filter((name) => name.endsWith(".gz"))).toHaveLength(1);
});

test("a log whose directory is removed with its pod meanwhile is not a fault", async () => {
  const { world, look, logOf, podLogsDirectory, counts, messages } = ground({
    files: {
      ...systemLogFiles,
      rename: async (from, to) => {
        rmSync(podLogsDirectory, { recursive: true });
        mkdirSync(podLogsDirectory);
        world.containers.length = 0;
        await systemLogFiles.rename(from, to);
      },
    },
  });
  logOf("app").write(10);
  await look();
  expect([counts, messages]).toEqual([{ rotated: 0, failed: 0 }, []]);
});

test("neither zlib errors nor bugs in a rotation end the daemon", async () => {
  let thrown: Error = Object.assign(new Error("invalid"), { code: "Z_DATA_ERROR" });
  const { look, logOf, counts, messages } = ground({
    files: {
      ...systemLogFiles,
      compress: async () => {
        throw thrown;
      },
    },
  });
  const log = logOf("app");
  const rotations = async (): Promise<void> => {
    log.write(10);
    await look();
  };
  for (let i = 0; i < 2; i++) await rotations();
  expect(counts).toEqual({ rotated: 2, failed: 1 });
  thrown = new TypeError("no function");
  await rotations();
  expect(messages.map((line) => line.replace(/\d{8}-\d{6}/, "AT"))).toEqual([
    "logs: the log of shop/web app, LOGS/shop_web_u/app/0.log: failed to compress log 0.log.AT: invalid",
    "logs: the log of shop/web app, LOGS/shop_web_u/app/0.log: unexpected: no function",
  ]);
});
