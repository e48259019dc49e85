import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { RuntimeContainer } from "../../../actuator/containerd/cri.ts";
import { withTerminationMessage } from "../../../actuator/pods/sync/termination-message.ts";
import { scratch } from "./scratch.ts";

function world(more: Partial<RuntimeContainer> = {}, policy = "FallbackToLogsOnError") {
  const dir = scratch();
  mkdirSync(join(dir, "containers/app"), { recursive: true });
  const logPath = join(dir, "0.log");
  const exited: RuntimeContainer = {
    id: "c1",
    name: "app",
    attempt: 0,
    sandboxId: "s1",
    state: "exited",
    createdAtMs: 0,
    startedAtMs: 0,
    finishedAtMs: 1,
    exitCode: 1,
    reason: "Error",
    message: "",
    image: "",
    imageId: "",
    logPath,
    labels: {},
    annotations: {
      "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
      "io.kubernetes.container.terminationMessagePolicy": policy,
    },
    ...more,
  };
  return {
    logPath,
    says: (text: string | Buffer) => writeFileSync(join(dir, "containers/app/00000000"), text),
    logs: (text: string | Buffer) => writeFileSync(logPath, text),
    message: () => withTerminationMessage(exited, { podDirectory: dir, logDirectory: dir }).message,
  };
}
const line = (text: string, tag = "F") => `2026-01-01T00:00:00.000000000Z stderr ${tag} ${text}\n`;

describe("a container's termination message", () => {
  test("is the last 4096 bytes of its file, behind the runtime's message", () => {
    const short = world({ message: "from the runtime" });
    short.says("bye");
    expect(short.message()).toBe("from the runtime: bye");
    const long = world();
    long.says(`x${"y".repeat(4096)}`);
    expect(long.message()).toBe("y".repeat(4096));
  });
  test("is empty while the container runs", () => {
    const runs = world({ state: "running" });
    runs.says("not yet");
    expect(runs.message()).toBe("");
  });
  test("is the end of the log when a failed container wrote no message", () => {
    const one = world();
    one.says("");
    one.logs([line("first"), line("no ", "P"), line("end"), "broken\n", line("last")].join(""));
    expect(one.message()).toBe("first\nno end\nlast\n");
    one.says("said");
    expect(one.message()).toBe("said");
  });
  test.each([
    ["succeeded", { exitCode: 0 }, "FallbackToLogsOnError"],
    ["never ran", { reason: "ContainerCannotRun" }, "FallbackToLogsOnError"],
    ["does not ask for it", {}, "File"],
  ])("is not taken from the log of a container that %s", (_, more, policy) => {
    const one = world(more, policy);
    one.logs(line("secret"));
    expect(one.message()).toBe("");
  });
  test("has at most 80 lines and 2048 bytes of the log", () => {
    const many = world();
    many.logs(Array.from({ length: 5000 }, (_, i) => line(`${i}`)).join(""));
    expect(many.message().split("\n")).toEqual([...Array.from({ length: 80 }, (_, i) => `${4920 + i}`), ""]);
    const long = world();
    long.logs(line("a".repeat(3000)) + line("b".repeat(1000)));
    expect(long.message()).toBe(`${"a".repeat(1046)}\n${"b".repeat(1000)}\n`);
    const huge = world();
    huge.logs(line("c".repeat(200_000)));
    expect(huge.message()).toBe(`${"c".repeat(2047)}\n`);
  });
  test("says why the log cannot be read", () => {
    const one = world();
    expect(one.message()).toBe(
      `Error on reading termination message from logs: open ${one.logPath}: no such file or directory`,
    );
  });
});
