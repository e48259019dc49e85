import { describe, expect, test } from "vitest";
import { writeCheckpoint } from "../../api/decide/memory/checkpoint.ts";
import { nodeSets } from "../../api/decide/memory/hints.ts";
import { EMPTY_STATE, type MachineMemory } from "../../api/decide/memory/machine-memory.ts";
import { type MemoryManager, memoryManager } from "../../api/decide/memory/manager.ts";
import { readCheckpoint } from "../../api/decide/memory/read-checkpoint.ts";
import { restoreState } from "../../api/decide/memory/start.ts";
import { ANY_NODE, countNodes, idsOf, type TopologyHint } from "../../api/decide/topology/hint.ts";
import { type Container, containersOf, type Pod } from "../../api/model/pod.ts";
import { NEWEST } from "../../api/profiles/index.ts";
import { type Draws, draws, Met } from "./draws.ts";
import { brokenGroups, brokenIn, lostIn, mixedNodes, randomGuaranteed, randomMachine } from "./memory-sequences.ts";

const FORM = { profile: NEWEST, podLevel: false };
const { behaviour } = NEWEST;

const SEED = 1936;
const COUNT = 300;
/** Allows for a loaded machine; the test does not measure speed. */
const PATIENT = { timeout: 120_000 };
const must = (holds: boolean, message: () => string): void => {
  if (!holds) expect.fail(message());
};
const fresh = (machineState: MachineMemory): MemoryManager =>
  memoryManager({ policy: "Static", state: { ...EMPTY_STATE, machineState }, podLevel: false, behaviour });

/**
 * Adds and removes pods at random; `step` runs after each change. `affinity`: the hint that the topology manager would
 * have chosen.
 */
function live(
  manager: MemoryManager,
  paged: boolean,
  d: Draws,
  met: Met,
  affinity: (m: MemoryManager, pod: Pod, c: Container) => TopologyHint,
  step: (what: string) => void,
): readonly Pod[] {
  let pods: Pod[] = [];
  for (let i = 0; i < 14; i++) {
    const what = pods.length === 0 ? 0 : d.below(6);
    if (what < 3) {
      const pod = randomGuaranteed(`u${i}`, paged, d);
      pods.push(pod);
      for (const c of containersOf(pod)) {
        const done = manager.allocate(pod, c, affinity(manager, pod, c));
        met.note(done.ok ? "given" : done.error.message.replace("[memorymanager] ", ""));
        if (!done.ok) break;
      }
      met.note(
        "a group",
        [...manager.state.machineState.values()].some(({ cells }) => cells.length > 1),
      );
    } else if (what === 3) {
      const pod = d.pick(pods);
      manager.removeContainer(pod.metadata.uid as string, d.pick(containersOf(pod)).name);
      met.note("removed");
    } else if (what === 4) {
      const pod = d.pick(pods);
      manager.containerCreated(pod, d.pick(containersOf(pod)).name);
      met.note("created");
    } else {
      pods = pods.filter(() => !d.chance(3));
      met.note("stale", manager.removeStale(pods).length > 0);
    }
    step(`step ${i}`);
  }
  return pods;
}
const anyNode = (): TopologyHint => ANY_NODE;
/** One of the memory manager's own hints, or any set of nodes. */
const hinted =
  (d: Draws, own: boolean) =>
  (m: MemoryManager, pod: Pod, c: Container): TopologyHint => {
    const hints = m.containerHints(pod, c).get("memory") ?? [];
    if (own && hints.length > 0) return d.pick(hints);
    return own ? ANY_NODE : { nodes: 1 + d.below(m.numa.all), preferred: d.chance(2) };
  };

function forSequences(run: (machine: MachineMemory, paged: boolean, d: Draws, at: string) => void): void {
  for (let i = 0; i < COUNT; i++) {
    const d = draws(SEED + i);
    const machine = randomMachine(d);
    const paged = [...machine.values()].every(({ memoryMap }) => memoryMap.has("hugepages-2Mi"));
    run(machine, paged, d, `seed ${SEED + i}`);
  }
}

describe(`memory over ${COUNT} random machines and sequences from seed ${SEED}`, PATIENT, () => {
  test("sums up per NUMA node and over all assignments after every step when its hints are followed", () => {
    const met = new Met();
    forSequences((machine, paged, d, at) => {
      for (const affinity of [anyNode, hinted(d, true)]) {
        const manager = fresh(machine);
        live(manager, paged, d, met, affinity, (step) => {
          const broken = brokenIn(manager.state) ?? lostIn(manager.state);
          must(broken === undefined, () => `${at}, ${step}: ${broken}`);
        });
      }
    });
    expect(met.hardly(20)).toEqual([]);
  });
  test("sums up per NUMA node for any placement, and over all assignments unless groups are mixed", () => {
    const met = new Met();
    forSequences((machine, paged, d, at) => {
      const manager = fresh(machine);
      let mixed = false;
      live(manager, paged, d, met, hinted(d, false), (step) => {
        const broken = brokenIn(manager.state);
        must(broken === undefined, () => `${at}, ${step}: ${broken}`);
        mixed ||= mixedNodes(manager.state).length > 0;
        met.note("mixed", mixed);
        must(mixed || lostIn(manager.state) === undefined, () => `${at}, ${step}: ${lostIn(manager.state)}`);
      });
    });
    for (const name of ["failed to find the extended preferred hint", "preferred hint violates NUMA node allocation"]) {
      expect(met.counts[name], name).toBeGreaterThan(20);
    }
    expect(met.counts["mixed"]).toBeGreaterThan(20);
  });
  test("keeps groups of NUMA nodes apart when its hints are followed", () => {
    forSequences((machine, paged, d, at) => {
      for (const affinity of [anyNode, hinted(d, true)]) {
        const manager = fresh(machine);
        live(manager, paged, d, new Met(), affinity, (step) => {
          must(mixedNodes(manager.state).length === 0, () => `${at}, ${step}: ${mixedNodes(manager.state)}`);
          must(brokenGroups(manager.state).length === 0, () => `${at}, ${step}: ${brokenGroups(manager.state)}`);
        });
      }
    });
  });
  test("returns to its initial state when all pods are removed, and does not modify its input", () => {
    forSequences((machine, paged, d, at) => {
      const before = JSON.stringify(
        [...machine].map(([id, n]) => [id, n.cells, n.numberOfAssignments, [...n.memoryMap]]),
      );
      const manager = fresh(machine);
      live(manager, paged, d, new Met(), hinted(d, true), () => {});
      manager.removeStale([]);
      const after = [...manager.state.machineState].map(([id, n]) => [
        id,
        n.cells,
        n.numberOfAssignments,
        [...n.memoryMap],
      ]);
      must(JSON.stringify(after) === before, () => at);
      must(manager.state.entries.size === 0, () => at);
    });
  });
  test("gives the same state file for the same steps, which a restart accepts unless groups are mixed", () => {
    let restarted = 0;
    forSequences((machine, paged, { seed }, at) => {
      const file = () => {
        const d = draws(seed);
        const manager = fresh(machine);
        live(manager, paged, d, new Met(), hinted(d, true), () => {});
        return { text: writeCheckpoint("Static", manager.state, FORM), mixed: mixedNodes(manager.state).length > 0 };
      };
      const { text, mixed } = file();
      must(text === file().text, () => `${at}: two answers`);
      const read = readCheckpoint(text, FORM);
      if (!read.ok) return expect.fail(`${at}: ${read.error}`);
      const restored = restoreState(read.value, machine);
      must(restored.ok || mixed, () => `${at}: refused`);
      if (!restored.ok) return;
      restarted++;
      must(writeCheckpoint("Static", restored.value, FORM) === text, () => `${at}: another file`);
    });
    expect(restarted).toBeGreaterThan(COUNT / 2);
  });
  test("has hints for exactly the sets of NUMA nodes to which an allocation succeeds", () => {
    const counts = new Met();
    forSequences((machine, paged, d, at) => {
      const manager = fresh(machine);
      live(manager, paged, d, new Met(), hinted(d, true), () => {});
      const pod = randomGuaranteed("asks", paged, d);
      const c = pod.spec.containers[0] as Container;
      const hints = new Set((manager.containerHints(pod, c).get("memory") ?? []).map(({ nodes }) => nodes));
      for (const nodes of nodeSets(manager.numa.ids.length)) {
        const trial = memoryManager({ policy: "Static", state: manager.state, podLevel: false, behaviour });
        const done = trial.allocate(pod, c, { nodes, preferred: false });
        const bound = done.ok && trial.numaNodesOf("asks", c.name)?.join() === idsOf(trial.numa, nodes).join();
        // a single node of a group accepts an allocation with its own affinity, though the manager never hints at it
        const [first] = idsOf(trial.numa, nodes) as [number];
        const alone = countNodes(nodes) === 1 && manager.state.machineState.get(first)?.cells.length !== 1;
        counts.note("hint", hints.has(nodes));
        counts.note("no hint", !hints.has(nodes));
        counts.note("single node of a group", alone && bound);
        must(bound === hints.has(nodes) || (alone && bound), () => `${at}: nodes ${idsOf(trial.numa, nodes)}`);
      }
    });
    expect(counts.hardly(20)).toEqual([]);
  });
});
