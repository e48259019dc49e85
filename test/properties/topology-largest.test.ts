import { describe, expect, test } from "vitest";
import { admitPod, type NamedProvider } from "../../api/decide/topology/admit.ts";
import { numaNodes } from "../../api/decide/topology/hint.ts";
import { type LargestAsk, largestPod, largestPodOn } from "../../api/decide/topology/largest-pod.ts";
import type { TopologyPolicy } from "../../api/decide/topology/policy.ts";
import type { PodSize } from "../../api/model/topology.ts";
import { bytes } from "../../api/model/units.ts";
import { countedProvider } from "../decide/topology/counted-provider.ts";
import { decodedPod, guaranteed } from "../kit/pods.ts";
import { type Draws, draws, Met } from "./draws.ts";

const MIB = 2 ** 20;
const NAMES = ["none", "best-effort", "restricted", "single-numa-node"] as const;

interface Drawn extends LargestAsk {
  readonly freeCpus: readonly number[];
  readonly freeMemory: readonly number[];
}
function drawnNode(d: Draws): Drawn {
  const count = 1 + d.below(3);
  const sizes = Array.from({ length: count }, () => ({ cpus: 1 + d.below(6), memory: bytes((1 + d.below(5)) * MIB) }));
  const freeCpus = sizes.map(({ cpus }) => d.below(cpus + 1));
  const freeMemory = sizes.map(({ memory }) => d.below(memory / MIB + 1) * MIB);
  const name = d.pick(NAMES);
  const numa = numaNodes(sizes.map((_, i) => i));
  const policy: TopologyPolicy =
    name === "none" ? { name } : { name, scope: d.pick(["container", "pod"]), numa, distances: null };
  return {
    policy,
    nodes: sizes,
    cpuStep: d.chance(4) ? 2 : 1,
    free: { cpus: d.chance(3) ? d.below(10) : 100, memory: bytes(d.chance(3) ? d.below(8) * MIB : 100 * MIB) },
    freeCpus,
    freeMemory,
    providers: () => [
      countedProvider({ name: "cpus", resource: "cpu", sizes: sizes.map((s) => s.cpus), free: [...freeCpus] }),
      countedProvider({ name: "memory", resource: "memory", sizes: sizes.map((s) => s.memory), free: [...freeMemory] }),
    ],
  };
}

const podSized = ({ cpus, memory }: PodSize) => decodedPod(guaranteed("u", `${cpus}`, `${memory}`));
function admits({ policy }: LargestAsk, providers: readonly NamedProvider[], size: PodSize): boolean {
  const admission = admitPod(policy, providers, podSized(size));
  return admission.ok && admission.value.refusal === null;
}
/** Tries every size, the largest first. */
function byScan(node: Drawn): PodSize | null {
  for (let cpus = node.free.cpus - (node.free.cpus % node.cpuStep); cpus > 0; cpus -= node.cpuStep) {
    if (cpus > node.freeCpus.reduce((a, b) => a + b)) continue;
    for (let memory = Math.min(20 * MIB, node.free.memory); memory > 0; memory -= MIB) {
      const size = { cpus, memory: bytes(memory) };
      if (admits(node, node.providers(), size)) return size;
    }
  }
  return null;
}

describe("the largest pod that still fits a random node", () => {
  test("is the one found by trying every size", () => {
    const met = new Met();
    for (let seed = 0; seed < 600; seed++) {
      const node = drawnNode(draws(seed));
      const found = largestPod(node);
      const scanned = byScan(node);
      expect(found, `seed ${seed}`).toEqual({ ok: true, value: scanned });
      met.note(`${node.policy.name} ${scanned === null ? "none fits" : "fits"}`);
      met.note("spans nodes", scanned !== null && node.nodes.every(({ cpus }) => cpus < scanned.cpus));
      met.note("bounded by the node", scanned?.cpus === node.free.cpus);
    }
    expect(met.hardly(20)).toEqual([]);
  });

  test("has the free amounts of the NUMA node when there is only one", () => {
    const met = new Met();
    for (let seed = 0; seed < 300; seed++) {
      const node = drawnNode(draws(seed));
      for (const [i] of node.nodes.entries()) {
        const cpus = Math.min(node.freeCpus[i] as number, node.free.cpus);
        const memory = Math.min(node.freeMemory[i] as number, node.free.memory);
        const whole = cpus - (cpus % node.cpuStep);
        const want = whole === 0 || memory === 0 ? null : { cpus: whole, memory };
        expect(largestPodOn(node, i), `seed ${seed} node ${i}`).toEqual(want);
        met.note(want === null ? "none" : "some");
      }
    }
    expect(met.hardly(50)).toEqual([]);
  });
});
