import { describe, expect, test } from "vitest";
import { cpuTopology } from "../../../api/decide/cpus/topology.ts";
import { type Machine, machine } from "../../../api/model/machine.ts";
import { topologyOf } from "./kit.ts";

const row = (cpu: number, core: number, socket = 0, numa = 0) => ({ cpu, core, socket, numa });
function issuesOf(posted: Machine): readonly string[] {
  const topology = cpuTopology(posted, "machine");
  if (topology.ok) throw new Error("taken");
  return topology.error.map(({ path, message }) => `${path}: ${message}`);
}

describe("the CPU topology of a machine", () => {
  test("numbers cores within their socket and identifies a core by its lowest CPU", () => {
    const { cores, sockets, cpusPerCore } = topologyOf([row(0, 0), row(2, 0), row(1, 0, 1, 1), row(3, 0, 1, 1)]);
    expect(cores.ids).toEqual([0, 1]);
    expect(cores.members).toEqual([
      [0, 2],
      [1, 3],
    ]);
    expect(sockets.ids).toEqual([0, 1]);
    expect(cpusPerCore).toBe(2);
  });
  test("is the same from cAdvisor's machine info and from rows of CPUs", () => {
    const core = (id: number, socket_id: number, thread_ids: number[]) => ({ core_id: id, socket_id, thread_ids });
    const posted = machine.parse({
      topology: [
        { node_id: 0, cores: [core(0, 0, [0, 4]), core(1, 0, [1, 5])] },
        { node_id: 1, cores: [core(0, 1, [2, 6]), core(1, 1, [3, 7])] },
      ],
    });
    const rows = [0, 4, 1, 5, 2, 6, 3, 7].map((cpu) => {
      const node = cpu % 4 < 2 ? 0 : 1;
      return row(cpu, cpu % 2, node, node);
    });
    const topology = cpuTopology(posted);
    expect(topology.ok && topology.value).toEqual(topologyOf(rows));
  });
  test("has one uncore cache per socket when the machine names none", () => {
    const { caches } = topologyOf([row(0, 0, 0, 0), row(1, 1, 0, 1), row(2, 2, 7, 2), row(3, 3, 7, 3)]);
    expect(caches.ids).toEqual([0, 7]);
    expect(caches.members).toEqual([
      [0, 1],
      [2, 3],
    ]);
  });
  test("keeps the mask bit of a NUMA node without CPUs", () => {
    const topology = cpuTopology(machine.parse({ cpus: [row(0, 0, 0, 2)], numaNodes: [{ id: 0 }, { id: 2 }] }));
    expect(topology.ok && [topology.value.numa.ids, topology.value.nodes.ids]).toEqual([[0, 2], [2]]);
  });
});

describe("an impossible CPU topology is refused", () => {
  test("when a CPU is listed twice", () => {
    expect(issuesOf({ cpus: [row(0, 0), row(1, 1), row(0, 1)] })).toEqual([
      "machine.cpus[2].cpu: CPU 0 is also machine.cpus[0]",
    ]);
  });
  test("when a core lies on two NUMA nodes", () => {
    expect(issuesOf({ cpus: [row(0, 0, 0, 0), row(1, 0, 0, 1)] })).toEqual([
      "machine.cpus[1].numa: core 0 is on NUMA node 0 (CPU 0) and on 1",
    ]);
  });
  test("when a CPU id is missing, unless that CPU is offline", () => {
    expect(issuesOf({ cpus: [row(0, 0), row(2, 1)] })[0]).toMatch(/^machine\.cpus: CPU 1 is missing below CPU 2/);
    expect(cpuTopology({ cpus: [row(0, 0), row(2, 1)], offlineCpus: "1" }).ok).toBe(true);
  });
  test("when it has no CPU at all, in the kubelet's words", () => {
    expect(issuesOf({})).toEqual(["machine.cpus: could not detect number of cpus"]);
    expect(issuesOf({ cpus: [] })).toEqual(["machine.cpus: could not detect number of cpus"]);
  });
  test("when it has more NUMA nodes than a mask holds", () => {
    const cpus = Array.from({ length: 32 }, (_, cpu) => row(cpu, cpu, 0, cpu));
    expect(issuesOf({ cpus })).toEqual(["machine.cpus: has 32 NUMA nodes; answered are at most 31"]);
    expect(cpuTopology({ cpus: cpus.slice(1), offlineCpus: "0" }).ok).toBe(true);
  });
});
