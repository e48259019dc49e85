import { expect, test } from "vitest";
import { type GuardEvents, type GuardState, guardStep, leastGroups } from "../../../api/decide/kinds/probe-guard.ts";
import type { GuardSettings } from "../../../api/model/probe-guard.ts";

const SETTINGS: GuardSettings = { windowSeconds: 10, least: { groups: 3 }, holdSeconds: 30 };
const failure = (name: string) => ({ containerId: name, group: `group-${name}` });
const CALM: GuardState = new Map();

/** Runs steps one after another; times are in seconds. */
function play(settings: GuardSettings = SETTINGS) {
  let state: GuardState = CALM;
  return (second: number, events: Partial<GuardEvents>) => {
    const whole = { groups: 100, failed: [], recovered: [], gone: [], ...events, atMs: second * 1_000 };
    const { next, killed, held, released, holding, why } = guardStep(settings, state, whole);
    state = next;
    return { killed, held, released, holding, why, size: next.size };
  };
}

test("the probe guard kills the containers of few failing groups without holding any", () => {
  const at = play();
  expect(at(0, { failed: [failure("a")] })).toMatchObject({ killed: ["a"], held: [] });
  expect(at(1, { failed: [failure("b")] })).toMatchObject({ killed: ["b"], held: [] });
  // the first two failures are no longer in the window
  expect(at(11.1, { failed: [failure("c")] })).toMatchObject({ killed: ["c"], held: [], size: 1 });
});

test("the probe guard holds kills from the third unrelated group in the window on, with a message", () => {
  const at = play();
  at(0, { failed: [failure("a")] });
  at(5, { failed: [failure("b")] });
  const third = at(10, { failed: [failure("c")] });
  expect(third).toMatchObject({ killed: [], held: ["c"] });
  expect(third).toMatchObject({
    released: [],
    holding: 1,
    why: "liveness probes of 3 unrelated groups of 100 failed within 10 s; from 3 on kills are held, for 30 s at most",
  });
  // a container that keeps failing is not reported again
  expect(at(11, { failed: [failure("c"), failure("d")] })).toMatchObject({ killed: [], held: ["d"], released: [] });
  expect(at(12, { failed: [failure("c")] })).toMatchObject({ killed: [], held: [], released: [] });
});

test("the probe guard judges failures of one step together", () => {
  expect(play()(0, { failed: ["a", "b", "c"].map(failure) })).toMatchObject({ killed: [], held: ["a", "b", "c"] });
});

test("the probe guard sees no storm in failing pods of one owner, however many", () => {
  const of = (name: string) => ({ containerId: name, group: "rs-1" });
  expect(play()(0, { failed: ["a", "b", "c", "d"].map(of) })).toMatchObject({ killed: ["a", "b", "c", "d"] });
});

test("a held kill is released when its container recovers or is removed", () => {
  const at = play();
  at(0, { failed: ["a", "b", "c"].map(failure) });
  const { released, holding } = at(1, { recovered: ["a"], gone: ["b", "never seen"] });
  expect(released).toEqual([
    { containerId: "a", why: "recovered" },
    { containerId: "b", why: "gone" },
  ]);
  expect(holding).toBe(1);
});

test("a held kill goes ahead when the other groups no longer fail", () => {
  const at = play();
  at(0, { failed: ["a", "b", "c"].map(failure) });
  at(1, { recovered: ["a", "b"] });
  expect(at(2, { failed: [failure("c")] })).toMatchObject({
    killed: ["c"],
    released: [{ containerId: "c", why: "calm" }],
  });
});

test("a kill is held for the maximum time at most, and then counts as failing for the others", () => {
  const at = play();
  at(0, { failed: ["a", "b"].map(failure) });
  at(0.5, { failed: ["c"].map(failure) });
  expect(at(30.4, { failed: [failure("c")] })).toMatchObject({ killed: ["c"], released: [{ why: "calm" }] });
  const on = play();
  on(0, { failed: ["a", "b", "c"].map(failure) });
  expect(on(29.9, { failed: ["a", "b", "c"].map(failure) }).killed).toEqual([]);
  expect(on(30, { failed: [failure("a")] })).toMatchObject({
    killed: ["a"],
    released: [{ containerId: "a", why: "held long enough" }],
  });
  // a is replaced by a new container; d, b and c are still three groups
  expect(on(31, { gone: ["a"], failed: [failure("d")] })).toMatchObject({ killed: [], held: ["d"] });
});

test("a killed container still counts as failing after its removal", () => {
  const at = play();
  expect(at(0, { failed: ["a", "b"].map(failure) }).killed).toEqual(["a", "b"]);
  expect(at(1, { gone: ["a", "b"] }).released).toEqual([]);
  expect(at(2, { failed: [failure("c")] })).toMatchObject({ killed: [], held: ["c"] });
});

test("a held container counts towards the storm even if its probe period exceeds the window", () => {
  const at = play();
  at(0, { failed: ["a", "b", "c"].map(failure) });
  expect(at(20, { failed: [failure("d")] })).toMatchObject({ killed: [], held: ["d"] });
});

test("a storm share counts groups with liveness probes, and one group alone is never a storm", () => {
  const settings = { ...SETTINGS, least: { share: 0.2 } };
  expect([100, 11, 3, 0].map((groups) => leastGroups(settings, groups))).toEqual([20, 3, 2, 2]);
  expect(leastGroups({ ...SETTINGS, least: { groups: 1 } }, 50)).toBe(2);
  const at = play(settings);
  expect(at(0, { groups: 10, failed: [failure("a")] }).killed).toEqual(["a"]);
  expect(at(0, { groups: 10, failed: [failure("b")] }).killed).toEqual([]);
});

test("a step of the probe guard does not modify the state passed to it", () => {
  const before = guardStep(SETTINGS, CALM, {
    atMs: 0,
    groups: 9,
    failed: ["a", "b", "c"].map(failure),
    recovered: [],
    gone: [],
  });
  const copy = structuredClone(before.next);
  guardStep(SETTINGS, before.next, { atMs: 40_000, groups: 9, failed: [failure("a")], recovered: ["b"], gone: ["c"] });
  expect(before.next).toEqual(copy);
  expect(CALM.size).toBe(0);
});
