import { expect, test } from "vitest";
import { answer as containers, gcNode as withContainers } from "../container-gc/container-gc-kit.ts";
import { answer, facts, gcNode, MINUTE, next, reasons, START } from "./image-gc-kit.ts";

const ERROR = "rpc error: code = Unavailable desc = gone";
const blind = (more: object = {}) => ({ ...gcNode([]), runtime: undefined, stats: undefined, ...more });

test.each([
  ["the first failure", false, {}, {}, true, []],
  ["a failure after another", true, {}, {}, true, ["ImageGCFailed"]],
  ["what the eviction manager asks for", false, { operation: "delete-unused" }, {}, false, []],
  ["no timer", false, {}, { kubeletConfiguration: { imageGCHighThresholdPercent: 100 } }, false, []],
] as const)("a pass without lists fails and keeps what is remembered: %s", (_, before, ask, more, failed, events) => {
  const known = facts([["a", -9 * MINUTE, null]], { failed: before });
  const reported = answer(blind(more), known, { ...ask, done: [], error: ERROR });
  expect(reported.verdict).toBe("fails");
  expect(reported.decision).toMatchObject({ remove: [], keep: [], freedBytes: 0, error: ERROR });
  expect(reported.decision.events).toEqual(events.map((reason) => ({ type: "Warning", reason, message: ERROR })));
  expect(reasons(reported)).toEqual(["runtime_list_failed image-gc"]);
  expect(next(reported)).toEqual({ ...known, atMs: START, failed });
});

test("a failed first pass records when watching images began (beganAtMs)", () => {
  const reported = answer(blind(), undefined, { error: ERROR });
  expect(next(reported)).toEqual({ atMs: START, beganAtMs: START, failed: true, records: [], removed: [] });
});

test.each([
  ["garbage-collect", ["ContainerGCFailed"]],
  ["delete-unused", []],
])("a container GC pass %s without lists fails with the events %j", (operation, events) => {
  const reported = containers(
    { ...withContainers([], {}), runtime: undefined, pods: undefined },
    { operation, error: ERROR },
  );
  expect(reported.verdict).toBe("fails");
  expect(reported.decision.error).toBe(ERROR);
  expect(reported.decision.events).toEqual(events.map((reason) => ({ type: "Warning", reason, message: ERROR })));
  expect(reasons(reported as never)).toEqual(["runtime_list_failed container-gc"]);
});
