import { describe, expect, test } from "vitest";
import { readCpuManagerState } from "../../api/model/assignments.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { container } from "../kit/containers.ts";
import { pod } from "../kit/pods.ts";
import { captured, realSnapshot } from "../kit/real-node.ts";
import { decoded, fromJson, issuePaths, issues, type Json, stored } from "../kit/snapshots.ts";

describe("decoding the forms that kubectl, crictl and the kubelet print", () => {
  test("a PodList is decoded like a list of its items", () => {
    const items = [pod("a"), pod("b")];
    expect(decoded({ pods: { kind: "PodList", apiVersion: "v1", items } })).toEqual(decoded({ pods: items }));
    expect(decoded({ pods: { items: [] } }).pods).toEqual([]);
    expect(decoded({ pods: { items: null } }).pods).toEqual([]);
    // such a document is decoded from a copy without nulls
    const stumbling = { node: { metadata: { name: null } }, pods: { kind: "PodList", items: null } };
    expect(decoded(stumbling).pods).toEqual([]);
    expect(decoded({ pods: null }).pods).toBeUndefined();
  });
  test("null in crictl's lists is an empty list", () => {
    const lists = { images: { images: null }, containers: { containers: null }, sandboxes: { items: null } };
    const empty = { images: [], containers: [], sandboxes: [] };
    expect(decoded({ runtime: lists }).runtime).toEqual(empty);
    expect(decoded({ bootId: null, runtime: lists }).runtime).toEqual(empty);
  });
  test.each([
    ["2024-02-29T23:59:59.123456789Z", true],
    ["2026-02-28t00:00:00z", true],
    ["0000-01-01T00:00:00-00:00", true],
    ["2026-12-31T23:59:59+23:59", true],
    // texts that `Date.parse` accepts as a day of the next month, or as the next day
    ["2026-02-29T00:00:00Z", false],
    ["2026-02-30T00:00:00Z", false],
    ["2026-06-31T00:00:00Z", false],
    ["2026-01-01T24:00:00Z", false],
    ["2026-01-01T00:00:60Z", false],
    ["2026-01-01T00:00:00.1234567890Z", false],
    ["2026-01-01T00:00:00+24:00", false],
    ["2026-01-01 00:00:00Z", false],
  ])("whether %s is an RFC 3339 time: %s", (observedAt, isTime) => {
    expect(decodeSnapshot({ observedAt }).ok).toBe(isTime);
  });
  test("/configz is decoded with and without its kubeletconfig wrapper", () => {
    const wrapped = captured("configz.json") as { kubeletconfig: Json };
    expect(stored({ kubeletConfiguration: wrapped })).toBe(stored({ kubeletConfiguration: wrapped.kubeletconfig }));
    expect(decoded({ kubeletConfiguration: wrapped }).kubeletConfiguration?.podPidsLimit).toBe(1024);
    expect(issuePaths({ kubeletConfiguration: { kubeletconfig: { maxPods: "x" } } })).toEqual([
      "kubeletConfiguration.maxPods",
    ]);
    expect(issuePaths({ kubeletConfiguration: { kubeletconfig: 5 } })).toEqual(["kubeletConfiguration"]);
    expect(issues({ kubeletConfiguration: { kind: "Pod" } })[0]?.message).toBe("must be a KubeletConfiguration");
  });
  test("state files are decoded alike from text and from objects", () => {
    const { assignments } = realSnapshot() as { assignments: Record<string, string> };
    const objects = Object.fromEntries(Object.entries(assignments).map(([name, text]) => [name, fromJson(text)]));
    expect(stored({ assignments: objects })).toBe(stored({ assignments }));
    const allocated = decoded({ assignments }).assignments?.allocated_pods_state?.entries;
    expect(Object.keys(allocated ?? {}).length).toBe(11);
    const unwrapped = fromJson((objects["allocated_pods_state"] as { data: string }).data);
    expect(stored({ assignments: { allocated_pods_state: unwrapped } })).toBe(
      stored({ assignments: { allocated_pods_state: assignments["allocated_pods_state"] } }),
    );
  });
  test.each([
    ["allocated_pods_state", '{"data":"{"}', "assignments.allocated_pods_state.entries"],
    ["allocated_pods_state", '{"data":"5"}', "assignments.allocated_pods_state"],
    ["cpu_manager_state", 5, "assignments.cpu_manager_state"],
  ])("a broken %s `%s` is an issue with its path", (name, text, path) => {
    expect(issuePaths({ assignments: { [name]: text } })).toContain(path);
  });
  test.each([
    ["{", "assignments.cpu_manager_state: the file is cut short, or no JSON"],
    ["", "assignments.cpu_manager_state: the file is empty"],
    ["5", "assignments.cpu_manager_state: Invalid input: expected object, received number"],
    [
      '{"policyName":"static","entries":{"../x":{}}}',
      'assignments.cpu_manager_state.entries["../x"]: Invalid key in record',
    ],
    [
      '{"policyName":"static","entries":{"u":{"c":"x"}}}',
      "assignments.cpu_manager_state.entries.u.c: must be a CPU list such as 0-3,8",
    ],
  ])("the unreadable state file `%s` is stored as it is, and reading it gives the error", (text, want) => {
    expect(decoded({ assignments: { cpu_manager_state: text } }).assignments?.cpu_manager_state).toBe(text);
    const read = readCpuManagerState(text, false);
    expect(read.ok ? undefined : `${read.error.path}: ${read.error.message}`).toBe(want);
  });
  test("quantities may be numbers, as in YAML", () => {
    const list = { cpu: 0.5, memory: 1_000_000, "example.com/gpu": 1, "hugepages-2Mi": 0 };
    const text = stored({ pods: [pod("p", { spec: { containers: [container("c", list)] } })] });
    expect(text).toContain('{"cpu":"0.5","example.com/gpu":"1","hugepages-2Mi":"0","memory":"1000000"}');
    expect(text).toBe(stored(fromJson(text)));
  });
});

describe("decoding cAdvisor's MachineInfo", () => {
  const core = (id: number, threads: number[]): Json => ({
    core_id: id,
    thread_ids: threads,
    socket_id: 0,
    uncore_caches: [{ id: 7, size: 1 }],
  });
  const info = {
    num_cores: 4,
    memory_capacity: 8_589_934_592,
    swap_capacity: 1024,
    topology: [
      {
        node_id: 0,
        memory: 4_294_967_296,
        hugepages: [
          { page_size: 2048, num_pages: 3 },
          { page_size: 1_048_576, num_pages: 1 },
        ],
        distances: [10, 20],
        cores: [core(0, [0, 2]), core(1, [1, 3])],
      },
      { node_id: 1, memory: 4_294_967_296, distances: [20, 10], cores: [] },
    ],
  };
  test("gives the machine's own form", () => {
    const { machine } = decoded({ machine: info });
    expect(machine?.cpus?.map((c) => [c.cpu, c.core, c.socket, c.numa, c.uncoreCache])).toEqual([
      [0, 0, 0, 0, 7],
      [2, 0, 0, 0, 7],
      [1, 1, 0, 0, 7],
      [3, 1, 0, 0, 7],
    ]);
    expect(machine?.numaNodes?.[0]).toEqual({ id: 0, memoryBytes: 4_294_967_296, hugepages: { "2Mi": 3, "1Gi": 1 } });
    expect(machine?.distances).toEqual([
      [10, 20],
      [20, 10],
    ]);
    expect([machine?.memoryBytes, machine?.swapBytes]).toEqual([8_589_934_592, 1024]);
    expect(stored(fromJson(stored({ machine: info })))).toBe(stored({ machine: info }));
  });
  test("works without distances and caches", () => {
    const bare = {
      memory_capacity: 1,
      topology: [{ node_id: 0, cores: [{ core_id: 0, socket_id: 0, thread_ids: [0] }] }],
    };
    expect(decoded({ machine: bare }).machine).toEqual({
      cpus: [{ cpu: 0, core: 0, socket: 0, numa: 0 }],
      numaNodes: [{ id: 0, hugepages: {} }],
      memoryBytes: 1,
    });
  });
  test("refuses a value that must be an object or a list and is not, with its path", () => {
    expect(issues({ machine: { topology: [null, 5] } }, "snapshot")).toEqual([
      { path: "snapshot.machine.topology[0]", message: "expected an object" },
      { path: "snapshot.machine.topology[1]", message: "expected an object" },
    ]);
    const odd = [{ node_id: 0, cores: [{ thread_ids: 1, uncore_caches: [1] }, 7], hugepages: "none" }, { cores: {} }];
    expect(issuePaths({ machine: { topology: odd } })).toEqual([
      "machine.topology[0].hugepages",
      "machine.topology[0].cores[0].thread_ids",
      "machine.topology[0].cores[0].uncore_caches[0]",
      "machine.topology[0].cores[1]",
      "machine.topology[1].cores",
    ]);
    const empty = { topology: [{ node_id: 0, cores: null, hugepages: null }] };
    expect(decoded({ machine: empty }).machine).toMatchObject({ cpus: [], numaNodes: [{ id: 0 }] });
  });
  test("reports faults with the paths of the machine's own form", () => {
    const bad = { topology: [{ node_id: "x", cores: [{ core_id: 0, socket_id: 0, thread_ids: ["a"] }] }] };
    expect(issuePaths({ machine: bad })).toEqual([
      "machine.cpus[0].cpu",
      "machine.cpus[0].numa",
      "machine.numaNodes[0].id",
    ]);
  });
});

describe("null in a snapshot", () => {
  test("counts as absent in every field, as in Go", () => {
    const withNulls = pod("p", {
      metadata: { namespace: null, annotations: null, deletionTimestamp: null },
      spec: { initContainers: null, overhead: null, resources: null, priority: null, nodeName: null },
      status: { phase: null, qosClass: null, containerStatuses: null },
    });
    const without = pod("p", { status: {} });
    const input = { bootId: null, node: null, devices: null, machine: null, assignments: null, stats: null };
    expect(stored({ ...input, pods: [withNulls] })).toBe(stored({ pods: [without] }));
    expect(stored({ pods: null, cgroup: null, kubeletConfiguration: null })).toBe("{}");
  });
  test("removes the entry of a resource list", () => {
    const c = { name: "c", resources: { limits: { cpu: null, memory: "1Mi" }, requests: null } };
    const resources = decoded({ pods: [pod("p", { spec: { containers: [c] } })] }).pods?.[0]?.spec.containers[0]
      ?.resources;
    expect(Object.keys(resources?.limits ?? {})).toEqual(["memory"]);
    expect(Object.keys(resources?.requests ?? {})).toEqual(["memory"]);
  });
  test("is refused as a list element", () => {
    expect(issuePaths({ pods: [pod("a"), null, pod("b")] })).toEqual(["pods[1]"]);
    expect(issuePaths({ machine: { distances: [[10, null]] } })).toEqual(["machine.distances[0][1]"]);
  });
  test("is refused in a required field", () => {
    expect(issuePaths({ cgroup: { version: null } })).toEqual(["cgroup.version"]);
    expect(issuePaths({ pods: [pod("p", { metadata: { name: null } })] })).toEqual(["pods[0].metadata.name"]);
  });
});
