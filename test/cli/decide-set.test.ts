import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { EXIT } from "../../api/cli/terminal.ts";
import { KNOWN_VERSIONS } from "../kit/profiles.ts";
import { captured, realNode } from "../kit/real-node.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { manifest, run } from "./run.ts";

const SNAPSHOT = ["--snapshot", realNode("snapshot.json")];
const ALLOCATABLE = ["decide", "allocatable", ...SNAPSHOT];

const scratch = scratchFolder();
const file = (name: string, text: string): string => {
  writeFileSync(join(scratch, name), text);
  return join(scratch, name);
};

describe.concurrent("nodewise decide with --set and --patch", () => {
  test("shows what was changed, and each place where the answer differs", async () => {
    const ran = await run([...ALLOCATABLE, "--set", "kubeReserved.cpu=500m"]);
    expect(ran).toMatchObject({ code: EXIT.ok, stderr: "" });
    expect(ran.stdout.split("\n").slice(0, 8)).toEqual([
      "n1 · allocatable · kubelet-1.36+11",
      "WHAT IF  kubeReserved.cpu: 100m -> 500m",
      "DIFFERS  decided as now, but different in 4 places of the answer",
      "",
      "FIELD                      NOW    THEN",
      "allocatable.cpu            1800m  1400m",
      "reserved.kubeReserved.cpu  100m   500m",
      "kubepods.limits.cpu        1800m  1400m",
    ]);
  });

  test("prints rounded amounts, times and pods, and exact ones with --explain full", async () => {
    const asked = ["decide", "eviction", ...SNAPSHOT, "--set", 'evictionHard["memory.available"]=23Gi'];
    const lines = (await run(asked)).stdout.replaceAll(/ {2,}/g, "  ").split("\n");
    expect(lines).toContain("thresholds[0].quantity (memory.available)  500 MiB  23 GiB");
    expect(lines).toContain("forecast[0].distance (memory.available)  22.3 GiB  -233.1 MiB");
    expect(lines).toContain("conditions[0]  (none)  MemoryPressure");
    expect(lines).toContain("evicted[0]  (none)  default/besteffort");
    const full = (await run([...asked, "--explain", "full"])).stdout.replaceAll(/ {2,}/g, "  ");
    expect(full).toContain("\nthresholds[0].quantity (memory.available)  524288000  24696061952\n");
  });

  test("prints a changed verdict first, with lint's findings, and exits with the new answer's code", async () => {
    const ran = await run([...ALLOCATABLE, "--set", "kubeReserved.cpu=5"]);
    expect(ran).toMatchObject({ code: EXIT.negative, stderr: "" });
    const lines = ran.stdout.split("\n");
    expect(lines[2]).toBe("DIFFERS  decided -> kubelet-refuses, and 5 places of the answer");
    expect(lines[5]).toMatch(/^verdict +decided +kubelet-refuses$/);
    expect(ran.stdout).toContain("\nWHAT `nodewise lint` FINDS IN THE CHANGE\n- refuses-start ");
  });

  test("combines --patch and --set in any spelling, and the last one wins", async () => {
    const patch = file("patch.yaml", "kubeReserved: {cpu: 300m, memory: 1Gi}\nsystemReserved: {cpu: null}\n");
    const sets = [
      "kubeReserved.cpu=500m",
      'evictionHard["memory.available"]=1Gi',
      "evictionHard[nodefs.available]=20%",
    ];
    const ran = await run([...ALLOCATABLE, "--patch", patch, ...sets.flatMap((set) => ["--set", set]), "-o", "json"]);
    expect(ran).toMatchObject({ code: EXIT.ok, stderr: "" });
    const answer = JSON.parse(ran.stdout);
    expect(answer.change).toEqual({
      kubeReserved: { cpu: "500m", memory: "1Gi" },
      systemReserved: { cpu: null },
      evictionHard: { "memory.available": "1Gi", "nodefs.available": "20%" },
    });
    expect(answer).toMatchObject({ kind: "allocatable", node: "n1", same: false, truncated: false });
    expect(answer.verdict).toEqual({ from: "decided", to: "decided" });
    expect(answer.differences).toContainEqual({ path: "reserved.systemReserved.cpu", from: "100m" });
    expect(answer.differences).toContainEqual({ path: "reserved.evictionHard.memory", from: "500Mi", to: "1Gi" });
    const today = await run([...ALLOCATABLE, "-o", "json"]);
    expect(answer.before.decision).toEqual(JSON.parse(today.stdout).decision);
    const whole = JSON.parse(
      (
        await run([
          "decide",
          "allocatable",
          ...SNAPSHOT,
          "--config",
          realNode("configz.json"),
          "--patch",
          patch,
          ...sets.flatMap((set) => ["--set", set]),
          "-o",
          "json",
        ])
      ).stdout,
    );
    expect(whole.after.decision).toEqual(answer.after.decision);
  });

  test("--kubelet changes the version of the node's kubelet, and both versions are printed", async () => {
    const newer = ["decide", "cgroups", ...SNAPSHOT, "--set", "kubeReserved.cpu=500m", "--kubelet"];
    const ran = await run([...newer, "1.37.2"]);
    expect(ran).toMatchObject({ code: EXIT.ok, stderr: "" });
    expect(ran.stdout.split("\n").slice(0, 4)).toEqual([
      "n1 · cgroups · kubelet-1.36+11 -> kubelet-1.37+7",
      expect.stringMatching(/^assumed: memoryThrottlingFactor: .* has the default of 1\.36 here; counted as left out/),
      "WHAT IF  kubelet: 1.36 -> 1.37, memoryThrottlingFactor: 0.9 -> (none), kubeReserved.cpu: 100m -> 500m",
      "DIFFERS  decided as now, but different in 2 places of the answer",
    ]);
    const older = ["decide", "allocatable", ...SNAPSHOT, "--kubelet", "v1.34.4", "-o", "json", "--set"];
    const data = JSON.parse((await run([...older, "failCgroupV1=true"])).stdout);
    expect(data).toMatchObject({
      policyVersion: "kubelet-1.36+11",
      profile: { version: "1.36", exact: true, why: null },
      kubelet: { from: "1.36", to: "1.34" },
      before: { policyVersion: "kubelet-1.36+11" },
      after: { policyVersion: "kubelet-1.34+5" },
    });
    // the node's kubelet does not know the field; the newer kubelet does
    const { kubeletConfiguration: _, ...rest } = captured("snapshot.json");
    rest.node.status.nodeInfo.kubeletVersion = "v1.35.1";
    const asked = ["decide", "allocatable", "--snapshot", file("n1-35.json", JSON.stringify(rest))];
    const set = ["--set", "memoryReservationPolicy=TieredReservation"];
    expect((await run([...asked, ...set])).code).toBe(EXIT.badInput);
    expect((await run([...asked, ...set, "--kubelet", "1.37"])).stdout).toContain(
      "WHAT IF  kubelet: 1.35 -> 1.37, memoryReservationPolicy: (none) -> TieredReservation\n",
    );
    expect((await run([...newer, "1.99"])).stderr).toBe(
      `nodewise: --kubelet: kubelet 1.99 is not known here: the versions are ${KNOWN_VERSIONS}\n`,
    );
  });

  test("--kubelet sets the version of a node without one, before and after the change", async () => {
    const ran = await run(["decide", "allocatable", "--capacity", "cpu=4", "--set", "maxPods=7", "--kubelet", "1.35"]);
    expect(ran.stdout.split("\n")[0]).toBe("(no node given) · allocatable · kubelet-1.35+5");
  });

  test("--capacity in place of a node's own names what is left out then", async () => {
    const ran = await run(["decide", "allocatable", "--node", realNode("node.json"), "--capacity", "cpu=4,memory=8Gi"]);
    expect(ran).toMatchObject({
      code: EXIT.ok,
      stderr:
        "nodewise: --capacity replaces the node's whole capacity: ephemeral-storage, hugepages-1Gi, hugepages-2Mi and pods do not count; name what is to remain\n",
    });
    expect((await run(["decide", "allocatable", "--capacity", "cpu=4,memory=8Gi"])).stderr).toBe("");
  });

  test("reads --patch from standard input, once", async () => {
    const ran = await run([...ALLOCATABLE, "--patch", "-", "-o", "yaml"], { input: "maxPods: 7\n" });
    expect(ran).toMatchObject({ code: EXIT.ok, stderr: "" });
    expect(ran.stdout).toContain("path: allocatable.pods");
    const twice = await run(["decide", "allocatable", "--snapshot", "-", "--patch", "-"]);
    expect(twice.stderr).toMatch(/^nodewise: standard input can be read once/);
  });

  test("decides admission with the allocatable that results from the change", async () => {
    const asked = ["decide", "admission", ...SNAPSHOT, "--pod", manifest("trader.yaml"), "-o", "json"];
    const less = JSON.parse((await run([...asked, "--set", "kubeReserved.cpu=1"])).stdout);
    const cpuOf = ({ decision }: { decision: { resources: readonly { resource: string; capacity: number }[] } }) =>
      decision.resources.find(({ resource }) => resource === "cpu")?.capacity;
    expect([cpuOf(less.before), cpuOf(less.after)]).toEqual([1800, 900]);
  });

  test("says so when the change has no effect", async () => {
    const ran = await run([...ALLOCATABLE, "--set", "kubeReserved.cpu=100m"]);
    expect(ran).toMatchObject({ code: EXIT.ok, stderr: "" });
    expect(ran.stdout).toContain("WHAT IF  nothing: the configuration has these values already\nSAME  decided: ");
    const unread = await run([...ALLOCATABLE, "--set", "eventRecordQPS=5"]);
    expect(unread.stdout).toContain("WHAT IF  eventRecordQPS: (none) -> 5\nSAME  decided: ");
    expect(unread.stderr).toBe(
      "nodewise: eventRecordQPS is read by no decision, and changes nothing here; `nodewise lint` checks all fields\n",
    );
  });

  test("changes the kubelet's defaults when no configuration is given, and values that are assumed", async () => {
    const bare = await run([
      "decide",
      "allocatable",
      "--node",
      realNode("node.json"),
      "--set",
      "evictionHard.memory.available=1Gi",
    ]);
    expect(bare.stdout).toContain("assumed: the kubelet's default configuration");
    // setting one signal removes the defaults of all others, as in a kubelet's configuration file
    expect(bare.stdout).toMatch(/reserved\.evictionHard\["ephemeral-storage"\] +[\d.]+ GiB +\(none\)\n/);
    expect(bare.stdout).toContain("warning evictionHard: evictionHard names memory.available");
    const assumed = await run([
      "decide",
      "topology",
      "--machine",
      "xeon-2s",
      "--policy",
      "single-numa-node",
      "--pod",
      manifest("trader.yaml"),
      "--set",
      "topologyManagerPolicy=none",
    ]);
    expect(assumed.stdout).toContain("WHAT IF  topologyManagerPolicy: single-numa-node -> none\n");
  });

  test("exits with 1 when the decision is refused after the change, with the former verdict", async () => {
    const ran = await run([...ALLOCATABLE, "--set", "kubeReserved.gpu=1"]);
    expect(ran.code).toBe(EXIT.negative);
    expect(ran.stdout).toContain("DIFFERS  decided -> refused\n");
    expect(ran.stderr).toBe(
      'nodewise: allocatable refused (invalid_configuration): kubeletConfiguration.kubeReserved: cannot reserve "gpu" resource\n',
    );
    const data = JSON.parse((await run([...ALLOCATABLE, "--set", "kubeReserved.gpu=1", "-o", "json"])).stdout);
    expect(data).toMatchObject({
      verdict: { from: "decided", to: null },
      after: { refusal: { code: "invalid_configuration" } },
    });
  });

  test("prints new reasons when reasons are requested", async () => {
    const ran = await run([...ALLOCATABLE, "--set", "kubeReserved.cpu=500m", "--explain", "reasons"]);
    expect(ran.stdout).toMatch(/\nWHY\n- cpu: allocatable: /);
  });

  test("keeps to the width of a narrow terminal", async () => {
    const ran = await run([...ALLOCATABLE, "--set", "kubeReserved.cpu=500m"], { env: { COLUMNS: "50" } });
    const table = ran.stdout.split("\n\n")[1]?.split("\n") ?? [];
    expect(table.length).toBeGreaterThan(4);
    expect(Math.max(...table.map((line) => line.length))).toBeLessThanOrEqual(50);
  });

  test.each([
    [
      ["--set", "kubeReserve.cpu=1"],
      "--set kubeReserve.cpu=1: the kubelet knows no field kubeReserve; did you mean kubeReserved?",
    ],
    [["--set", "maxPods=-5"], "--set maxPods=-5: maxPods: too small: expected number to be >=0"],
    [["--set", "kubeReserved.cpu=lots"], "--set kubeReserved.cpu=lots: kubeReserved.cpu: "],
    [
      ["--set", "kubeReserved=null", "--set", "kubeReserved.cpu=1"],
      "--set kubeReserved.cpu=1: an earlier option removes kubeReserved, or sets it to something that is no object",
    ],
    [
      ["--patch", manifest("trader.yaml")],
      `${manifest("trader.yaml")}: is an object of kind \`Pod\`, and --patch needs fields of a KubeletConfiguration`,
    ],
  ])("refuses %j before deciding", async (args, message) => {
    const ran = await run([...ALLOCATABLE, ...args]);
    expect(ran).toMatchObject({ code: EXIT.badInput, stdout: "" });
    expect(ran.stderr).toContain(`nodewise: ${message}`);
  });
});

describe.concurrent("nodewise decide allocatable --capacity", () => {
  const GIVEN = "cpu=4,memory=16Gi,pods=110,ephemeral-storage=100Gi,hugepages-2Mi=1Gi,example.com/gpu=2";

  test("decides for a node that does not exist", async () => {
    const ran = await run(["decide", "allocatable", "--capacity", GIVEN, "-o", "json"]);
    expect(ran).toMatchObject({ code: EXIT.ok, stderr: "" });
    const { node, decision } = JSON.parse(ran.stdout);
    expect(node).toBeNull();
    expect(decision.capacity).toEqual({
      cpu: "4",
      "ephemeral-storage": "100Gi",
      "example.com/gpu": "2",
      "hugepages-2Mi": "1Gi",
      memory: "16Gi",
      pods: "110",
    });
    expect(decision.allocatable).toMatchObject({ cpu: "4", memory: "15260Mi", pods: "110" });
  });

  test("replaces the capacity of a given node", async () => {
    const ran = await run([...ALLOCATABLE, "--capacity", "cpu=8,memory=64Gi", "-o", "json"]);
    expect(JSON.parse(ran.stdout).decision.capacity).toMatchObject({ cpu: "8", memory: "64Gi" });
  });

  test("prints capacity, the overhead in its three parts and allocatable with -o karpenter", async () => {
    const config = file("kubelet.yaml", "kubeReserved: {cpu: 100m, memory: 1Gi}\nsystemReserved: {memory: 512Mi}\n");
    const ran = await run([
      "decide",
      "allocatable",
      "--capacity",
      GIVEN,
      "--config",
      config,
      "--set",
      "evictionHard.memory.available=1Gi",
      "-o",
      "karpenter",
    ]);
    expect(ran).toMatchObject({ code: EXIT.ok, stderr: "" });
    const { capacity, overhead, allocatable, ...others } = JSON.parse(ran.stdout);
    expect(others).toEqual({});
    expect(overhead).toEqual({
      kubeReserved: { cpu: "100m", memory: "1Gi" },
      systemReserved: { memory: "512Mi" },
      evictionThreshold: { memory: "1Gi" },
    });
    expect(capacity.memory).toBe("16Gi");
    // Karpenter: allocatable is the capacity minus the whole overhead; huge pages are subtracted from the memory
    expect(allocatable).toMatchObject({ cpu: "3900m", memory: `${16 * 1024 - 1024 - 512 - 1024 - 1024}Mi` });
    expect(allocatable["example.com/gpu"]).toBe("2");
    const other = await run(["decide", "cgroups", ...SNAPSHOT, "-o", "karpenter"]);
    expect(other).toMatchObject({ code: EXIT.badInput, stdout: "" });
  });

  test.each([
    [
      "allocatable",
      ["--capacity", "cpu=4,memroy=16Gi"],
      "--capacity: a node has no resource `memroy`; did you mean memory?",
    ],
    [
      "allocatable",
      ["--capacity", "cpu=4,accelerators=1"],
      "--capacity: a node has no resource `accelerators`; there are cpu, memory, ephemeral-storage, pods, hugepages-SIZE and DOMAIN/NAME",
    ],
    ["allocatable", ["--capacity", "cpu=4,cpu=5"], "--capacity: `cpu` is given twice"],
    ["allocatable", ["--capacity", "memory=16Gb"], "--capacity: memory: `16Gb` "],
    [
      "allocatable",
      ["--capacity", "16Gi"],
      "--capacity 16Gi: expected NAME=QUANTITY,... of the node's resources, such as cpu=4,memory=16Gi,pods=110, found `16Gi`",
    ],
    [
      "allocatable",
      ["--capacity", "cpu=4", "--available", "1Gi"],
      "--available: allocatable reads no image file system; image-gc does",
    ],
    [
      "image-gc",
      ["--capacity", "cpu=4", "--available", "1Gi"],
      "--capacity cpu=4: image-gc needs the size of the image file system; NAME=QUANTITY,... of the node's resources is for allocatable",
    ],
    [
      "cgroups",
      ["--capacity", "cpu=4"],
      "--capacity and --available: cgroups reads no capacity of a node; allocatable does",
    ],
  ])("refuses %s %j", async (kind, args, message) => {
    const ran = await run(["decide", kind, ...args]);
    expect(ran).toMatchObject({ code: EXIT.badInput, stdout: "" });
    expect(ran.stderr).toContain(`nodewise: ${message}`);
  });
});
