import { expect, test } from "vitest";
import { decideProbeGuard } from "../../../api/decide/kinds/probe-guard.ts";
import { decodeProbeGuardAsk } from "../../../api/model/probe-guard.ts";

const guard = { windowSeconds: 30, least: { share: 0.5 }, holdSeconds: 120 };
const failed = (name: string) => ({ containerId: `id-${name}`, container: `shop/${name}/app`, group: `group-${name}` });
const known = (name: string, failedAgoMs: number, heldForMs: number | null) => ({
  ...failed(name),
  failedAgoMs,
  heldForMs,
});
function decided(ask: object) {
  const decoded = decodeProbeGuardAsk({ guard, groups: 5, ...ask });
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
  const answer = decideProbeGuard({ snapshot: {}, facts: {}, ask: decoded.value, explain: "reasons" });
  if (!answer.ok) throw new Error(answer.error.message);
  const reported = answer.value.reasons.flatMap(({ at, because }) =>
    because.map(({ code, numbers }) => [at, code, numbers]),
  );
  return { ...answer.value, reported };
}
const issues = (ask: unknown): readonly string[] => {
  const decoded = decodeProbeGuardAsk(ask);
  return decoded.ok ? [] : decoded.error.map(({ path, message }) => `${path}: ${message}`);
};

test("a single liveness failure is killed, and the message says how many groups make a storm", () => {
  const { decision, verdict, reported } = decided({ failed: [failed("a")] });
  expect(verdict).toBe("restarts");
  expect(decision).toEqual({
    ...{ storm: false, groups: 5, failingGroups: 1, leastGroups: 3, holding: 0, hold: [], released: [] },
    message:
      "liveness probes of 1 unrelated group of 5 failed within 30 s; from 3 on kills are held, for 120 s at most",
    kill: [{ containerId: "id-a", container: "shop/a/app" }],
    known: [known("a", 0, null)],
  });
  const numbers = { failingGroups: 1, groups: 5, leastGroups: 3, windowSeconds: 30, share: 0.5 };
  expect(reported).toEqual([
    ["node", "no_probe_storm", numbers],
    ["shop/a/app", "kill_not_held", undefined],
  ]);
});

test("in a storm kills are held, and held ones are killed or released in time", () => {
  const { decision, verdict, reported } = decided({
    known: [known("a", 9_000, null), known("b", 10_000, 20_000), known("c", 1_000, 120_000), known("d", 5_000, 5_000)],
    failed: ["b", "c", "e"].map(failed),
    recovered: ["id-d"],
  });
  expect(verdict).toBe("keeps");
  expect(decision).toMatchObject({ storm: true, failingGroups: 4, holding: 2, kill: [{ container: "shop/c/app" }] });
  expect(decision.hold).toEqual([
    { containerId: "id-b", container: "shop/b/app", heldForMs: 20_000 },
    { containerId: "id-e", container: "shop/e/app", heldForMs: 0 },
  ]);
  expect(decision.released.map(({ container, why }) => [container, why])).toEqual([
    ["shop/d/app", "recovered"],
    ["shop/c/app", "held long enough"],
  ]);
  expect(decision.known).toEqual([
    known("a", 9_000, null),
    known("b", 0, 20_000),
    known("c", 0, null),
    known("e", 0, 0),
  ]);
  expect(reported.map(([at, code]) => [at, code])).toEqual([
    ["node", "probe_storm"],
    ["shop/b/app", "kill_held_on"],
    ["shop/e/app", "kill_held"],
    ["shop/d/app", "released_recovered"],
    ["shop/c/app", "released_held_long_enough"],
  ]);
});

test("failures are forgotten after the window, but a held kill stays until it is released", () => {
  const { decision, verdict } = decided({ known: [known("a", 31_000, null), known("b", 31_000, 31_000)] });
  expect([verdict, decision.known, decision.failingGroups]).toEqual(["keeps", [known("b", 31_000, 31_000)], 1]);
  expect(decided({ known: [known("b", 31_000, 31_000)], gone: ["id-b"] })).toMatchObject({
    verdict: "decided",
    decision: { released: [{ container: "shop/b/app", why: "gone" }], known: [] },
  });
});

test("an empty ask needs ask.guard, and faults are refused with their paths", () => {
  const nothing = decodeProbeGuardAsk(null);
  if (!nothing.ok) throw new Error("taken it is");
  const refused = decideProbeGuard({ snapshot: {}, facts: {}, ask: nothing.value, explain: "off" });
  expect(refused).toMatchObject({ ok: false, error: { code: "needs_input", needs: ["ask.guard"] } });
  expect(issues("storm")).toEqual(["ask: invalid input: expected object, received string"]);
  expect(issues({ guard: { ...guard, windowSeconds: -1 }, groups: -1 })).toEqual([
    "ask.guard.windowSeconds: too small: expected number to be >0",
    "ask.groups: too small: expected number to be >=0",
  ]);
  expect(issues({ guard, failed: [{ container: "a/b/c", group: "g" }] })[0]).toMatch(
    /^ask\.failed\[0\]\.containerId: /,
  );
  expect(issues({ guard: { ...guard, least: { share: 2 } } })[0]).toMatch(/^ask\.guard\.least/);
  expect(issues({ guard, strom: [] })[0]).toMatch(/strom/);
});
