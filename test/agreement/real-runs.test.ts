import { describe, expect, test } from "vitest";
import type { Comparison } from "../../api/model/outcome.ts";
import { collectedImages, endedByProbes, postedPods, type Run, underPressure } from "./real.ts";

const reported = ({ verdict, why, difference }: Comparison) => ({ verdict, why: why?.code ?? null, difference });
const AGREES = { verdict: "agrees", why: null, difference: null };
/**
 * Outcomes that cannot be compared, because of something that was not captured or because the kubelet's choice was
 * random.
 */
const NOT_COMPARABLE: Readonly<Record<string, string>> = {
  // the memory manager's state file was not captured
  "crit-integer-cpu-guaranteed admission crit": "state_files",
  // nine equal pods
  "crit-pods-count preemption f08": "order_is_chance",
  // a static pod that ran before the kubelet's restart
  "memory admission static1-n1": "already_in_snapshot",
  "disk admission static1-n1": "already_in_snapshot",
};

const RUNS: readonly Run[] = [
  ...postedPods("real-admission"),
  ...postedPods("real-preemption"),
  underPressure("memory"),
  underPressure("disk"),
  ...endedByProbes(),
  collectedImages(),
];
const all = RUNS.flatMap(({ name, outcomes, compared }) =>
  outcomes.map((outcome, i) => ({
    name: [name, outcome.kind, "pod" in outcome ? outcome.pod.name : ""].join(" ").trim(),
    outcome,
    compared: compared[i] as Comparison,
  })),
);

describe("outcomes of a real kubelet compared with decisions on the snapshot before", () => {
  test.each(all)("$name agrees, or is a known exception", ({ name, compared }) => {
    const why = NOT_COMPARABLE[name];
    expect(reported(compared)).toEqual(
      why === undefined ? AGREES : { verdict: "not-comparable", why, difference: null },
    );
  });
  test("have the expected numbers by kind and verdict", () => {
    const counts = new Map<string, number>();
    for (const { outcome, compared } of all) {
      const key = `${outcome.kind} ${compared.verdict}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    expect(Object.fromEntries(counts)).toEqual({
      "admission agrees": 67,
      "admission not-comparable": 3,
      "conditions agrees": 3,
      "eviction agrees": 2,
      "image-gc agrees": 1,
      "preemption agrees": 2,
      "preemption not-comparable": 1,
      "probes agrees": 10,
    });
  });
  test("of a refusal are one when status and event report it", () => {
    const refused = all.filter(({ outcome }) => outcome.kind === "admission" && !outcome.admitted);
    // pods whose containers exited with 0 have succeeded, and only the event shows that they were refused
    const once = refused.filter(({ outcome }) => outcome.seenIn.length === 1);
    expect(once.map(({ name }) => name.split(" ")[0])).toEqual(Array(8).fill("disk"));
    expect(refused.length).toBeGreaterThan(40);
  });
});
