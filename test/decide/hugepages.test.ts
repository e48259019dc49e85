import { describe, expect, test } from "vitest";
import { pageSizeOf, pageSizeUnit } from "../../api/decide/hugepages.ts";
import { container } from "../kit/containers.ts";
import { bestEffort, podOf } from "../kit/pods.ts";
import { configured, type Json, snapshot } from "../kit/snapshots.ts";
import { allocatableOf, cgroupsOf, filesAt, Gi, Mi, outcome, reasonsOf, valuesAt } from "./ask.ts";

const PAGES = { "hugepages-2Mi": "1Gi", "hugepages-1Gi": "2Gi" };
const pod = podOf([
  container("a", undefined, { "hugepages-2Mi": "64Mi", memory: "1Gi" }),
  container("b", { cpu: "1" }),
]);
const input = (parts: Json = {}): Json => snapshot({ pods: [pod], ...parts }, PAGES);
const POD = "/kubepods/burstable/podu";
const UNLIMITED = "4611686018427387904";
const hugetlb = (of: Json, path: string): Json =>
  Object.fromEntries(Object.entries(filesAt(of, path)).filter(([file]) => file.startsWith("hugetlb.")));

describe("huge page limits", () => {
  test("of a pod are the sum over its containers, and 0 for sizes that none requests", () => {
    expect(hugetlb(input(), POD)).toEqual({
      "hugetlb.2MB.max": String(64 * Mi),
      "hugetlb.2MB.rsvd.max": String(64 * Mi),
      "hugetlb.1GB.max": "0",
      "hugetlb.1GB.rsvd.max": "0",
    });
  });
  test("of a QoS tier are unlimited: exactly 2^62 in the files and -1 in the values", () => {
    for (const tier of ["/kubepods/burstable", "/kubepods/besteffort"]) {
      expect(valuesAt(input(), tier).hugePageLimit).toEqual({ "2097152": -1, "1073741824": -1 });
      expect(hugetlb(input(), tier)).toEqual({
        "hugetlb.2MB.max": UNLIMITED,
        "hugetlb.2MB.rsvd.max": UNLIMITED,
        "hugetlb.1GB.max": UNLIMITED,
        "hugetlb.1GB.rsvd.max": UNLIMITED,
      });
    }
  });
  test("of a container are its own, and 0 for every other size", () => {
    expect(hugetlb(input(), `${POD}/a`)).toMatchObject({ "hugetlb.2MB.max": String(64 * Mi), "hugetlb.1GB.max": "0" });
    expect(hugetlb(input(), `${POD}/b`)).toMatchObject({ "hugetlb.2MB.max": "0", "hugetlb.1GB.max": "0" });
  });
  test("have other file names on cgroup v1", () => {
    expect(hugetlb(input({ cgroup: { version: 1 } }), `${POD}/a`)).toEqual({
      "hugetlb.2MB.limit_in_bytes": String(64 * Mi),
      "hugetlb.2MB.rsvd.limit_in_bytes": String(64 * Mi),
      "hugetlb.1GB.limit_in_bytes": "0",
      "hugetlb.1GB.rsvd.limit_in_bytes": "0",
    });
  });
  test("of the pod level apply to every container without its own", () => {
    const podLevel = { resources: { requests: { "hugepages-2Mi": "128Mi" }, limits: { "hugepages-2Mi": "128Mi" } } };
    const of = snapshot(
      {
        pods: [
          podOf([container("a", undefined, { "hugepages-2Mi": "32Mi" }), container("b")], podLevel, {
            status: { qosClass: "Burstable" },
          }),
        ],
      },
      PAGES,
    );
    expect(valuesAt(of, POD).hugePageLimit).toMatchObject({ "2097152": 128 * Mi });
    expect(valuesAt(of, `${POD}/a`).hugePageLimit).toMatchObject({ "2097152": 32 * Mi });
    expect(valuesAt(of, `${POD}/b`).hugePageLimit).toMatchObject({ "2097152": 128 * Mi, "1073741824": 0 });
  });
  test("are absent on a node without huge pages", () => {
    const bare = snapshot({ pods: [bestEffort("e")] });
    for (const { files } of cgroupsOf(bare).decision.cgroups)
      expect(files.filter((f) => f.path.startsWith("hugetlb."))).toEqual([]);
  });
  test("use the capacity computed from the machine when the node's status has none", () => {
    const machine = {
      numaNodes: [
        { id: 0, hugepages: { "2Mi": 10 } },
        { id: 1, hugepages: { "2Mi": 5, "1Gi": 1 } },
      ],
    };
    expect(allocatableOf(snapshot({ machine })).decision.capacity).toMatchObject({
      "hugepages-2Mi": "30Mi",
      "hugepages-1Gi": "1Gi",
    });
  });
  test("of the node reduce its allocatable memory, at least to zero", () => {
    const none = { kubeletConfiguration: { evictionHard: {} } };
    expect(allocatableOf(input(none)).decision.allocatable).toMatchObject({
      memory: "5Gi",
      "hugepages-2Mi": "1Gi",
      "hugepages-1Gi": "2Gi",
    });
    expect(allocatableOf(snapshot(none, { "hugepages-1Gi": "9Gi" })).decision.allocatable["memory"]).toBe("0");
  });
  test.each([
    ["hugepages-2Mi", 2 * Mi, "2MB"],
    ["hugepages-1Gi", Gi, "1GB"],
    ["hugepages-64Ki", 65_536, "64KB"],
    ["hugepages-16Gi", 16 * Gi, "16GB"],
    ["hugepages-2048Ki", 2 * Mi, "2MB"],
    ["hugepages-1Ti", 1024 * Gi, "1TB"],
  ])("%s is a page of %i bytes, %s to the kernel", (name, size, unit) => {
    expect(pageSizeOf(name)).toBe(size);
    expect(pageSizeUnit(size)).toBe(unit);
  });
  test.each(["memory", "hugepages-", "hugepages-x", "hugepages-0", "hugepages--2Mi", "requests.hugepages-2Mi"])(
    "%s is not parsed as a page size",
    (name) => {
      expect(pageSizeOf(name)).toBeUndefined();
    },
  );
});

describe("huge pages and the kubepods cgroup", () => {
  const kubepods = (config: Json = {}) =>
    valuesAt(configured(config, { ...input(), kubeletConfiguration: config }), "/kubepods");
  // getNodeAllocatableAbsoluteImpl subtracts only the reserves; only nodestatus.MachineInfo subtracts huge pages
  test("its memory limit is capacity minus reserves, with huge pages included", () => {
    expect(kubepods({ kubeReserved: { memory: "1Gi" } }).memory).toBe(7 * Gi);
  });
  test("qosReserved is computed from that memory limit", () => {
    const config = { featureGates: { QOSReserved: true }, qosReserved: { memory: "0%" } };
    expect(valuesAt(input({ kubeletConfiguration: config }), "/kubepods/burstable").memory).toBe(8 * Gi);
  });
  // UpdateCgroups sets unlimited pages in the configuration of every tier each minute, including kubepods as the
  // Guaranteed tier
  test("its huge pages are unlimited, like those of the QoS tiers", () => {
    expect(hugetlb(input(), "/kubepods")["hugetlb.2MB.max"]).toBe(UNLIMITED);
  });
  // maybeSetHugetlb returns immediately if the controller is missing
  test("no cgroup has hugetlb files when the machine lacks the hugetlb controller", () => {
    const bare = input({ machine: { hugetlb: false } });
    const written = cgroupsOf(bare).decision.cgroups.flatMap((p) =>
      p.files.filter((f) => f.path.startsWith("hugetlb.")),
    );
    expect(written).toEqual([]);
  });
  test("hugetlb files follow the capacity, and needs asks for machine.hugetlb, when it is not posted", () => {
    expect(hugetlb(input(), POD)).not.toEqual({});
    expect(cgroupsOf(input()).needs).toContain("machine.hugetlb");
    for (const hugetlb of [true, false])
      expect(cgroupsOf(input({ machine: { hugetlb } })).needs).not.toContain("machine.hugetlb");
    expect(cgroupsOf(snapshot({ pods: [bestEffort("e")] })).needs).not.toContain("machine.hugetlb");
  });
  // sizes whose sum exceeds 2^53
  const cpus = [{ cpu: 0, core: 0, socket: 0, numa: 0 }];
  test.each([
    { cpus, memoryBytes: Gi, numaNodes: [{ id: 0, hugepages: { "1Gi": Number.MAX_SAFE_INTEGER } }] },
    { cpus, numaNodes: [0, 1].map((id) => ({ id, memoryBytes: Number.MAX_SAFE_INTEGER })) },
  ])("sizes of a machine that overflow are bad input: %#", (machine) => {
    expect(outcome("cgroups", { cgroup: { version: 2 }, machine })).toBe("bad input");
  });
});

describe("huge page limits for a page size that the node lacks", () => {
  const asking = podOf([container("a", undefined, { "hugepages-2Mi": "64Mi", "hugepages-1Gi": "1Gi", memory: "1Gi" })]);
  const none = (path: string, of: Json): void => expect(Object.keys(hugetlb(of, path)), path).toEqual([]);

  test("are not written, whether the capacity or the machine lists the other sizes", () => {
    const machine = { hugetlb: true, numaNodes: [{ id: 0, hugepages: { "2Mi": 10 } }] };
    for (const of of [
      snapshot({ pods: [asking] }, { "hugepages-2Mi": "20Mi" }),
      snapshot({ pods: [asking], machine }),
    ]) {
      for (const path of [POD, `${POD}/a`]) {
        expect(hugetlb(of, path)).toEqual({
          "hugetlb.2MB.max": String(64 * Mi),
          "hugetlb.2MB.rsvd.max": String(64 * Mi),
        });
        expect(valuesAt(of, path).hugePageLimit).toEqual({ "2097152": 64 * Mi });
      }
      expect(reasonsOf(cgroupsOf(of))).toContainEqual({
        at: `${POD}/a`,
        code: "pages_left_out",
        field: "hugePageLimit",
        numbers: { sizes: "1GB", because: "the node has no pages of that size" },
      });
    }
  });
  test("are not written on a node without any huge pages", () => {
    const of = snapshot({ pods: [asking] });
    for (const path of [POD, `${POD}/a`]) none(path, of);
    expect(cgroupsOf(of).needs).not.toContain("node.status.capacity");
  });
  test("are not written without a capacity, which is then in needs", () => {
    const machine = { cpus: [{ cpu: 0, core: 0, socket: 0, numa: 0 }], memoryBytes: 8 * Gi };
    const of = { cgroup: { version: 2 }, machine, pods: [asking] };
    for (const path of [POD, `${POD}/a`]) none(path, of);
    expect(cgroupsOf(of).needs.filter((n) => n === "node.status.capacity")).toHaveLength(1);
  });
});
