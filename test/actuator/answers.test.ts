import { expect, test, vi } from "vitest";
import { checkAnswer } from "../../actuator/client/client.ts";
import type { Kind } from "../../api/model/decision.ts";
import { answered, type Reply, snapshot } from "./answered.ts";

vi.setConfig({ testTimeout: 60_000 });

const KINDS = ["allocatable", "cgroups", "cpus", "admission", "eviction", "container-gc", "image-gc"] as const;

test.each(KINDS)("the core's own answer to %s passes the check", (kind) => {
  const checked = checkAnswer(kind, snapshot, answered(kind));
  expect(checked.ok ? "" : checked.error).toBe("");
  expect(checked.ok && checked.value.decidedBy).toBe("api");
});

/** The reply with `value` at the path. */
function replyWith(reply: Reply, path: readonly (string | number)[], value: unknown): Reply {
  const copy = structuredClone(reply) as Record<string | number, unknown>;
  let at = copy;
  for (const step of path.slice(0, -1)) at = at[step] as Record<string | number, unknown>;
  at[path.at(-1) as string] = value;
  return copy;
}
test.each([["decision"], ["decision", "cgroups", 1], ["decision", "cgroups", 1, "values"]])(
  "an unknown field of a newer API at %j passes the check",
  (...path) => {
    const checked = checkAnswer("cgroups", snapshot, replyWith(answered("cgroups"), [...path, "more"], 1));
    expect(checked.ok ? "" : checked.error).toBe("");
  },
);
const STRANGER = { namespace: "x", name: "y", uid: "nobody" };
const EVICTS = { pod: STRANGER, cause: "threshold", reason: "Evicted", message: "", gracePeriodSeconds: 0 };

test.each<readonly [Kind, readonly (string | number)[], unknown, RegExp]>([
  ["cgroups", ["id"], 7, /^id: /],
  ["cgroups", ["verdict"], "fine", /^verdict: is no verdict/],
  ["cgroups", ["decision"], undefined, /^decision: /],
  ["cgroups", ["decision", "version"], 3, /^decision\.version: /],
  ["cgroups", ["decision", "cgroups", 1, "path"], "/../../etc", /^decision\.cgroups\.1\.path: must not lead out/],
  ["cgroups", ["decision", "cgroups", 1, "path"], "kubepods", /^decision\.cgroups\.1\.path: must be a path/],
  ["cgroups", ["decision", "cgroups", 1, "files", 0, "path"], "../x", /files\.0\.path: must be the name/],
  ["cgroups", ["decision", "cgroups", 1, "files", 0, "value"], 5, /files\.0\.value: /],
  ["cgroups", ["decision", "cgroups", 1, "values", "cpuShares"], 1e9, /values\.cpuShares: /],
  ["cgroups", ["decision", "cgroups", 1, "values", "memory"], -5, /values\.memory: /],
  ["cgroups", ["decision", "cgroups", 1, "values", "oomScoreAdj"], -1001, /values\.oomScoreAdj: /],
  ["cgroups", ["decision", "cgroups", 1, "values", "cpusetCpus"], "0; rm", /values\.cpusetCpus: must be a list/],
  ["cgroups", ["decision", "cgroups", 1, "pod"], STRANGER, /pod x\/y \(nobody\), which this node does not have/],
  ["eviction", ["decision", "evicted"], [EVICTS], /pod x\/y \(nobody\), which this node does not have/],
  ["eviction", ["decision", "evicted"], [{ ...EVICTS, gracePeriodSeconds: -1 }], /gracePeriodSeconds: /],
  ["eviction", ["decision", "evicted"], [{ ...EVICTS, cause: "mood" }], /^decision\.evicted\.0\.cause: /],
  ["eviction", ["decision", "reclaim"], { nodeLevel: [] }, /^decision\.reclaim\.threshold: /],
  ["eviction", ["decision", "conditions"], [{ type: "Mood" }], /^decision\.conditions\.0\.type: /],
  ["eviction", ["next"], { atMs: "now" }, /^next\.?/],
  ["eviction", ["next"], null, /^next: is missing/],
  ["admission", ["decision", "admit"], "yes", /^decision\.admit: /],
  ["admission", ["next"], { assignments: { cpu_manager_state: "{" } }, /^next\.assignments\.cpu_manager_state: /],
  ["container-gc", ["decision", "remove"], [{ id: "" }], /^decision\.remove\.0\./],
  ["image-gc", ["decision", "remove"], {}, /^decision\.remove: /],
  ["allocatable", ["decision", "allocatable"], { cpu: 1 }, /^decision\.allocatable\.cpu: /],
])("an answer to %s with an invalid value at %j is rejected with the reason", (kind, path, value, pattern) => {
  const checked = checkAnswer(kind, snapshot, replyWith(answered(kind), path, value));
  expect(checked.ok ? "it passed" : checked.error).toMatch(pattern);
});
