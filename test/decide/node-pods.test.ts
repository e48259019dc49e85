import { describe, expect, test } from "vitest";
import { container, running, sidecar } from "../kit/containers.ts";
import { bestEffort, burstable, guaranteed, podOf } from "../kit/pods.ts";
import { configured, type Json, snapshot } from "../kit/snapshots.ts";
import { filesAt, outcome, pathsOf, refusalOf, valuesAt } from "./ask.ts";

const withStatus = (pod: Json, status: Json): Json => ({ ...pod, status });
const withSpec = (pod: Json, spec: Json): Json => ({ ...pod, spec: { ...(pod["spec"] as Json), ...spec } });
const BASE = pathsOf(snapshot());
const added = (pods: Json[], parts: Json = {}): string[] =>
  pathsOf(snapshot({ pods, ...parts })).filter((p) => !BASE.includes(p));

describe("which pods hold something", () => {
  test.each(["Succeeded", "Failed"])("a pod in phase %s holds nothing", (phase) => {
    const pods = [
      withStatus(guaranteed("g", "1", "1Gi"), { phase }),
      withStatus(burstable("b", "1", "1Gi"), { phase }),
    ];
    expect(added(pods)).toEqual([]);
    expect(valuesAt(snapshot({ pods }), "/kubepods/burstable").cpuShares).toBe(2);
  });
  test("a failed pod whose container is still being stopped does, until that has stopped", () => {
    const status = (state: Json) => ({ phase: "Failed", containerStatuses: [{ name: "c", state }] });
    const pod = burstable("b", "1", "1Gi");
    expect(added([withStatus(pod, status({ running: {} }))]).length).toBe(2);
    expect(added([withStatus(pod, status({ terminated: { exitCode: 137 } }))])).toEqual([]);
  });
  test.each(["Pending", "Running", "Unknown", ""])("a pod in phase `%s` does", (phase) => {
    expect(added([withStatus(burstable("b", "1", "1Gi"), { phase })])).toEqual([
      "/kubepods/burstable/podb",
      "/kubepods/burstable/podb/c",
    ]);
  });
  test("a pod that is being deleted does, until it is gone", () => {
    const pod = podOf(
      [container("c")],
      {},
      { metadata: { name: "p", uid: "u", deletionTimestamp: "2026-01-31T12:00:00Z" } },
    );
    expect(added([pod]).length).toBe(2);
  });
  test("pods of other nodes are not here, pods of no node are", () => {
    const here = withSpec(burstable("a", "1", "1Gi"), { nodeName: "n" });
    const there = withSpec(burstable("b", "8", "1Gi"), { nodeName: "m" });
    const nowhere = withSpec(burstable("c", "1", "1Gi"), { nodeName: "" });
    const pods = [here, there, nowhere, burstable("d", "1", "1Gi")];
    expect(
      added(pods)
        .filter((p) => p.endsWith("/c"))
        .map((p) => p.split("/")[3]),
    ).toEqual(["poda", "podc", "podd"]);
    expect(valuesAt(snapshot({ pods }), "/kubepods/burstable").cpuShares).toBe(3072);
  });
  test("without a node's name every pod is here", () => {
    const input = {
      cgroup: { version: 2 },
      machine: { memoryBytes: 1, cpus: [{ cpu: 0, core: 0, socket: 0, numa: 0 }] },
    };
    const pods = [withSpec(bestEffort("a"), { nodeName: "x" }), withSpec(bestEffort("b"), { nodeName: "y" })];
    expect(pathsOf({ ...input, pods }).filter((p) => p.endsWith("/c")).length).toBe(2);
  });
  test("a mirror pod lies under the uid of its static pod", () => {
    const annotations = { "kubernetes.io/config.mirror": "31e35ea8608c6df6", "kubernetes.io/config.source": "file" };
    expect(added([podOf([container("c")], {}, { metadata: { name: "m", uid: "api-uid", annotations } })])).toEqual([
      "/kubepods/besteffort/pod31e35ea8608c6df6",
      "/kubepods/besteffort/pod31e35ea8608c6df6/c",
    ]);
  });
  test("a pod without a uid is asked for, by its place, unless it holds nothing here", () => {
    const nameless = (status?: Json): Json => ({
      metadata: { name: "x" },
      spec: { containers: [container("c")] },
      ...(status && { status }),
    });
    const refusal = refusalOf("cgroups", snapshot({ pods: [bestEffort("a"), nameless()] }));
    expect(refusal).toMatchObject({ code: "needs_input", needs: ["pods[1].metadata.uid"] });
    expect(added([nameless({ phase: "Failed" })])).toEqual([]);
  });
});

describe("which containers of a pod are there", () => {
  const state = (name: string, of: Json): Json => ({ name, state: of });
  const over = { terminated: { exitCode: 0 } };
  const leaves = (pod: Json): string[] =>
    added([pod])
      .slice(1)
      .map((p) => p.slice(p.lastIndexOf("/") + 1));
  /** Two containers, and a sidecar between two init containers. */
  const podOfFive = (status?: Json): Json =>
    podOf(
      [container("a", { cpu: "1" }), container("b")],
      { initContainers: [container("i"), sidecar("s"), container("j")] },
      status === undefined ? {} : { status },
    );
  test("before anything runs: all, in the order in which they start", () => {
    expect(leaves(podOfFive())).toEqual(["i", "s", "j", "a", "b"]);
  });
  test("an init container that ended is gone, a sidecar that runs stays", () => {
    const status = { initContainerStatuses: [state("i", over), running("s", "id-s"), running("j", "id-j")] };
    expect(leaves(podOfFive(status))).toEqual(["id-s", "id-j", "a", "b"]);
  });
  test("once a container runs, init containers are past even without a status", () => {
    const status = {
      containerStatuses: [running("a", "id-a"), state("b", { waiting: { reason: "CrashLoopBackOff" } })],
    };
    expect(leaves(podOfFive(status))).toEqual(["s", "id-a", "b"]);
  });
  test("the id of an earlier run is not that of a container that waits", () => {
    const waits = { name: "a", containerID: "containerd://old", state: { waiting: { reason: "CrashLoopBackOff" } } };
    expect(leaves(podOfFive({ containerStatuses: [waits, running("b", "id-b")] }))).toEqual(["s", "a", "id-b"]);
  });
  test("a container that ended is gone", () => {
    expect(leaves(podOfFive({ containerStatuses: [running("a", "id-a"), state("b", over)] }))).toEqual(["s", "id-a"]);
  });
  test.each([
    "",
    "containerd://",
    "containerd://../x",
    "containerd://a/b",
    "containerd://-a",
    `containerd://${"a".repeat(129)}`,
  ])("an id like `%s` is not used as a directory", (containerID) => {
    const status = { containerStatuses: [{ ...running("a", "x"), containerID }] };
    expect(leaves(podOfFive(status))).toContain("a");
  });
  test("one id told of two containers is no reason for one path twice", () => {
    const status = { containerStatuses: [running("a", "same"), running("b", "same")] };
    const input = snapshot({ pods: [podOfFive(status)] });
    const paths = outcome("cgroups", input) === "answered" ? pathsOf(input) : [];
    expect(new Set(paths).size).toBe(paths.length);
  });
});

describe("podPidsLimit", () => {
  const pids = (podPidsLimit: number): unknown =>
    filesAt(configured({ podPidsLimit }, { pods: [bestEffort("e")] }), "/kubepods/besteffort/pode")["pids.max"];
  test("is written on pods when it is above 0, on nothing else", () => {
    expect(pids(1024)).toBe("1024");
    expect(pids(0)).toBeUndefined();
    expect(pids(-1)).toBeUndefined();
    const input = configured({ podPidsLimit: 7 }, { pods: [bestEffort("e")] });
    for (const path of ["/kubepods", "/kubepods/besteffort", "/kubepods/besteffort/pode/c"])
      expect(filesAt(input, path)).not.toHaveProperty("pids.max");
  });
  test("kubepods has what the node has less its reserves", () => {
    const stats = { node: { rlimit: { maxpid: 32_768 } } };
    const config = { kubeReserved: { pid: "500" }, systemReserved: { pid: "500" } };
    expect(filesAt(configured(config, { stats }), "/kubepods")["pids.max"]).toBe("31768");
    expect(filesAt(configured({ ...config, enforceNodeAllocatable: [] }, { stats }), "/kubepods")["pids.max"]).toBe(
      "32768",
    );
    expect(filesAt(configured({ kubeReserved: { pid: "99999" } }, { stats }), "/kubepods")["pids.max"]).toBe("1");
  });
});
