import { isDeepStrictEqual } from "node:util";
import { expect, test } from "vitest";
import { cacheableInput, isCacheable } from "../../api/decide/input.ts";
import { DECIDERS } from "../../api/decide/kinds/index.ts";
import { KINDS } from "../../api/model/decision.ts";
import type { Snapshot } from "../../api/model/snapshot.ts";
import { effectiveSnapshot } from "../../api/profiles/effective.ts";
import { canonical } from "../../api/service/canonical.ts";
import { realSnapshot } from "../kit/real-node.ts";
import { decoded, type Json } from "../kit/snapshots.ts";
import { forNodes } from "./random-node.ts";

const SEED = 4711;
const COUNT = 150;
const NEW = { observedAt: "2026-01-31T12:00:00Z", bootId: "b", sequence: 7 };
const USAGE = { memory: { usageBytes: 5 }, fs: { usedBytes: 1, capacityBytes: 2 ** 36 }, rlimit: { curproc: 3 } };
const withUsage = (input: Json): Json => ({ stats: { node: USAGE }, ...input, ...NEW });

/** The answers of every kind whose answers are cached while a node does not change. */
const answers = (snapshot: Snapshot, of: (kind: "allocatable" | "cgroups") => Snapshot): unknown =>
  (["allocatable", "cgroups"] as const).map((kind) =>
    DECIDERS[kind]({ snapshot: effectiveSnapshot(of(kind) ?? snapshot), facts: {}, ask: undefined, explain: "full" }),
  );

test(`over ${COUNT} random nodes, a cacheable kind gives the same answer for its reduced input`, () => {
  expect(KINDS.filter(isCacheable)).toEqual(["allocatable", "cgroups"]);
  forNodes(SEED, COUNT, (input) => {
    const snapshot = decoded(withUsage(input));
    const steady = answers(snapshot, (kind) => {
      const given = cacheableInput(kind, snapshot);
      if (given === null) throw new Error(`${kind} is not steady`);
      for (const name of ["observedAt", "bootId", "sequence"]) expect(given).not.toHaveProperty(name);
      return given;
    });
    if (
      !isDeepStrictEqual(
        steady,
        answers(snapshot, () => snapshot),
      )
    )
      expect.fail("another answer");
  });
}, 60_000);

test("the canonical text equals JSON.stringify, and its repeat ranges leave out only what is always new", () => {
  let ranges = 0;
  const check = (snapshot: Snapshot): void => {
    const { text, repeats } = canonical(snapshot);
    expect(text).toBe(JSON.stringify(snapshot));
    let rest = "";
    let from = 0;
    for (const [start, end] of repeats) {
      rest += text.slice(from, start);
      from = end;
      ranges++;
    }
    rest += text.slice(from);
    const { observedAt, bootId, sequence, stats } = snapshot;
    const bare = JSON.stringify({ observedAt, bootId, sequence, stats });
    expect(rest.replace("{,", "{").replaceAll(/,+(?=}$)/g, "")).toBe(bare);
  };
  check(decoded({ ...realSnapshot(), ...NEW }));
  check(decoded({}));
  check(decoded({ ...NEW }));
  check(decoded({ pods: [] }));
  forNodes(SEED, 30, (input) => check(decoded(withUsage(input))));
  expect(ranges).toBeGreaterThan(40);
});
