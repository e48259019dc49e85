import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { callbacksOf, decisionLine, eventLine, type ReportCallbacks } from "../../api/cli/actuator/actuator.ts";
import type { LogFlags } from "../../api/cli/cli.ts";
import { plainPaint } from "../../api/text/style.ts";
import { seenEvent, WEB } from "../kit/node-status.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { ended, printed, run, start } from "./run.ts";

const SECRET = "hunter2";
const POD = `apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
  - {name: c, image: i, env: [{name: TOKEN, value: ${SECRET}}]}
`;
const scratch = scratchFolder();
let args: readonly string[];
beforeAll(() => {
  writeFileSync(join(scratch, "a.yaml"), POD);
  writeFileSync(join(scratch, "b.yaml"), "kind: [");
  const folders = ["--state-dir", join(scratch, "state"), "--cgroup-mount", join(scratch, "none")];
  args = ["actuator", "--manifests", scratch, ...folders, "--node-name", "n"];
});
const linesOf = (text: string): readonly Record<string, unknown>[] =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

test("a daemon logs JSON to standard error only, without its pods' environment", async () => {
  const child = start([...args, "--log-format", "json", "--log-level", "debug", "--interval-seconds", "1"]);
  const end = ended(child);
  await printed(child, /"about":"pass"/, "stderr");
  child.kill("SIGTERM");
  const { code, stdout, stderr } = await end;
  expect([code, stdout]).toEqual([0, ""]);
  expect(stderr).not.toContain(SECRET);
  const lines = linesOf(stderr);
  expect(lines).toContainEqual(expect.objectContaining({ level: 40, about: "problem", from: "cgroupfs" }));
  expect(lines).toContainEqual(
    expect.objectContaining({ level: 40, about: "problem", from: "pods", msg: expect.stringContaining("b.yaml") }),
  );
  expect(lines).toContainEqual(expect.objectContaining({ level: 20, about: "pass", msg: "pass" }));
  for (const kind of ["allocatable", "cgroups"]) {
    const reported = { level: 20, about: "decision", kind, decidedBy: "here" };
    expect(lines).toContainEqual(expect.objectContaining(reported));
  }
});

test("the result of --once is printed at every log level", async () => {
  const ran = await run([...args, "--once", "--log-format", "json", "--log-level", "silent"]);
  expect(ran.stderr).toBe("");
  expect(ran.stdout).toMatch(/Z \d+ cgroups decided\n$/);
  const text = await run([...args, "--once", "--log-level", "error"]);
  expect(text.stderr).toBe("");
  expect(text.stdout).toMatch(/Z \d+ cgroups decided\n$/);
  const bad = await run([...args, "--log-level", "loud"]);
  expect(bad).toMatchObject({ code: 2, stderr: expect.stringContaining("Allowed choices are silent, error, warn") });
});

test("messages in text form are filtered by their level", () => {
  const messages: string[] = [];
  const teller = (name: string) => () => void messages.push(name);
  const names = ["onPass", "onProblem", "onRecovery", "onGcReport", "onRemoval", "onSettled", "onEvent", "onDecision"];
  const text = Object.fromEntries(names.map((name) => [name, teller(name)])) as unknown as ReportCallbacks;
  const tell = (logLevel: LogFlags["logLevel"], isAnswer = false): readonly string[] => {
    messages.length = 0;
    const { callbacks } = callbacksOf({ logFormat: "text", logLevel }, text, isAnswer);
    callbacks.onPass({} as never);
    callbacks.onProblem({ from: "pods", message: "m" });
    callbacks.onEvent(seenEvent("Started", WEB));
    callbacks.onEvent(seenEvent("BackOff", WEB, { type: "Warning" }));
    callbacks.onDecision("eviction", { id: null, decidedBy: "here", verdict: "calm" } as never);
    return [...messages];
  };
  expect(tell("silent")).toEqual([]);
  expect(tell("warn")).toEqual(["onProblem", "onEvent"]);
  expect(tell("info")).toEqual(["onPass", "onProblem", "onEvent", "onEvent"]);
  expect(tell("debug")).toEqual(["onPass", "onProblem", "onEvent", "onEvent", "onDecision"]);
  expect(tell("silent", true)).toEqual(["onPass"]);
});

test("events and decisions are printed as lines with escapes and without credentials", () => {
  const terminal = { write() {}, warn() {}, columns: 80, paint: plainPaint };
  const event = seenEvent("BackOff", WEB, { type: "Warning", container: "app", message: "no\u001b[2J http://a:b@c/d" });
  expect(eventLine(event, terminal)).toBe(`${event.at} Warning BackOff shop/web app: no␛[2J http://***@c/d\n`);
  const answer = {
    id: "d-1",
    decidedBy: "api",
    verdict: "evicts",
    decision: {},
    reasons: [],
    needs: [],
    next: null,
  } as const;
  expect(decisionLine("eviction", answer)).toBe("eviction: evicts (by the API: d-1)\n");
  expect(decisionLine("eviction", { ...answer, id: null, decidedBy: "here" })).toBe("eviction: evicts (here)\n");
});
