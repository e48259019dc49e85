import { describe, expect, test } from "vitest";
import { decodeContainerGcAsk } from "../../../api/model/container-gc.ts";
import type { Json } from "../../kit/snapshots.ts";
import {
  answer,
  attempt,
  codesOf,
  gcContainer,
  gcNode,
  kept,
  live,
  NOW,
  removed,
  sandbox,
} from "./container-gc-kit.ts";

const WHOLE = gcNode([live("a")], { containers: [gcContainer("c1", "a", 1)], sandboxes: [sandbox("sb-a", "a", 2)] });
const refusal = (snapshot: Json) => {
  const result = attempt(snapshot);
  if (result.ok) throw new Error(`decided: ${removed(result.value)}`);
  return result.error;
};
const without = (...path: readonly string[]): Json => {
  const copy = structuredClone(WHOLE);
  const last = path.at(-1) as string;
  const parent = path.slice(0, -1).reduce<Json>((at, key) => at[key] as Json, copy);
  delete parent[last];
  return copy;
};

describe("incomplete input of container garbage collection", () => {
  test.each([
    [["observedAt"], "observedAt"],
    [["pods"], "pods"],
    [["runtime", "containers"], "runtime.containers"],
    [["runtime", "sandboxes"], "runtime.sandboxes"],
    [["pods", "0", "metadata", "uid"], "pods[0].metadata.uid"],
  ])("is refused without %j", (path, needed) => {
    expect(refusal(without(...path))).toEqual({
      code: "needs_input",
      message: `a pass over containers needs ${needed}`,
      needs: [needed],
    });
  });
  test("is refused with all missing parts named at once", () => {
    expect(refusal({}).needs).toEqual(["observedAt", "pods", "runtime.containers", "runtime.sandboxes"]);
  });
  test("is accepted when only a pod of another node lacks its uid", () => {
    const elsewhere = { metadata: { name: "x" }, spec: { nodeName: "n2", containers: [{ name: "c" }] } };
    const here = { node: { metadata: { name: "n1" } }, pods: [live("a"), elsewhere] };
    expect(answer({ ...WHOLE, ...here }).verdict).toBe("keeps");
  });
  test("is decided without the lists of logs, which are named in needs", () => {
    const decided = answer(without("runtime", "podLogDirectories"));
    expect(decided.needs).toEqual(["runtime.podLogDirectories"]);
    expect(answer(without("runtime", "danglingLogLinks")).needs).toEqual(["runtime.danglingLogLinks"]);
    expect(answer(WHOLE).needs).toEqual([]);
  });
});

test.each([
  [-1, "-1ms"],
  [-1000, "-1s"],
  [-1500, "-1.5s"],
  [-61_050, "-1m1.05s"],
  [-3_600_000, "-1h0m0s"],
  [-90_061_001, "-25h1m1.001s"],
])("minimumContainerTTL of %i ms is refused in the kubelet's words", (minimumContainerTTLMs, text) => {
  expect(refusal({ ...WHOLE, kubelet: { minimumContainerTTLMs } })).toEqual({
    code: "invalid_configuration",
    message: `invalid minimum garbage collection age: ${text}`,
    needs: [],
  });
});

describe("contradictory lists of containers and sandboxes", () => {
  test.each(["containers", "sandboxes"])("are refused when one id occurs twice in %s", (list) => {
    const runtime = WHOLE["runtime"] as Record<string, readonly Json[]>;
    const [first] = runtime[list] as readonly [Json];
    const twice = { ...WHOLE, runtime: { ...runtime, [list]: [first, first] } };
    expect(refusal(twice)).toEqual({
      code: "invalid_state",
      message: `runtime.${list}[1].id \`${first["id"]}\` is also that of runtime.${list}[0]`,
      needs: [],
    });
  });
  test("give a container without a listed sandbox the reason sandbox_not_listed", () => {
    const containers = [gcContainer("c1", "a", 1, { podSandboxId: "else" }), gcContainer("c2", "a", 2)];
    const alone = { ...containers[1], podSandboxId: undefined };
    const decided = answer(gcNode([live("a")], { containers: [containers[0], alone] }));
    expect(codesOf(decided, "c1")).toContain("sandbox_not_listed");
    expect(codesOf(decided, "c2")).toContain("sandbox_not_listed");
    expect(codesOf(answer(WHOLE), "c1")).not.toContain("sandbox_not_listed");
  });
  test("give a missing attempt as null with the reason attempt_missing, and order by age alone", () => {
    const runtime = {
      containers: [gcContainer("c1", "a", 1, { metadata: { name: "c" } })],
      sandboxes: [sandbox("sb-a", "a", 2, { metadata: { name: "a", uid: "uid-a" } })],
    };
    const decided = answer(gcNode([live("a")], runtime));
    expect(decided.decision.keep.map((k) => k.attempt)).toEqual([null, null]);
    expect(codesOf(decided, "c1")).toContain("attempt_missing");
    expect(codesOf(decided, "sb-a")).toContain("attempt_missing");
  });
  test("keep a container that was created in the future as too young (reason created_in_future)", () => {
    const decided = answer(gcNode([], { containers: [gcContainer("c1", "a", -5000)] }));
    expect(kept(decided)).toEqual(["c1: too-young"]);
    expect(decided.decision.keep[0]?.oldEnoughAtMs).toBe(NOW + 5000);
    expect(codesOf(decided, "c1")).toContain("created_in_future");
  });
  test("count a log directory that is listed twice once", () => {
    expect(removed(answer(gcNode([], { podLogDirectories: ["n_p_u", "n_p_u"] })))).toEqual(["n_p_u: pod-removed"]);
  });
});

test("a malformed container GC ask is refused with the paths of its faults", () => {
  const read = decodeContainerGcAsk({ operation: "all", done: [{ id: "c1", end: "gone" }] });
  expect(read.ok ? [] : read.error.map((i) => i.path)).toEqual(["ask.operation", "ask.done[0].end"]);
  expect(decodeContainerGcAsk(undefined)).toEqual({ ok: true, value: { operation: "garbage-collect", done: null } });
});
