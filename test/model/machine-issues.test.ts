import { describe, expect, it } from "vitest";
import { decodeSnapshot } from "../../api/model/decode.ts";

const cpu = (id: number, more: object = {}) => ({ cpu: id, core: id, socket: 0, numa: 0, ...more });
const issuesOf = (machine: object) => {
  const decoded = decodeSnapshot({ machine }, "snapshot");
  return decoded.ok ? [] : decoded.error.map(({ path, message }) => `${path}: ${message}`);
};

describe("an impossible machine topology", () => {
  it.each([
    [
      "one CPU in two cores",
      { cpus: [cpu(0), cpu(0, { core: 1 })] },
      "snapshot.machine.cpus[1].cpu: CPU 0 is also snapshot.machine.cpus[0]",
    ],
    [
      "a hole",
      { cpus: [cpu(0), cpu(2)] },
      "snapshot.machine.cpus: CPU 1 is missing below CPU 2; list it, or name it in snapshot.machine.offlineCpus if it is offline",
    ],
    [
      "a core on two NUMA nodes",
      { cpus: [cpu(0), cpu(1, { core: 0, numa: 1 })] },
      "snapshot.machine.cpus[1].numa: core 0 is on NUMA node 0 (CPU 0) and on 1",
    ],
    [
      "a core with two uncore caches",
      { cpus: [cpu(0, { uncoreCache: 0 }), cpu(1, { core: 0, uncoreCache: 1 })] },
      "snapshot.machine.cpus[1].uncoreCache: core 0 has two uncore caches, 0 (CPU 0) and 1",
    ],
    [
      "a NUMA node that is not listed",
      { cpus: [cpu(0, { numa: 1 })], numaNodes: [{ id: 0 }] },
      "snapshot.machine.cpus[0].numa: CPU 0 is on NUMA node 1, which snapshot.machine.numaNodes does not list",
    ],
    [
      "a NUMA node twice",
      { numaNodes: [{ id: 0 }, { id: 0 }] },
      "snapshot.machine.numaNodes[1].id: NUMA node 0 is also snapshot.machine.numaNodes[0]",
    ],
    [
      "distances of another machine",
      { numaNodes: [{ id: 0 }, { id: 1 }], distances: [[10]] },
      "snapshot.machine.distances: has 1 rows for 2 NUMA nodes",
    ],
    [
      "a row that is too short",
      { numaNodes: [{ id: 0 }, { id: 1 }], distances: [[10, 20], [20]] },
      "snapshot.machine.distances[1]: has 1 entries in 2 rows",
    ],
    [
      "an offline CPU that is there",
      { cpus: [cpu(0), cpu(1)], offlineCpus: "1-3" },
      "snapshot.machine.offlineCpus: CPU 1 is also snapshot.machine.cpus[1]",
    ],
    ["an odd list", { offlineCpus: "a" }, "snapshot.machine.offlineCpus: must be a CPU list such as 0-3,8"],
  ])("with %s is refused with its path", (_, machine, want) => {
    expect(issuesOf(machine)).toEqual([want]);
  });
  it("does not include a missing CPU that is offline", () => {
    expect(issuesOf({ cpus: [cpu(0), cpu(2)], offlineCpus: "1" })).toEqual([]);
  });
  it("does not include gaps in cAdvisor's form, whose missing CPUs are offline", () => {
    const core = (id: number, socket: number, threads: number[]) => ({
      core_id: id,
      socket_id: socket,
      thread_ids: threads,
    });
    const cadvisorNode = (id: number, cores: object[]) => ({ node_id: id, memory: 1, cores });
    const decoded = decodeSnapshot({
      machine: { topology: [cadvisorNode(0, [core(0, 0, [0, 4])]), cadvisorNode(1, [core(0, 1, [1, 5])])] },
    });
    if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
    expect(decoded.value.machine?.cpus?.map(({ cpu, core }) => [cpu, core])).toEqual([
      [0, 0],
      [4, 0],
      [1, 1],
      [5, 1],
    ]);
    expect(decoded.value.machine?.offlineCpus).toBe("2-3");
  });
});
