import { describe, expect, test } from "vitest";
import { writeCpuState } from "../../api/decide/cpus/checkpoint.ts";
import { type CpuManager, cpuManager } from "../../api/decide/cpus/manager.ts";
import type { StaticPolicy } from "../../api/decide/cpus/policy.ts";
import { reconcile } from "../../api/decide/cpus/reconcile.ts";
import { exclusiveCpus } from "../../api/decide/cpus/request.ts";
import { type CpuSet, common, cpuText, sameCpus, union } from "../../api/decide/cpus/sets.ts";
import { freshState, startState } from "../../api/decide/cpus/start.ts";
import { ANY_NODE, type TopologyHint } from "../../api/decide/topology/hint.ts";
import { parseCpuSet } from "../../api/model/cpu-set.ts";
import { type Container, containersOf, type Pod } from "../../api/model/pod.ts";
import { NEWEST } from "../../api/profiles/index.ts";
import { admit, cpuPod, evenMachine, freshManager, policyOn, shown } from "../decide/cpus/kit.ts";
import { type Draws, draws, Met } from "./draws.ts";

const FORM = { profile: NEWEST, podLevel: false };

const ROUNDS = 400;
const PATIENT = { timeout: 120_000 };
const OPTIONS: readonly (readonly string[])[] = [
  [],
  [],
  ["full-pcpus-only"],
  ["distribute-cpus-across-numa"],
  ["distribute-cpus-across-cores"],
  ["align-by-socket"],
  ["strict-cpu-reservation"],
  ["prefer-align-cpus-by-uncorecache"],
  ["full-pcpus-only", "distribute-cpus-across-numa"],
  ["prefer-align-cpus-by-uncorecache", "strict-cpu-reservation"],
];

function randomPolicy(d: Draws): StaticPolicy {
  const sockets = 1 + d.below(2);
  const nodes = sockets * d.pick([1, 1, 2, 4]);
  const cores = nodes * 4 * (1 + d.below(3));
  const topology = evenMachine({ sockets, nodes, caches: nodes * (1 + d.below(2)), cores, threads: d.pick([1, 2, 2]) });
  return policyOn(topology, d.pick(OPTIONS), { numReserved: 1 + d.below(3) });
}
function randomPod(uid: string, most: number, d: Draws): Pod {
  const asked: Record<string, number | string> = {};
  for (let i = 0; i < d.below(3); i++) asked[`i${i}${d.pick(["-init", "-side"])}`] = 1 + d.spread(most);
  for (let i = 0; i < 1 + d.below(3); i++) asked[`c${i}`] = d.chance(8) ? "500m" : 1 + d.spread(most);
  return cpuPod(uid, asked);
}
const randomHint = (policy: StaticPolicy, d: Draws): TopologyHint =>
  d.chance(2) ? ANY_NODE : { nodes: 1 + d.below(policy.topology.numa.all), preferred: true };

/** The faults of the manager's state; empty for a correct state. */
function faultsIn(policy: StaticPolicy, manager: CpuManager, pods: ReadonlyMap<string, Pod>): readonly string[] {
  const { defaultCpus, assignments } = manager.state();
  const faults: string[] = [];
  let all: CpuSet = defaultCpus;
  let ofOthers: CpuSet = new Set();
  for (const [uid, containers] of assignments) {
    let ofPod: CpuSet = new Set();
    let ofStaying: CpuSet = new Set();
    for (const [name, set] of containers) {
      const at = `${uid}/${name} ${cpuText(set)}`;
      const container = containerIn(pods.get(uid) as Pod, name);
      if (exclusiveCpus(pods.get(uid) as Pod, container) !== set.size) faults.push(`${at} is not what it asked for`);
      if (common(set, policy.reserved).size > 0) faults.push(`${at} has reserved CPUs`);
      if (common(set, defaultCpus).size > 0) faults.push(`${at} is in the pool`);
      if (common(set, ofOthers).size > 0) faults.push(`${at} is another pod's`);
      if (!name.endsWith("-init") && common(set, ofStaying).size > 0) faults.push(`${at} is another container's`);
      if (!name.endsWith("-init")) ofStaying = union(ofStaying, set);
      ofPod = union(ofPod, set);
    }
    ofOthers = union(ofOthers, ofPod);
    all = union(all, ofPod);
  }
  if (!sameCpus(all, freshState(policy).defaultCpus)) faults.push(`CPUs got lost or came: ${cpuText(all)}`);
  return faults;
}
const containerIn = (pod: Pod, name: string): Container => containersOf(pod).find((c) => c.name === name) as Container;

interface World {
  readonly policy: StaticPolicy;
  readonly manager: CpuManager;
  readonly pods: ReadonlyMap<string, Pod>;
  /** The error message of the last step. */
  readonly error: string | undefined;
}
/** Runs random steps on a node, and calls `after` after each. */
function live(seed: number, after: (world: World, step: string) => void): void {
  const d = draws(seed);
  const policy = randomPolicy(d);
  const manager = freshManager(policy);
  const pods = new Map<string, Pod>();
  for (let i = 0; i < 12; i++) {
    let error: string | undefined;
    const step = d.pick(["admit", "admit", "admit", "remove", "stale"]);
    const uid = d.pick([...pods.keys(), ""]);
    if (step === "admit" || uid === "") {
      const pod = randomPod(`pod-${i}`, policy.topology.cpus.length / 2, d);
      pods.set(`pod-${i}`, pod);
      error = admit(manager, pod, randomHint(policy, d));
    } else if (step === "remove") {
      const { spec } = pods.get(uid) as Pod;
      manager.removeContainer(uid, d.pick([...(spec.initContainers ?? []), ...spec.containers]).name);
    } else {
      pods.delete(uid);
      manager.removeStale(pods.values());
    }
    after({ policy, manager, pods, error }, `seed ${seed}, step ${i}`);
  }
}
const each = (visit: (seed: number) => void): void => {
  for (let seed = 0; seed < ROUNDS; seed++) visit(seed);
};

describe("the CPU manager over random sequences of pods on a node", PATIENT, () => {
  test("never assigns a CPU twice or a reserved one, and never loses a CPU", () => {
    const met = new Met();
    each((seed) =>
      live(seed, ({ policy, manager, pods, error }, step) => {
        expect(faultsIn(policy, manager, pods), step).toEqual([]);
        met.note("given", error === undefined);
        met.note("not enough", error?.startsWith("not enough cpus"));
        met.note("not aligned", error?.startsWith("SMT"));
        met.note("nothing left to share", manager.state().defaultCpus.size === 0);
        met.note("all given but the reserve", sameCpus(manager.state().defaultCpus, policy.reserved));
      }),
    );
    expect(met.hardly(20)).toEqual([]);
  });
  test("has all CPUs free again when all pods are removed", () => {
    each((seed) => {
      let last: World | undefined;
      live(seed, (world) => {
        last = world;
      });
      const { policy, manager } = last as World;
      manager.removeStale([]);
      expect(shown(manager), `seed ${seed}`).toEqual({ pool: cpuText(freshState(policy).defaultCpus) });
    });
  });
  test("ends in the same state for the same events", () => {
    const history = (seed: number): readonly string[] => {
      const lines: string[] = [];
      live(seed, ({ manager, error }) => lines.push(`${JSON.stringify(shown(manager))} ${error}`));
      return lines;
    };
    each((seed) => expect(history(seed), `seed ${seed}`).toEqual(history(seed)));
  });
  test("restores its state after a restart, unless the shared pool is empty", () => {
    const met = new Met();
    each((seed) =>
      live(seed, ({ policy, manager }, step) => {
        const before = shown(manager);
        const state = startState({ ...FORM, policy, file: writeCpuState("static", manager.state(), FORM) });
        met.note("restored", state.ok);
        met.note("an empty pool", !state.ok);
        if (state.ok) expect(shown(cpuManager(policy, state.value)), step).toEqual(before);
        else expect([before["pool"], state.error], step).toEqual(["", "default cpuset cannot be empty"]);
      }),
    );
    expect(met.hardly(20)).toEqual([]);
  });
});

describe("CPU hints over random sequences of pods on a node", PATIENT, () => {
  test("name NUMA nodes from which the container's CPUs then come", () => {
    const met = new Met();
    each((seed) =>
      live(seed, ({ policy, manager }, step) => {
        const pod = cpuPod("new", { c: 1 + (seed % 12) });
        const [container] = pod.spec.containers as [Container];
        const hints = manager.containerHints(pod, container).get("cpu") ?? [];
        met.note("no hint", hints.length === 0);
        for (const hint of [hints[0], hints.find((h) => h.preferred), hints.at(-1)]) {
          if (hint === undefined) continue;
          const copy = cpuManager(policy, manager.state());
          if (!copy.allocate(pod, container, hint).ok) {
            // the hint counts free CPUs without regard to whole cores
            expect(policy.options.fullPcpusOnly || policy.options.distributeAcrossNuma, step).toBe(true);
            continue;
          }
          met.note("preferred", hint.preferred);
          met.note("not preferred", !hint.preferred);
          if (policy.options.alignBySocket) continue;
          const { nodes, numa, positionOf } = policy.topology;
          for (const cpu of copy.cpusOf("new", "c") ?? []) {
            const node = nodes.ids[nodes.of[positionOf.get(cpu) as number] as number] as number;
            expect((numa.bitOf.get(node) as number) & (hint.nodes as number), `${step}: CPU ${cpu}`).not.toBe(0);
          }
        }
      }),
    );
    expect(met.hardly(100)).toEqual([]);
  });
});

describe("CPU reconciling over random sequences of pods on a node", PATIENT, () => {
  test("changes nothing once all its changes were made", () => {
    const met = new Met();
    each((seed) => {
      const current = new Map<string, CpuSet>();
      live(seed, ({ manager, pods }, step) => {
        const running = [...pods.values()].map((pod): Pod => {
          const statuses = pod.spec.containers.map(({ name }) => ({
            name,
            containerID: `x://${pod.metadata.uid}-${name}`,
            state: { running: {} },
          }));
          return { ...pod, status: { containerStatuses: statuses } };
        });
        const changes = () => reconcile(manager, running, (_uid, _name, id) => current.get(id)).changes;
        const first = changes();
        met.note(
          "narrowed or widened",
          first.some(({ from }) => from !== null),
        );
        for (const { containerId, cpus } of first) current.set(containerId, new Set(parseCpuSet(cpus)));
        expect(changes(), step).toEqual([]);
      });
    });
    expect(met.hardly(200)).toEqual([]);
  });
});
