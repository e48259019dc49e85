import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { commandTree } from "../../api/cli/command-tree.ts";
import { COMMANDS } from "../../api/cli/main.ts";
import { programOf } from "../../api/cli/program.ts";
import { SCHEMAS } from "../../api/cli/schema/command.ts";
import { terminalOn } from "../../api/cli/terminal.ts";
import { KINDS } from "../../api/model/decision.ts";
import { nodeStatus } from "../kit/node-status.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { expectPublished } from "./published.ts";
import { manifest, run } from "./run.ts";
import { statusServer } from "./status-server.ts";

const nowhere = { write: () => true };
const TREE = commandTree(
  programOf(
    { terminal: terminalOn(nowhere, nowhere, {}), isPlugin: false, env: {}, isPiped: () => false, exitWith: () => {} },
    COMMANDS,
  ),
);
/** The schemas of each command that prints JSON; for `decide KIND`, the schema of the kind. */
const SCHEMAS_OF: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(KINDS.map((kind) => [`decide ${kind}`, [kind]])),
  why: ["why", "why-list"],
  snapshot: ["snapshot"],
  machines: ["machines", "machine"],
  kinds: ["kinds"],
  pods: ["pods", "pod"],
  top: ["top"],
  probes: ["probes-status"],
  "probes history": ["probes-history"],
  "probes plan": ["probes-plan"],
  devices: ["devices-status"],
  "devices history": ["devices-history"],
  "devices allocate": ["devices-allocate"],
  "devices free": ["devices-free"],
  gc: ["gc"],
  takeover: ["takeover"],
  "token create": ["token"],
  "token list": ["token-list"],
  history: ["history"],
  "history show": ["history-show"],
  "history removals": ["history-removals", "history-removals-summary"],
  agreement: ["agreement"],
  lint: ["lint"],
  test: ["test-result"],
  upgrade: ["upgrade"],
  "advise reserves": ["advise"],
  version: ["version"],
  actuator: ["actuator"],
};

test("every command that prints JSON has a published schema", () => {
  const prints = TREE.filter(({ options }) =>
    options.some(({ flags, value }) => flags.includes("--output") && Array.isArray(value) && value.includes("json")),
  ).map(({ path }) => path.join(" "));
  expect(prints.filter((path) => !(path in SCHEMAS_OF))).toEqual([]);
  expect(Object.keys(SCHEMAS_OF).filter((path) => !prints.includes(path))).toEqual([]);
  expect(Object.values(SCHEMAS_OF).flatMap((names) => names.filter((name) => !SCHEMAS.includes(name)))).toEqual([]);
});

const scratch = scratchFolder();
const IN_SCRATCH = ["--data-dir", join(scratch, "history")];
test.each([
  ["version", ["version"]],
  ["kinds", ["kinds"]],
  ["machines", ["machines"]],
  ["machine", ["machines", "xeon-2s"]],
  ["test-result", ["test", "docs/guide/policy-tests"]],
  ["probes-plan", ["probes", "plan", manifest("probed.yaml")]],
  ["probes-history", ["probes", "history", "--state-dir", scratch]],
  ["devices-history", ["devices", "history", "--state-dir", scratch]],
  ["token", ["token", "create", "me", "--scope", "read", ...IN_SCRATCH]],
  ["token", ["token", "create", "worker", "--print"]],
  ["token-list", ["token", "list", ...IN_SCRATCH]],
])("the schema of %s fits what `%s` prints", async (name, args) => {
  const { code, stdout, stderr } = await run([...args, "-o", "json"]);
  expect([code, stdout === ""], stderr).toEqual([0, false]);
  await expectPublished(name, stdout);
});

describe("the schema of what a daemon reports", () => {
  const numa = [{ node: 0, devices: 1, allocated: 0 }];
  const gpu = { resource: "vendor.com/gpu", plugin: "registered", endpoint: "/p", numa, holders: [] } as const;
  const counts = { capacity: 1, allocatable: 1, allocated: 0, flips: 0, pending: 0 };
  const daemon = statusServer(() => nodeStatus({ devices: [{ ...gpu, ...counts }] }));
  test.each([
    ["pods", ["pods"]],
    ["pod", ["pods", "batch"]],
    ["top", ["top"]],
    ["probes-status", ["probes"]],
    ["devices-status", ["devices"]],
  ])("the schema of %s fits what `%s` prints", async (name, args) => {
    const { stdout } = await run([...args, "--status-url", daemon.url, "-o", "json"]);
    await expectPublished(name, stdout);
  });
});
