import { describe, expect, test } from "vitest";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { container, running, sidecar } from "../kit/containers.ts";
import { bestEffort, burstable, guaranteed, podOf } from "../kit/pods.ts";
import { configured, type Json, snapshot } from "../kit/snapshots.ts";
import { filesAt, pathsOf, refusalOf, valuesAt } from "./ask.ts";

const withStatus = (pod: Json, status: Json): Json => ({ ...pod, status });
const withSpec = (pod: Json, spec: Json): Json => ({ ...pod, spec: { ...(pod["spec"] as Json), ...spec } });
const BASE = pathsOf(snapshot());
const added = (pods: Json[], parts: Json = {}): string[] =>
  pathsOf(snapshot({ pods, ...parts })).filter((p) => !BASE.includes(p));

describe("the cgroups of pods", () => {
  test.each(["Succeeded", "Failed"])("are absent for a pod in phase %s", (phase) => {
    const pods = [
      withStatus(guaranteed("g", "1", "1Gi"), { phase }),
      withStatus(burstable("b", "1", "1Gi"), { phase }),
    ];
    expect(added(pods)).toEqual([]);
    expect(valuesAt(snapshot({ pods }), "/kubepods/burstable").cpuShares).toBe(2);
  });
  test("remain for a failed pod until its last container has stopped", () => {
    const status = (state: Json) => ({ phase: "Failed", containerStatuses: [{ name: "c", state }] });
    const pod = burstable("b", "1", "1Gi");
    expect(added([withStatus(pod, status({ running: {} }))]).length).toBe(2);
    expect(added([withStatus(pod, status({ terminated: { exitCode: 137 } }))])).toEqual([]);
  });
  test.each(["Pending", "Running", "Unknown", ""])("are there for a pod in phase `%s`", (phase) => {
    expect(added([withStatus(burstable("b", "1", "1Gi"), { phase })])).toEqual([
      "/kubepods/burstable/podb",
      "/kubepods/burstable/podb/c",
    ]);
  });
  test("are there for a pod that is being deleted", () => {
    const pod = podOf(
      [container("c")],
      {},
      { metadata: { name: "p", uid: "u", deletionTimestamp: "2026-01-31T12:00:00Z" } },
    );
    expect(added([pod]).length).toBe(2);
  });
  test("are absent for pods bound to other nodes, and there for pods bound to none", () => {
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
  test("are there for every pod when the node's name is unknown", () => {
    const input = {
      cgroup: { version: 2 },
      machine: { memoryBytes: 1, cpus: [{ cpu: 0, core: 0, socket: 0, numa: 0 }] },
    };
    const pods = [withSpec(bestEffort("a"), { nodeName: "x" }), withSpec(bestEffort("b"), { nodeName: "y" })];
    expect(pathsOf({ ...input, pods }).filter((p) => p.endsWith("/c")).length).toBe(2);
  });
  test("are named by the static pod's uid for a mirror pod", () => {
    const annotations = { "kubernetes.io/config.mirror": "31e35ea8608c6df6", "kubernetes.io/config.source": "file" };
    expect(added([podOf([container("c")], {}, { metadata: { name: "m", uid: "api-uid", annotations } })])).toEqual([
      "/kubepods/besteffort/pod31e35ea8608c6df6",
      "/kubepods/besteffort/pod31e35ea8608c6df6/c",
    ]);
  });
  test("need a pod's uid, unless the pod has ended", () => {
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

describe("the container cgroups of a pod", () => {
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
  test("are those of all containers in start order before any runs", () => {
    expect(leaves(podOfFive())).toEqual(["i", "s", "j", "a", "b"]);
  });
  test("omit an init container that ended, and keep a running sidecar", () => {
    const status = { initContainerStatuses: [state("i", over), running("s", "id-s"), running("j", "id-j")] };
    expect(leaves(podOfFive(status))).toEqual(["id-s", "id-j", "a", "b"]);
  });
  test("omit init containers once a regular container runs, even without their status", () => {
    const status = {
      containerStatuses: [running("a", "id-a"), state("b", { waiting: { reason: "CrashLoopBackOff" } })],
    };
    expect(leaves(podOfFive(status))).toEqual(["s", "id-a", "b"]);
  });
  test("do not use the container id of an earlier run for a waiting container", () => {
    const waits = { name: "a", containerID: "containerd://old", state: { waiting: { reason: "CrashLoopBackOff" } } };
    expect(leaves(podOfFive({ containerStatuses: [waits, running("b", "id-b")] }))).toEqual(["s", "a", "id-b"]);
  });
  test("omit a container that ended", () => {
    expect(leaves(podOfFive({ containerStatuses: [running("a", "id-a"), state("b", over)] }))).toEqual(["s", "id-a"]);
  });
  test.each([
    "",
    "containerd://",
    "containerd://../x",
    "containerd://a/b",
    "containerd://-a",
    `containerd://${"a".repeat(129)}`,
  ])("do not use the id `%s` as a directory name", (containerID) => {
    const status = { containerStatuses: [{ ...running("a", "x"), containerID }] };
    expect(leaves(podOfFive(status))).toContain("a");
  });
  test("are not decided if two containers report one id", () => {
    const status = { containerStatuses: [running("a", "same"), running("b", "same")] };
    const decoded = decodeSnapshot(snapshot({ pods: [podOfFive(status)] }));
    expect(decoded.ok ? [] : decoded.error).toEqual([
      { path: "pods[0].status", message: "two containers have the id `containerd://same`" },
    ]);
  });
});

describe("the limit of process ids", () => {
  const pids = (podPidsLimit: number): unknown =>
    filesAt(configured({ podPidsLimit }, { pods: [bestEffort("e")] }), "/kubepods/besteffort/pode")["pids.max"];
  test("podPidsLimit is written to pids.max of pods when above 0, and to nothing else", () => {
    expect(pids(1024)).toBe("1024");
    expect(pids(0)).toBeUndefined();
    expect(pids(-1)).toBeUndefined();
    const input = configured({ podPidsLimit: 7 }, { pods: [bestEffort("e")] });
    for (const path of ["/kubepods", "/kubepods/besteffort", "/kubepods/besteffort/pode/c"])
      expect(filesAt(input, path)).not.toHaveProperty("pids.max");
  });
  test("kubepods has pids.max of the node's maxpid minus the pid reserves", () => {
    const stats = { node: { rlimit: { maxpid: 32_768 } } };
    const config = { kubeReserved: { pid: "500" }, systemReserved: { pid: "500" } };
    expect(filesAt(configured(config, { stats }), "/kubepods")["pids.max"]).toBe("31768");
    expect(filesAt(configured({ ...config, enforceNodeAllocatable: [] }, { stats }), "/kubepods")["pids.max"]).toBe(
      "32768",
    );
    expect(filesAt(configured({ kubeReserved: { pid: "99999" } }, { stats }), "/kubepods")["pids.max"]).toBe("1");
  });
});
