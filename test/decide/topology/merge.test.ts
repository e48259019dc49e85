import { describe, expect, test } from "vitest";
import { numaNodes, type ResourceHints, type TopologyHint } from "../../../api/decide/topology/hint.ts";
import { intersections, MAX_MERGE_STEPS, mergeHints } from "../../../api/decide/topology/merge.ts";
import type { AligningPolicy } from "../../../api/decide/topology/policy.ts";

const policyOn = (name: AligningPolicy["name"], ids: readonly number[]): AligningPolicy => ({
  name,
  scope: "container",
  numa: numaNodes(ids),
  distances: null,
});
const [ON_0, ON_1, ON_BOTH] = [1, 2, 3];
const yes = (nodes: number): TopologyHint => ({ nodes, preferred: true });
const no = (nodes: number): TopologyHint => ({ nodes, preferred: false });
const EITHER = [yes(ON_0), yes(ON_1)];

interface Row {
  readonly what: string;
  readonly cpu?: readonly TopologyHint[] | null;
  readonly gpu?: readonly TopologyHint[] | null;
  readonly hint: TopologyHint;
  /** The results under best-effort, restricted and single-numa-node. */
  readonly admitted: readonly [boolean, boolean, boolean];
}
const ALL_IN: Row["admitted"] = [true, true, true];
const LOOSE_ONLY: Row["admitted"] = [true, false, false];

/** Answers of a kubelet 1.36.3 on two NUMA nodes. */
const SEEN: readonly Row[] = [
  {
    what: "the GPU decides",
    cpu: [...EITHER, no(ON_BOTH)],
    gpu: [yes(ON_1), no(ON_BOTH)],
    hint: yes(ON_1),
    admitted: ALL_IN,
  },
  { what: "CPUs on 0, GPU on 1", cpu: [yes(ON_0)], gpu: [yes(ON_1)], hint: no(ON_BOTH), admitted: LOOSE_ONLY },
  {
    what: "CPUs on 0 or both, GPU on 1 or both",
    cpu: [yes(ON_0), no(ON_BOTH)],
    gpu: [yes(ON_1), no(ON_BOTH)],
    hint: no(ON_0),
    admitted: LOOSE_ONLY,
  },
  { what: "CPUs must span both", cpu: [yes(ON_BOTH)], gpu: EITHER, hint: no(ON_0), admitted: LOOSE_ONLY },
  { what: "an unplaceable resource", cpu: [], hint: no(ON_BOTH), admitted: LOOSE_ONLY },
  { what: "no preference", cpu: null, hint: yes(ON_BOTH), admitted: ALL_IN },
  { what: "no provider", hint: yes(ON_BOTH), admitted: ALL_IN },
  { what: "either node", cpu: EITHER, hint: yes(ON_0), admitted: ALL_IN },
];
const hintsOf = ({ cpu, gpu }: Row): readonly ResourceHints[] => [
  ...(cpu === undefined ? [] : [new Map([["cpu", cpu]])]),
  ...(gpu === undefined ? [] : [new Map([["example.com/gpu", gpu]])]),
];

describe("hints of two NUMA nodes", () => {
  test.each(SEEN)("merge like on a real kubelet: $what", (row) => {
    for (const [i, name] of (["best-effort", "restricted"] as const).entries()) {
      const merged = mergeHints(policyOn(name, [0, 1]), hintsOf(row));
      expect(merged, name).toEqual({ ok: true, value: { hint: row.hint, admitted: row.admitted[i] } });
    }
    const single = mergeHints(policyOn("single-numa-node", [0, 1]), hintsOf(row));
    const hint = row.hint.preferred && row.hint.nodes !== ON_BOTH ? row.hint : { ...row.hint, nodes: null };
    expect(single).toEqual({ ok: true, value: { hint, admitted: row.admitted[2] } });
  });

  test("merge by the nodes' positions, whatever their ids", () => {
    const merged = mergeHints(policyOn("restricted", [5, 0]), [new Map([["cpu", [yes(0b10)]]])]);
    expect(merged).toEqual({ ok: true, value: { hint: yes(0b10), admitted: true } });
  });
});

describe("prefer-closest-numa-nodes", () => {
  const far = [
    [10, 31, 20],
    [31, 10, 11],
    [20, 11, 10],
  ];
  const pairs = [new Map([["cpu", [yes(0b011), yes(0b101), yes(0b110)]]])];
  test("takes the two closest nodes; without the option the lowest two are taken", () => {
    const narrow = policyOn("restricted", [0, 1, 2]);
    expect(mergeHints(narrow, pairs)).toMatchObject({ value: { hint: { nodes: 0b011 } } });
    expect(mergeHints({ ...narrow, distances: far }, pairs)).toMatchObject({ value: { hint: { nodes: 0b110 } } });
  });
  test("still takes fewer nodes before closer ones", () => {
    const hints = [new Map([["cpu", [yes(0b110), yes(0b001)]]])];
    const merged = mergeHints({ ...policyOn("best-effort", [0, 1, 2]), distances: far }, hints);
    expect(merged).toMatchObject({ value: { hint: { nodes: 0b001 } } });
  });
});

describe("merging hints of which none is preferred", () => {
  const policy = policyOn("best-effort", [0, 1, 2, 3, 4, 5]);
  const merged = (...lists: (readonly TopologyHint[])[]) =>
    mergeHints(policy, [new Map(lists.map((l, i) => [`r${i}`, l]))]);
  test("chooses the number of nodes of the neediest resource first", () => {
    const hints = [no(0b000111), no(0b001111), no(0b000011)].map((h) => [h, no(0b111111)]);
    expect(merged(...hints)).toMatchObject({ value: { hint: { nodes: 0b001111, preferred: false } } });
    expect(merged([no(0b000111)], [no(0b001111), no(0b000001)])).toMatchObject({
      value: { hint: { nodes: 0b000111 } },
    });
  });
  test("chooses fewer nodes before more, however many fewer", () => {
    const neediest = [no(0b000111), no(0b111100)];
    expect(merged(neediest, [no(0b111100), no(0b100000)])).toMatchObject({ value: { hint: { nodes: 0b000100 } } });
  });
});

describe("the bound on combinations in a merge", () => {
  const all = 2 ** 16 - 1;
  const every = new Set(Array.from({ length: all }, (_, i) => i + 1));
  test("allows three providers with every set of sixteen nodes", () => {
    const reached = intersections([every, every, every], all);
    expect(reached.ok && reached.value.size).toBe(all);
  });
  test("refuses sixteen such lists, with their sizes in the message", () => {
    const refused = intersections(Array(16).fill(every), all);
    expect(refused.ok).toBe(false);
    if (refused.ok) return;
    expect(refused.error.code).toBe("too_many_combinations");
    expect(refused.error.message).toMatch(/^merging 65535 x .* NUMA hints takes more than \d+ steps$/);
    expect(refused.error.message).toContain(String(MAX_MERGE_STEPS));
  });
  test("is returned as the error of the merge", () => {
    const policy = policyOn(
      "best-effort",
      Array.from({ length: 16 }, (_, i) => i),
    );
    const list = [...every].map(no);
    const merged = mergeHints(policy, [new Map(Array.from({ length: 16 }, (_, i) => [`r${i}`, list]))]);
    expect(merged).toMatchObject({ ok: false, error: { code: "too_many_combinations" } });
  });
});
