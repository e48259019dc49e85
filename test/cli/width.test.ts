import { expect, test } from "vitest";
import { commandTree } from "../../api/cli/command-tree.ts";
import { COMMANDS } from "../../api/cli/main.ts";
import { programOf } from "../../api/cli/program.ts";
import { terminalOn } from "../../api/cli/terminal.ts";
import { decideKind } from "../../api/decide/kinds/index.ts";
import { KINDS, type Kind } from "../../api/model/decision.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { decodeAsk } from "../../api/model/decode-ask.ts";
import { colorPaint, widthOf } from "../../api/text/style.ts";
import { decidedText } from "../../api/text/tables/index.ts";
import { realNode } from "../kit/real-node.ts";
import { recordedCases } from "../model/decision-cases.ts";
import { oddCases } from "../model/odd-cases.ts";
import { run } from "./run.ts";

const COLUMNS = 80;
const env = { COLUMNS: `${COLUMNS}` };
const tooWide = (text: string): readonly string[] => text.split("\n").filter((line) => widthOf(line) > COLUMNS);

const nowhere = { write: () => true };
const TREE = commandTree(
  programOf(
    { terminal: terminalOn(nowhere, nowhere, {}), isPlugin: false, env: {}, isPiped: () => false, exitWith: () => {} },
    COMMANDS,
  ),
);

test("the help of every command fits the width, except examples, which are copied", async () => {
  for (const { path } of TREE) {
    const { stdout } = await run([...path, "--help"], { env });
    expect(stdout).toContain("Usage:");
    expect(tooWide(stdout.replace(/^Examples:\n(?: {2}.*\n)+/m, "")), path.join(" ")).toEqual([]);
  }
  expect(TREE.length).toBeGreaterThan(40);
});

test("option descriptions are whole lines, not a column of single words", async () => {
  const { stdout } = await run(["actuator", "--help"], { env });
  expect(stdout).toMatch(/^ {2}--settings <file> {20,}settings as YAML or JSON, under$/m);
});

test("no line of any kind's answer is too wide, including reasons and colours", {
  timeout: 120_000,
}, () => {
  const met = new Map<Kind, number>();
  for (const cases of [recordedCases(), oddCases()])
    for (const { kind, snapshot, ask } of cases) {
      const count = (met.get(kind) ?? 0) + 1;
      if (count > 60 && count % 25 > 0) continue;
      const [decoded, asked] = [decodeSnapshot(snapshot), decodeAsk(kind, ask)];
      if (!decoded.ok || !asked.ok) throw new Error(kind);
      const decided = decideKind(kind, { snapshot: decoded.value, facts: {}, ask: asked.value, explain: "full" });
      if (!decided.ok) continue;
      met.set(kind, count);
      const shown = { kind, node: "n1", decided: decided.value, explain: "full" } as const;
      const at = (columns: number): string => decidedText(shown, { paint: colorPaint, columns });
      expect(tooWide(at(COLUMNS)), `${kind} ${count}`).toEqual([]);
    }
  expect([...met.keys()].sort()).toEqual([...KINDS].sort());
});

const SNAPSHOT = ["--snapshot", realNode("snapshot.json")];
const CONFIG = ["--config", realNode("configz.json")];
const DOCUMENTS = ["-f", realNode("pods.json"), realNode("node.json")];
test.each([
  ["decide", "eviction", ...SNAPSHOT, "--set", "evictionHard.memory.available=1", "--kubelet", "1.37"],
  ["decide", "allocatable", ...SNAPSHOT, "--set", "kubeReserved.memory=1Gi", "--kubelet", "1.34"],
  ["decide", "cgroups", ...SNAPSHOT, "--explain", "full"],
  ["lint", ...CONFIG],
  ["upgrade", "--from", "1.36", "--to", "1.37", ...CONFIG],
  ["why", "besteffort", ...DOCUMENTS],
  ["kinds"],
  ["schema"],
  ["machines"],
  ["test", "docs/guide/policy-tests"],
])("the output of nodewise %s fits the width", async (...args) => {
  const { stdout } = await run(args, { env });
  expect(stdout).not.toBe("");
  expect(tooWide(stdout)).toEqual([]);
});

test("lines on standard error fit a terminal too, except commands to copy", () => {
  const lines: string[] = [];
  const stderr = { isTTY: true, columns: COLUMNS, write: (text: string) => lines.push(text) > 0 };
  const terminal = terminalOn(nowhere, stderr, {});
  terminal.warn(`nodewise: ${"a word ".repeat(30)}`);
  expect(tooWide(lines.join(""))).toEqual([]);
  terminal.warn(`nodewise: ${"a word ".repeat(30)}`, true);
  expect(tooWide(lines.join(""))).toHaveLength(1);
});
