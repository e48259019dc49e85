import { hash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { decodeOutcomes, type Outcome } from "../../api/model/outcome.ts";
import { recordOutcomes } from "../../api/service/agreement/record.ts";
import type { OutcomeRow } from "../../db/rows.ts";
import { mergedOutcomes } from "../agreement/merged.ts";
import { snapshotRow, value } from "../contract/store-rows.ts";
import { emptyHistory } from "../kit/empty-history.ts";
import { node } from "../kit/nodes.ts";
import { requesting } from "../kit/pods.ts";
import { type Json, many, stored } from "../kit/snapshots.ts";
import { type Draws, draws, shuffled } from "./draws.ts";

const SEED = 4711;
const RUNS = 30;
const T = Date.parse("2026-01-31T12:00:00Z");
const at = (seconds: number): string => new Date(T + seconds * 1000).toISOString();
const RUNNING = { phase: "Running", containerStatuses: [{ name: "c", state: { running: {} } }] };
const podNamed = (i: number): Json => {
  const critical = i % 4 === 3 ? { priority: 2_000_001_000 } : {};
  return requesting(`p${i}`, { cpu: `${1 + (i % 2)}` }, critical);
};
const refOf = (i: number): Json => ({ namespace: "default", name: `p${i}`, uid: `uid-p${i}` });

/** A node of 4 CPUs with some of the pods. */
function snapshotAt(seconds: number, d: Draws): Json {
  const pods = many(8, podNamed).filter(() => d.chance(3));
  return {
    observedAt: at(seconds),
    node: node(
      {
        allocatable: { cpu: "4", memory: "8Gi", pods: "10" },
        conditions: [{ type: "MemoryPressure", status: "False" }],
      },
      { metadata: { name: "n" } },
    ),
    kubeletConfiguration: { evictionHard: { "memory.available": "1Gi" } },
    stats: { node: { memory: { time: at(seconds), availableBytes: 2 ** 29, workingSetBytes: 2 ** 32 } }, pods: [] },
    pods: pods.map((pod) => ({ ...pod, status: RUNNING })),
  };
}

/** One outcome of a pod or the node, seen in a status and in an event, each with its own clock and its own details. */
function sightings(i: number, d: Draws): readonly Json[] {
  const seconds = 2 + d.below(100);
  const status = { at: at(seconds + d.below(2)), seenIn: ["pod-status"], pod: refOf(i), object: podNamed(i) };
  const event = { at: at(seconds), seenIn: ["event"], pod: refOf(i), ...(d.chance(2) && { object: podNamed(i) }) };
  const both = (rest: Json): readonly Json[] => [
    { ...status, ...rest },
    { ...event, ...rest },
  ];
  switch (d.below(5)) {
    case 0:
      return both({ kind: "admission", admitted: true, reason: "", message: "" });
    case 1: {
      const used = 1000 * d.below(5);
      const message = `Node didn't have enough resource: cpu, requested: 2000, used: ${used}, capacity: 4000`;
      return both({ kind: "admission", admitted: false, reason: "OutOfcpu", message });
    }
    case 2:
      return both({ kind: "preemption", message: "Preempted in order to admit critical pod" });
    case 3:
      return both({
        kind: "eviction",
        message: "The node was low on resource: memory. Threshold quantity: 1Gi, available: 500Mi. ",
      });
    default: {
      const turned = {
        kind: "conditions",
        condition: "MemoryPressure",
        status: d.pick(["True", "False"]),
        message: "",
      };
      return [{ ...turned, at: at(seconds), seenIn: ["node-status"] }];
    }
  }
}

const sha256 = (text: string): string => hash("sha256", text);
async function recorded(
  snapshots: readonly Json[],
  batches: readonly (readonly Outcome[])[],
): Promise<readonly OutcomeRow[]> {
  const store = emptyHistory();
  for (const snapshot of snapshots) {
    const body = stored(snapshot);
    const observedAtMs = Date.parse(String(snapshot["observedAt"]));
    value(await store.putSnapshot(snapshotRow({ id: sha256(body), node: "n", observedAtMs, storedAtMs: T, body })));
  }
  for (const batch of batches) {
    const done = await recordOutcomes({ store, nowMs: T + 1, sha256 }, "n", batch);
    if (!done.ok) throw new Error(done.error.detail);
  }
  const rows = value(await store.listOutcomes({ limit: 500 })).items;
  await store.close();
  return [...rows].sort((a, b) => (a.id < b.id ? -1 : 1));
}
const inBatches = (outcomes: readonly Outcome[], d: Draws): readonly (readonly Outcome[])[] => {
  const batches: Outcome[][] = [];
  for (const one of outcomes) {
    const last = batches.at(-1);
    if (last === undefined || d.chance(3)) batches.push([one]);
    else last.push(one);
  }
  return batches;
};

describe(`sightings of kubelet outcomes, ${RUNS} runs from seed ${SEED}`, { timeout: 120_000 }, () => {
  test("record the same outcomes in any order, in any batches, and when repeated", async () => {
    const met = new Map<string, number>();
    for (let run = 0; run < RUNS; run++) {
      const d = draws(SEED + run);
      const snapshots = [0, 30, 55, 80].map((seconds) => snapshotAt(seconds, d));
      const posted = { outcomes: many(10, (i) => sightings(i % 8, d)).flat() };
      const decoded = decodeOutcomes(posted);
      if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
      const all = decoded.value;
      const once = await recorded(snapshots, [all]);
      for (const { kind, verdict } of once) met.set(`${kind} ${verdict}`, (met.get(`${kind} ${verdict}`) ?? 0) + 1);
      for (let again = 0; again < 2; again++) {
        const twice = shuffled([...all, ...all.filter(() => d.chance(2))], d);
        const other = await recorded(shuffled(snapshots, d), inBatches(twice, d));
        expect(other, `seed ${SEED + run}`).toEqual(once);
      }
    }
    expect([...met.keys()].sort()).toEqual(
      [
        ...["agrees", "differs", "not-comparable"].flatMap((verdict) =>
          ["admission", "eviction", "preemption"].map((kind) => `${kind} ${verdict}`),
        ),
        "conditions agrees",
        "conditions not-comparable",
      ].sort(),
    );
  });

  test("merge to the same outcomes in any order, and merging again changes nothing", () => {
    for (let run = 0; run < 300; run++) {
      const d = draws(SEED - run);
      const decoded = decodeOutcomes({ outcomes: many(6, (i) => sightings(i % 4, d)).flat() });
      if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
      const once = mergedOutcomes(decoded.value);
      expect(mergedOutcomes(shuffled(decoded.value, d))).toEqual(once);
      expect(mergedOutcomes([...once, ...decoded.value])).toEqual(once);
    }
  });
});
