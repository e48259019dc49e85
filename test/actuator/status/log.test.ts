import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { redacted } from "../../../actuator/core/error-text.ts";
import type { PassReport } from "../../../actuator/pass/loop.ts";
import { jsonLog, type LogEntry, type LogLevel } from "../../../actuator/status/log.ts";
import {
  decisionEntry,
  eventEntry,
  gcEntries,
  passEntry,
  problemEntry,
  removalEntry,
} from "../../../actuator/status/log-entries.ts";
import { seenEvent, WEB } from "../../kit/node-status.ts";
import { scratchFolder } from "../../kit/scratch.ts";

let dir: string;
let fd: number;
beforeEach(() => {
  dir = scratchFolder();
  fd = openSync(join(dir, "log"), "w");
});
afterEach(() => closeSync(fd));
async function written(level: LogLevel, ...entries: readonly LogEntry[]): Promise<readonly Record<string, unknown>[]> {
  const log = jsonLog(level, fd);
  for (const entry of entries) log.write(entry);
  await log.flush();
  const lines = readFileSync(join(dir, "log"), "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line));
}
const entry = (level: LogEntry["level"]): LogEntry => ({ level, message: level, fields: {} });

describe("the log", () => {
  test.each([
    ["silent", []],
    ["error", ["error"]],
    ["warn", ["error", "warn"]],
    ["info", ["error", "warn", "info"]],
    ["debug", ["error", "warn", "info", "debug"]],
  ] as const)("at level %s contains that level and above", async (level, messages) => {
    const all = (["error", "warn", "info", "debug"] as const).map(entry);
    expect((await written(level, ...all)).map(({ msg }) => msg)).toEqual(messages);
  });

  test("leaves out secrets repeated by other parties, and cuts long texts", async () => {
    const [line] = await written("info", {
      level: "warn",
      message: "http://user:hunter2@api.example/v1 answered `Authorization: Bearer abc.def-123`",
      fields: { deep: [{ text: "nw_0123456789ab_00ff" }], long: "x".repeat(10_000) },
    });
    expect(line).toMatchObject({
      level: 40,
      msg: "http://***@api.example/v1 answered `Authorization: Bearer ***`",
      deep: [{ text: "nw_***" }],
    });
    expect(line?.["long"]).toHaveLength(4096);
    expect(redacted("image registry.example:5000/app@sha256:00 at 10.0.0.1")).toBe(
      "image registry.example:5000/app@sha256:00 at 10.0.0.1",
    );
  });
});

describe("a log entry", () => {
  test("of an event has its reason, pod and level", () => {
    const event = seenEvent("BackOff", WEB, { type: "Warning", container: "app", message: "Back-off restarting" });
    expect(eventEntry(event)).toEqual({
      level: "warn",
      message: "Back-off restarting",
      fields: {
        about: "event",
        at: event.at,
        reason: "BackOff",
        namespace: "shop",
        pod: "web",
        uid: "uid-web",
        container: "app",
      },
    });
    expect(eventEntry(seenEvent("Started", WEB)).level).toBe("info");
  });

  test("of a pass has counts, and nothing of the snapshot, which may hold secrets", () => {
    const report = {
      at: "2026-11-22T12:00:00Z",
      snapshot: { pods: [{ spec: { containers: [{ env: [{ name: "TOKEN", value: "hunter2" }] }] } }] },
      allocatable: null,
      cgroups: { cgroups: [{}, {}] },
      decisionId: "d-1",
      decidedBy: "api",
      needs: [],
      drift: [{ cause: "other_writer" }, { cause: "ours" }],
      skipped: [],
      applied: { results: [{ status: "applied" }, { status: "applied" }, { status: "failed" }] },
      problems: [],
      notices: [],
    } as unknown as PassReport;
    const reported = passEntry(report);
    expect(reported).toMatchObject({
      level: "info",
      fields: { cgroups: 2, steps: { applied: 2, failed: 1 }, drift: 1, decidedBy: "api", decisionId: "d-1" },
    });
    expect(JSON.stringify(reported)).not.toContain("hunter2");
    expect(passEntry({ ...report, applied: null }).level).toBe("debug");
  });

  test("of a decision is at level info when it acts, and at level debug when it is calm", () => {
    const answer = {
      id: null,
      decidedBy: "here",
      decision: {},
      verdict: "calm",
      reasons: [],
      needs: [],
      next: null,
    } as const;
    expect(decisionEntry("eviction", answer)).toMatchObject({ level: "debug", message: "eviction: calm" });
    expect(decisionEntry("admission", { ...answer, verdict: "refused" }).level).toBe("debug");
    expect(decisionEntry("eviction", { ...answer, verdict: "evicts" })).toEqual({
      level: "info",
      message: "eviction: evicts",
      fields: { about: "decision", kind: "eviction", verdict: "evicts", decidedBy: "here" },
    });
  });

  test("of a problem, a removal and a garbage collection has its level and fields", () => {
    expect(problemEntry({ from: "runtime", message: "away" })).toMatchObject({
      level: "warn",
      fields: { from: "runtime" },
    });
    const removal = {
      kind: "image-gc",
      target: "image",
      id: "i",
      name: "app",
      bytes: 5,
      why: "space",
      end: "removed",
    } as const;
    expect(removalEntry(removal)).toMatchObject({ level: "info", message: "image removed", fields: { bytes: 5 } });
    expect(removalEntry({ ...removal, end: "failed", message: "busy" })).toMatchObject({
      level: "warn",
      message: "busy",
    });
    const collection = {
      at: "t",
      kind: "image-gc",
      operation: "garbage-collect",
      dryRun: false,
      answer: null,
      removals: [removal],
      fileSystem: { before: null, after: null },
      complete: true,
      problems: [],
    } as const;
    const turn = { at: "t", reclaim: null, collections: [collection], problems: [], notices: [] };
    expect(gcEntries(turn)).toMatchObject([{ level: "info", fields: { kind: "image-gc", removals: 1 } }]);
  });
});
