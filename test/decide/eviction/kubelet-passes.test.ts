import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { node } from "../../kit/nodes.ts";
import type { Json } from "../../kit/snapshots.ts";
import { answer, iso } from "./eviction-kit.ts";

/**
 * Random nodes over several passes, with the answers of the eviction manager of v1.36.3 itself, run as a library on a
 * simulated clock: soft and hard thresholds, minimum reclaim, all three layouts, local storage limits, sidecars,
 * overhead, pod-level resources, stats that are missing or stale. Runs whose answer depends on Go's map order are left
 * out.
 */
interface Pass {
  readonly nowMs: number;
  readonly summary: number;
  readonly after: number;
  readonly pods: readonly string[];
  readonly conditions: readonly string[];
  readonly evicted: readonly unknown[];
  readonly nodeLevel: readonly string[];
  readonly event: string;
}
interface Run {
  readonly layout: string;
  readonly kubeletConfiguration: Json;
  readonly pods: readonly { readonly metadata: { readonly uid: string } }[];
  readonly summaries: readonly { readonly node: Json; readonly pods: unknown }[];
  readonly passes: readonly Pass[];
}
const file = new URL("../../data/kubelet-eviction/passes.jsonl.gz", import.meta.url);
const runs = gunzipSync(readFileSync(file))
  .toString("utf8")
  .split("\n")
  .map((line) => JSON.parse(line) as Run);

const statsOf = ({ summaries, layout }: Run, i: number): Json => {
  const { node, pods } = summaries[i] as Run["summaries"][number];
  return { node: { ...node, fileSystems: layout }, pods };
};
function mine(run: Run, pass: Pass, facts: unknown) {
  const { decision, next } = answer(
    {
      node: node({}),
      observedAt: iso(pass.nowMs),
      kubeletConfiguration: run.kubeletConfiguration,
      pods: run.pods.filter((p) => pass.pods.includes(p.metadata.uid)),
      stats: statsOf(run, pass.summary),
    },
    facts,
    { statsAfterReclaim: statsOf(run, pass.after) },
  );
  const evicted = decision.evicted.map(({ pod, message, gracePeriodSeconds, annotations, condition: c }) => ({
    pod: `${pod.namespace}/${pod.name}`,
    message,
    gracePeriodSeconds,
    annotations,
    condition: c === null ? "" : `${c.type}/${c.status}/${c.reason}/${c.message}`,
  }));
  const { reclaim } = decision;
  const shown = {
    conditions: decision.conditions.map((c) => c.type),
    evicted,
    nodeLevel: reclaim?.nodeLevel ?? [],
    event: reclaim === null ? "" : `${reclaim.event.reason}: ${reclaim.event.message}`,
  };
  return { shown, facts: JSON.parse(JSON.stringify(next)) as unknown };
}

describe("recorded passes of the kubelet's eviction manager", () => {
  test.each(runs.map((run, i) => ({ run, i })))("are decided the same on node $i", ({ run }) => {
    let facts: unknown;
    for (const [k, pass] of run.passes.entries()) {
      const decided = mine(run, pass, facts);
      const { conditions, evicted, nodeLevel, event } = pass;
      expect(decided.shown, `pass ${k}`).toEqual({ conditions, evicted, nodeLevel, event });
      facts = decided.facts;
    }
  });
  test("cover every message and condition that they are meant to cover", () => {
    const passes = runs.flatMap((r) => r.passes);
    const messages = passes.flatMap((p) => p.evicted as { message: string; gracePeriodSeconds: number }[]);
    for (const part of ["memory", "ephemeral-storage", "inodes", "pids"]) {
      expect(
        messages.some((e) => e.message.includes(`low on resource: ${part}.`)),
        part,
      ).toBe(true);
    }
    for (const part of ["Usage of EmptyDir", "Pod ephemeral local storage", "exceeded its local ephemeral storage"]) {
      expect(
        messages.some((e) => e.message.includes(part)),
        part,
      ).toBe(true);
    }
    expect(messages.some((e) => e.gracePeriodSeconds > 1)).toBe(true);
    expect(passes.some((p) => p.nodeLevel.length > 0 && p.evicted.length === 0)).toBe(true);
    expect(new Set(runs.map((r) => r.layout)).size).toBe(3);
  });
});
