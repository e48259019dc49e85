import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { ProbeHistoryEntry } from "../../../actuator/probes/engine/history-entry.ts";
import { recordedOutcomes } from "../../../api/cli/probes/outcomes.ts";
import type { ProbeType } from "../../../api/model/probe-spec.ts";
import { podManifest } from "../../kit/manifests.ts";
import { scratchFolder } from "../../kit/scratch.ts";
import { type RunOptions, run } from "../run.ts";

const dir = scratchFolder();
const at = (name: string): string => join(dir, name);
const file = (name: string, text: string): string => {
  writeFileSync(at(name), text);
  return `@${at(name)}`;
};

const AT = "2026-11-22T12:00:00.000Z";
const of = (type: ProbeType, container = "app") => ({ at: AT, pod: "shop/web", podUid: "u", container, type });
const ran = (type: ProbeType, outcome: "success" | "failure" | "error", times: number, container?: string) =>
  ({ ...of(type, container), kind: "run", outcome, times }) satisfies ProbeHistoryEntry;
const became = (type: ProbeType, to: "Unknown" | "Success" | "Failure") =>
  ({ ...of(type), kind: "result", containerId: "i", from: null, to }) satisfies ProbeHistoryEntry;

test("recordedOutcomes lists runs in order, and what came after the last of them", () => {
  const entries = [
    became("liveness", "Success"),
    ran("liveness", "success", 12),
    ran("liveness", "failure", 1),
    ran("liveness", "success", 2),
    became("liveness", "Failure"),
    ran("readiness", "failure", 3),
    ran("readiness", "error", 3),
    became("startup", "Unknown"),
  ];
  expect(recordedOutcomes(entries)).toEqual({
    liveness: ["ok*12", "fail", "ok*2", "fail"],
    readiness: ["fail*3", "error*3", "ok"],
  });
  // no probe has reported an end yet, but its current result is known
  expect(recordedOutcomes([became("startup", "Success")])).toEqual({ startup: ["ok"] });
  expect(recordedOutcomes([ran("liveness", "success", 6000), ran("liveness", "failure", 9000)])).toEqual({
    liveness: ["ok*999", "fail*9000", "ok"],
  });
});

const livenessProbe = { exec: { command: ["true"] }, periodSeconds: 1, failureThreshold: 2 };
const POD = JSON.stringify(
  podManifest("web", {
    metadata: { namespace: "shop" },
    spec: { containers: [{ name: "app", image: "a:1", livenessProbe }] },
  }),
);
const HISTORY = [
  ran("liveness", "success", 3),
  ran("liveness", "failure", 1),
  ran("liveness", "success", 2, "side"),
  ran("liveness", "success", 2),
];
const recorded = (...args: string[]) => run(["probes", "outcomes", "--state-dir", at("state"), ...args]);
const decide = (args: readonly string[], options?: RunOptions) =>
  run(["decide", "probes", "--pod", at("pod.json"), "--seconds", "9", "-o", "json", ...args], options);
const livenessOf = (stdout: string): readonly string[] =>
  JSON.parse(stdout).decision.containers[0].probes[0].attempts.map(({ outcome }: { outcome: string }) => outcome);

test("a recorded history is replayed as a dry run, from a file and through a pipe", async () => {
  mkdirSync(at("state"));
  writeFileSync(at("state/probe-history.jsonl"), HISTORY.map((one) => `${JSON.stringify(one)}\n`).join(""));
  writeFileSync(at("pod.json"), POD);
  const ran = await recorded("--pod", "shop/web", "--container", "app");
  expect([ran.code, ran.stderr]).toEqual([0, ""]);
  expect(JSON.parse(ran.stdout)).toEqual({ liveness: ["ok*3", "fail", "ok*2", "fail"] });
  const as = ["ok", "ok", "ok", "fail", "ok", "ok", "fail", "fail"];
  const named = await decide(["--outcomes", file("outcomes.json", ran.stdout)]);
  expect(livenessOf(named.stdout).slice(0, 8)).toEqual(as);
  // the time of the first restart
  expect([named.code, JSON.parse(named.stdout).decision.firstRestartAtMs]).toEqual([1, 7000]);
  const piped = await decide(["--liveness", "@-"], { input: ran.stdout });
  expect(livenessOf(piped.stdout).slice(0, 8)).toEqual(as);
  const plain = await decide(["--outcomes", file("plain.txt", "ok*2,fail\n")]);
  expect(livenessOf(plain.stdout).slice(0, 4)).toEqual(["ok", "ok", "fail", "fail"]);
  // an option for one type takes precedence over the file
  const said = await decide(["--outcomes", `@${at("outcomes.json")}`, "--liveness", "ok"]);
  expect(new Set(livenessOf(said.stdout))).toEqual(new Set(["ok"]));
});

test("an unknown pod or container, and invalid files, are reported", async () => {
  const faults = await Promise.all([
    recorded("--pod", "shop/other"),
    recorded("--pod", "shop/web"),
    recorded("--pod", "shop/web", "--container", "db"),
    decide(["--outcomes", file("wrong.json", '{"live": "ok"}')]),
    decide(["--liveness", file("other.json", '{"startup": "ok"}')]),
    decide(["--outcomes", `@${at("missing.json")}`]),
    decide(["--outcomes", file("bad.json", '["ok", "perhaps"]')]),
  ]);
  expect(faults.map(({ code, stdout }) => [code, stdout])).toEqual([[4, ""], ...Array(6).fill([2, ""])]);
  const lines = faults.map(({ stderr }) => stderr.trimEnd());
  for (const [i, words] of [
    /has nothing about shop\/other$/,
    /^nodewise: --container: shop\/web has app and side: name one$/,
    /^nodewise: --container db: shop\/web has app and side$/,
    /wrong\.json: live: expected outcomes such as ok,fail\*3/,
    /--liveness @.*other\.json: the file has no liveness$/,
    /missing\.json: no such file/,
    /--outcomes: `perhaps` is no outcome/,
  ].entries())
    expect(lines[i]).toMatch(words);
});
