import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "vitest";
import { DECIDERS } from "../../api/decide/kinds/index.ts";
import { effectiveSnapshot } from "../../api/profiles/effective.ts";
import { allocatableOf, cgroupsOf, reasonsOf } from "../decide/ask.ts";
import { decoded, fromJson } from "../kit/snapshots.ts";
import { forNodes } from "./random-node.ts";

const SEED = 777;
const COUNT = 250;
/** Allows for a loaded machine; the test does not measure speed. */
const PATIENT = { timeout: 120_000 };
const must = (holds: boolean, message: () => string): void => {
  if (!holds) expect.fail(message());
};

describe(`answers over ${COUNT} random nodes from seed ${SEED}`, PATIENT, () => {
  test("are the same for the same input, whatever is explained, without a change of the input", () => {
    forNodes(SEED, COUNT, (input) => {
      const snapshot = deepFreeze(decoded(input));
      for (const kind of ["cgroups", "allocatable"] as const) {
        const ask = (explain: "off" | "reasons" | "full") =>
          DECIDERS[kind]({ snapshot: effectiveSnapshot(snapshot), facts: {}, ask: undefined, explain });
        const [first, again, off, full] = [ask("reasons"), ask("reasons"), ask("off"), ask("full")];
        if (!first.ok || !off.ok || !full.ok) return expect.fail(`${kind} is refused`);
        must(isDeepStrictEqual(first, again), () => `${kind} differs from itself`);
        must(isDeepStrictEqual(first.value.decision, off.value.decision), () => `${kind} differs unexplained`);
        must(isDeepStrictEqual(first.value.decision, full.value.decision), () => `${kind} differs explained in full`);
        must(isDeepStrictEqual(first.value.reasons, full.value.reasons), () => `${kind}: full is no more than reasons`);
        must(unsafe(first.value).length === 0, () => `${kind}: ${unsafe(first.value)}`);
        must(off.value.reasons.length === 0 && first.value.reasons.length > 0, () => `${kind}: reasons`);
        must(
          first.value.verdict === off.value.verdict && isDeepStrictEqual(first.value.needs, full.value.needs),
          () => kind,
        );
      }
      const stored = fromJson(JSON.stringify(snapshot));
      must(
        isDeepStrictEqual(cgroupsOf(stored).decision, cgroupsOf(input).decision),
        () => "its stored form answers otherwise",
      );
    });
  });
  test("have a reason with cgroup and field for every value", () => {
    expect(reasonGaps()).toEqual([]);
  });
  test("have allocatable within capacity, and kubepods memory of at least allocatable", () => {
    forNodes(SEED, COUNT, (input) => {
      const { capacity, allocatable, kubepods } = allocatableOf(input).decision;
      for (const [name, text] of Object.entries(allocatable))
        must(bytesOf(text) <= bytesOf(capacity[name] ?? ""), () => `${name}: ${text}`);
      must(Object.keys(capacity).join() === Object.keys(allocatable).join(), () => "other names");
      must(
        BigInt(kubepods.values.memory ?? -1) * 1000n >= bytesOf(allocatable["memory"] ?? ""),
        () => "kubepods memory",
      );
    });
  });
});

function reasonGaps(): string[] {
  const gaps: string[] = [];
  let explained = 0;
  forNodes(SEED, COUNT, (input) => {
    const answer = cgroupsOf(input);
    const { decision } = answer;
    const reported = new Set(reasonsOf(answer).map((r) => `${r.at} ${r.field}`));
    for (const { path, values } of decision.cgroups) {
      for (const field of Object.keys(values)) {
        if (reported.has(`${path} ${field}`)) explained++;
        else gaps.push(`${path} ${field}`);
      }
    }
  });
  expect(explained).toBeGreaterThan(5000);
  return gaps.slice(0, 5);
}
function bytesOf(text: string): bigint {
  const scale: Record<string, bigint> = {
    m: 1n,
    "": 1000n,
    k: 10n ** 6n,
    M: 10n ** 9n,
    G: 10n ** 12n,
    T: 10n ** 15n,
    P: 10n ** 18n,
  };
  const power = ["Ki", "Mi", "Gi", "Ti", "Pi"].indexOf(text.replace(/^\d+/, ""));
  const unit = power >= 0 ? 1024n ** BigInt(power + 1) * 1000n : scale[text.replace(/^\d+/, "")];
  if (unit === undefined) throw new Error(`what is ${text}?`);
  return BigInt(text.replace(/\D/g, "")) * unit;
}
/** Whole numbers that a JSON parser may round. */
function unsafe(value: unknown): number[] {
  const found: number[] = [];
  JSON.stringify(value, (_, v: unknown) => {
    if (typeof v === "number" && !(Math.abs(v) <= Number.MAX_SAFE_INTEGER)) found.push(v);
    return v;
  });
  return found;
}
function deepFreeze<T>(v: T): T {
  if (typeof v === "object" && v !== null && !Object.isFrozen(v)) {
    Object.freeze(v);
    for (const member of Object.values(v)) deepFreeze(member);
  }
  return v;
}
