import { expect, test } from "vitest";
import type { Difference } from "../../api/service/difference.ts";
import type { Replayed } from "../../api/service/replay/replay-one.ts";
import { changedDecisionOf } from "../../api/service/replay/tally.ts";
import { decisionRow, T0 } from "../contract/store-rows.ts";

const versions = { recordedUnder: "1.36", replayedUnder: "1.37" };
const PODS = Array.from({ length: 7 }, (_, i) => `shop/web-${i}`);

const differing = (differences: readonly Difference[]): Replayed => ({
  ...versions,
  state: "differs",
  verdict: "refused",
  differences,
  truncated: false,
  pods: PODS,
  problem: null,
  answer: { policyVersion: "kubelet-1.36+7", decision: {} as never, reasons: [], needs: [] },
});
const lost = { ...versions, pods: [], verdict: null, differences: [], truncated: false, answer: null } as const;

test("a changed decision lists its first five differences and pods, and names values too long to list", () => {
  const long = "x".repeat(300);
  const differences = [
    { path: "a", recorded: 1, replayed: long },
    { path: "b", recorded: { deep: long } },
    ...Array.from({ length: 20 }, (_, i) => ({ path: `c${i}`, recorded: i, replayed: "x".repeat(254) })),
  ];
  const listed = changedDecisionOf(decisionRow({ id: "one", verdict: "decided" }), differing(differences));
  expect(listed).toMatchObject({ id: "one", decidedAt: new Date(T0).toISOString(), differenceCount: 22 });
  expect(listed).toMatchObject({ recordedVerdict: "decided", verdict: "refused", problem: null });
  expect(listed).toMatchObject({ ...versions, pods: PODS.slice(0, 5), podCount: 7 });
  expect(listed?.differences).toEqual([
    { path: "a", recorded: 1, omitted: ["replayed"] },
    { path: "b", omitted: ["recorded"] },
    ...differences.slice(2, 5),
  ]);
});

test("a refused replay is listed with its reason, and an unchanged or missing decision is not", () => {
  const problem = { code: "invalid_configuration", detail: "no", needs: ["x"] } as const;
  const listed = changedDecisionOf(decisionRow(), { ...lost, state: "refused", problem });
  expect(listed).toMatchObject({ verdict: null, differences: [], problem: { code: problem.code, detail: "no" } });
  expect(changedDecisionOf(decisionRow(), { ...lost, state: "gone", problem })).toBeNull();
  expect(changedDecisionOf(decisionRow(), { ...differing([]), state: "same" } as Replayed)).toBeNull();
});
