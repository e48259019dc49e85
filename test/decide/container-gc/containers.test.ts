import { describe, expect, test } from "vitest";
import type { Json } from "../../kit/snapshots.ts";
import { answer, codesOf, gcContainer, gcNode, kept, live, NOW, READY, removed, sandbox } from "./container-gc-kit.ts";

const MINUTE = 60_000;
/** Three dead containers of `a`, the newest last; their sandbox is in use. */
const THREE = [gcContainer("a1", "a", 3 * MINUTE), gcContainer("a2", "a", 2 * MINUTE), gcContainer("a3", "a", MINUTE)];
const LIVE = [sandbox("sb-a", "a", 9 * MINUTE, READY)];
const limits = (perContainer: number, total = -1, more: Json = {}): Json => ({
  maximumDeadContainersPerContainer: perContainer,
  maximumDeadContainers: total,
  ...more,
});
const named = (c: Json, name: string): Json => ({ ...c, metadata: { name, attempt: 0 } });

describe("dead containers of an existing pod", () => {
  test("are removed oldest first, all but the newest of each name by default", () => {
    const decided = answer(gcNode([live("a")], { containers: [...THREE].reverse(), sandboxes: LIVE }));
    expect(removed(decided)).toEqual(["a1: per-container-limit", "a2: per-container-limit"]);
    expect(kept(decided)).toEqual(["a3: within-limits", "sb-a: sandbox-ready"]);
    expect(decided.verdict).toBe("removes");
    expect(decided.decision.policy).toEqual({ minAgeMs: 0, maxPerPodContainer: 1, maxContainers: -1 });
    expect(decided.decision.remove[0]).toEqual({
      target: "container",
      id: "a1",
      pod: { namespace: "default", name: "a", uid: "uid-a" },
      name: "c",
      attempt: 0,
      state: "CONTAINER_EXITED",
      createdAtMs: NOW - 3 * MINUTE,
      place: 1,
      why: "per-container-limit",
      stopFirst: false,
      tie: false,
      end: "planned",
    });
    expect(decided.next).toBeNull();
    expect([decided.decision.error, decided.decision.events]).toEqual([null, []]);
  });
  test.each([
    [-1, []],
    [0, ["a1", "a2", "a3"]],
    [2, ["a1"]],
    [3, []],
  ])("are removed beyond a limit of %i per container name", (most, gone) => {
    const decided = answer(gcNode([live("a")], { containers: THREE, sandboxes: LIVE }, limits(most)));
    expect(decided.decision.remove.map((r) => r.id)).toEqual(gone);
    expect(decided.verdict).toBe(gone.length > 0 ? "removes" : "keeps");
  });
  test("are counted per container name and per pod", () => {
    const containers = [
      ...THREE.map((c) => named(c, "c")),
      named(gcContainer("x1", "a", 9), "x"),
      gcContainer("b1", "b", 9),
    ];
    const decided = answer(gcNode([live("a"), live("b")], { containers, sandboxes: LIVE }));
    expect(decided.decision.remove.map((r) => r.id)).toEqual(["a1", "a2"]);
  });
  test("do not include running containers, which stay and do not count", () => {
    const running = gcContainer("a0", "a", 9 * MINUTE, { state: "CONTAINER_RUNNING" });
    const decided = answer(gcNode([live("a")], { containers: [running, ...THREE], sandboxes: LIVE }, limits(0)));
    expect(decided.decision.remove.map((r) => r.id)).toEqual(["a1", "a2", "a3"]);
    expect(kept(decided)[0]).toBe("a0: running");
  });
  test("include containers never started, and ones of unknown state, which are stopped first", () => {
    const containers = [
      gcContainer("a1", "a", 3, { state: "CONTAINER_CREATED" }),
      gcContainer("a2", "a", 2, { state: "CONTAINER_UNKNOWN" }),
    ];
    const { decision } = answer(gcNode([live("a")], { containers, sandboxes: LIVE }, limits(0)));
    expect(decision.remove.map((r) => [r.id, r.stopFirst])).toEqual([
      ["a1", false],
      ["a2", true],
    ]);
  });
  test("of the same creation time are removed by smaller id and marked as a tie", () => {
    const containers = ["z", "m", "k"].map((id) => gcContainer(id, "a", MINUTE));
    const { decision } = answer(gcNode([live("a")], { containers, sandboxes: LIVE }));
    expect(decision.remove.map((r) => [r.id, r.tie])).toEqual([
      ["k", true],
      ["m", true],
    ]);
  });
  test("are both marked as a tie when two share a creation time, others are not", () => {
    const containers = [gcContainer("o", "a", 2 * MINUTE), ...["k", "m"].map((id) => gcContainer(id, "a", MINUTE))];
    const { decision } = answer(gcNode([live("a")], { containers, sandboxes: LIVE }, limits(0)));
    expect(decision.remove.map((r) => [r.id, r.tie])).toEqual([
      ["o", false],
      ["k", true],
      ["m", true],
    ]);
  });
  test("are no tie when their creation times differ by a nanosecond", () => {
    const at = (id: string, nanos: string): Json => ({ ...gcContainer(id, "a", 0), createdAt: nanos });
    const containers = [at("a", "1769860799000000001"), at("b", "1769860799000000000")];
    const { decision } = answer(gcNode([live("a")], { containers, sandboxes: LIVE }));
    expect(decision.remove.map((r) => [r.id, r.tie])).toEqual([["b", false]]);
  });
});

describe("the minimum age of dead containers", () => {
  const old = limits(0, -1, { minimumContainerTTLMs: MINUTE });
  const at = (createdAt: string) =>
    answer(gcNode([live("a")], { containers: [{ ...THREE[0], createdAt }], sandboxes: LIVE }, old));
  test("is reached exactly at the age, and not a nanosecond earlier", () => {
    const edge = BigInt(NOW - MINUTE) * 1_000_000n;
    expect(removed(at(String(edge)))).toEqual(["a1: per-container-limit"]);
    const young = at(String(edge + 1n));
    expect(kept(young)[0]).toBe("a1: too-young");
    // its age counts from the next whole millisecond
    expect(young.decision.keep[0]?.oldEnoughAtMs).toBe(NOW + 1);
    expect(at(String(edge + 1_000_000n)).decision.keep[0]?.oldEnoughAtMs).toBe(NOW + 1);
  });
  test("is measured with the nanoseconds of observedAt", () => {
    const snapshot = gcNode([live("a")], { containers: [{ ...THREE[0], createdAt: "1769860740000000001" }] }, old);
    expect(removed(answer({ ...snapshot, observedAt: "2026-01-31T12:00:00.000000001Z" }))).toHaveLength(1);
    expect(removed(answer({ ...snapshot, observedAt: "2026-01-31T13:00:00+01:00" }))).toHaveLength(0);
  });
  test("keeps young containers out of the count for the limits", () => {
    const containers = [...THREE, gcContainer("a4", "a", 1)];
    const decided = answer(gcNode([live("a")], { containers, sandboxes: LIVE }, { minimumContainerTTLMs: MINUTE }));
    expect(removed(decided)).toEqual(["a1: per-container-limit", "a2: per-container-limit"]);
    expect(kept(decided).slice(0, 2)).toEqual(["a3: within-limits", "a4: too-young"]);
  });
  test("keeps every container when it reaches back before 1970", () => {
    const snapshot = gcNode([live("a")], { containers: THREE }, { minimumContainerTTLMs: Number.MAX_SAFE_INTEGER });
    expect(removed(answer(snapshot))).toEqual([]);
  });
});

describe("the total limit of dead containers", () => {
  const minutes = (n: number) => n * MINUTE;
  /** Dead containers: `a` has four, `b` has two, `d` has one. */
  const CROWD = [
    ...[9, 8, 7, 2].map((n) => gcContainer(`a${n}`, "a", minutes(n))),
    ...[6, 3].map((n) => gcContainer(`b${n}`, "b", minutes(n))),
    gcContainer("d5", "d", minutes(5)),
  ];
  const ids = (total: number, perContainer = -1): readonly string[] =>
    answer(gcNode([live("a"), live("b"), live("d")], { containers: CROWD }, limits(perContainer, total)))
      .decision.remove.filter((r) => r.target === "container")
      .map((r) => r.id);
  test("keeps the containers that it does not remove as within-limits", () => {
    const decided = answer(gcNode([live("a"), live("b"), live("d")], { containers: CROWD }, limits(-1, 2)));
    expect(kept(decided)).toEqual(["a2: within-limits", "b3: within-limits"]);
  });
  test("first leaves each container name an equal share", () => {
    expect(ids(7)).toEqual([]);
    // six containers for three pods: two each
    expect(ids(6)).toEqual(["a9", "a8"]);
  });
  test("leaves each name at least one, then removes the oldest of all", () => {
    // four containers for three pods: one each
    expect(ids(4)).toEqual(["a9", "a8", "a7", "b6"]);
    expect(ids(2)).toEqual(["a9", "a8", "a7", "b6", "d5"]);
    expect(ids(0)).toEqual(["a9", "a8", "a7", "b6", "d5", "b3", "a2"]);
  });
  test("applies after the limit per container name", () => {
    const decided = answer(gcNode([live("a"), live("b"), live("d")], { containers: CROWD }, limits(1, 2)));
    expect(removed(decided)).toEqual([
      "a9: per-container-limit",
      "a8: per-container-limit",
      "a7: per-container-limit",
      "b6: per-container-limit",
      "d5: total-limit",
    ]);
    expect(codesOf(decided, "d5")).toContain("over_total_limit");
  });
  test("does not count containers of removed pods", () => {
    const decided = answer(gcNode([live("b"), live("d")], { containers: CROWD }, limits(-1, 3)));
    expect(removed(decided)).toEqual(["a9", "a8", "a7", "a2"].map((id) => `${id}: pod-removed`));
  });
});
