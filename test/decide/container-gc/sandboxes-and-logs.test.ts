import { describe, expect, test } from "vitest";
import { pod } from "../../kit/pods.ts";
import type { Json } from "../../kit/snapshots.ts";
import {
  answer,
  codesOf,
  evictedPod,
  gcContainer,
  gcNode,
  kept,
  live,
  NOW,
  READY,
  removed,
  sandbox,
  UNDER_PRESSURE,
} from "./container-gc-kit.ts";

const TWO = [sandbox("old", "a", 3000), sandbox("new", "a", 1000)];
const ENDED = pod("a", { status: { phase: "Succeeded" } });
const DELETED = pod("a", { status: { phase: "Running" }, metadata: { deletionTimestamp: "2026-01-31T11:00:00Z" } });

describe("removal of dead sandboxes", () => {
  const of = (pods: readonly Json[], sandboxes: readonly Json[], kubelet: Json = {}, ask?: unknown) =>
    answer(gcNode(pods, { sandboxes }, kubelet), ask);
  test("removes all but the newest sandbox of an existing pod", () => {
    const decided = of([live("a")], [...TWO].reverse());
    expect(removed(decided)).toEqual(["old: older-sandbox"]);
    expect(kept(decided)).toEqual(["new: newest-sandbox"]);
    expect(decided.decision.remove[0]).toMatchObject({
      target: "sandbox",
      pod: { namespace: "default", name: "a", uid: "uid-a" },
      name: null,
      attempt: 0,
      stopFirst: true,
      createdAtMs: NOW - 3000,
    });
  });
  test("picks the newest sandbox over all states", () => {
    const ready = sandbox("ready", "a", 500, READY);
    expect(kept(of([live("a")], [...TWO, ready]))).toEqual(["ready: sandbox-ready"]);
    const older = sandbox("ready", "a", 9000, READY);
    expect(kept(of([live("a")], [...TWO, older]))).toEqual(["ready: sandbox-ready", "new: newest-sandbox"]);
  });
  test("removes all of a removed, evicted or deleted pod, and of an ended pod only under pressure", () => {
    const ALL = ["old: pod-removed", "new: pod-removed"];
    for (const pods of [[], [evictedPod("a")], [DELETED]]) expect(removed(of(pods, TWO))).toEqual(ALL);
    expect(removed(of([ENDED], TWO))).toEqual(["old: older-sandbox"]);
    expect(removed(of([ENDED], TWO, {}, UNDER_PRESSURE))).toEqual(["old: pod-terminated", "new: pod-terminated"]);
  });
  test("waits for all pod sources when the pod is not posted, but not when it is known to be removed", () => {
    const unready = { sourcesReady: false };
    const decided = of([], TWO, unready);
    expect(removed(decided)).toEqual(["old: older-sandbox"]);
    expect(kept(decided)).toEqual(["new: sources-not-ready"]);
    expect(removed(of([DELETED], TWO, unready))).toEqual(["old: pod-removed", "new: pod-removed"]);
    expect(removed(of([ENDED], TWO, unready, UNDER_PRESSURE))).toEqual(["old: pod-terminated", "new: pod-terminated"]);
  });
  test("keeps a ready sandbox, whatever the state of its pod", () => {
    expect(removed(of([evictedPod("a")], [sandbox("r", "a", 1, READY)]))).toEqual([]);
  });
  test("keeps the greater id of two sandboxes created at the same time, as a tie", () => {
    const { decision } = of(
      [live("a")],
      ["y", "x"].map((id) => sandbox(id, "a", 1000)),
    );
    expect(decision.remove.map((r) => [r.id, r.tie])).toEqual([["x", true]]);
  });
  test("ignores the minimum age, which applies to containers only", () => {
    expect(removed(of([], [sandbox("s", "a", 1)], { minimumContainerTTLMs: 60_000 }))).toEqual(["s: pod-removed"]);
  });
});

describe("a sandbox with containers", () => {
  const containers = ["c1", "c2"].map((id, i) => gcContainer(id, "a", 5000 - i, { podSandboxId: "old" }));
  test("is removed when this pass removes its containers", () => {
    const decided = answer(gcNode([], { containers, sandboxes: TWO }));
    expect(removed(decided)).toEqual(["c1", "c2", "old", "new"].map((id) => `${id}: pod-removed`));
    expect(decided.decision.remove.map((r) => r.place)).toEqual([1, 2, 3, 4]);
  });
  test("is kept when a container in it stays within its limits", () => {
    const decided = answer(gcNode([live("a")], { containers, sandboxes: TWO }));
    expect(removed(decided)).toEqual(["c1: per-container-limit"]);
    expect(kept(decided)).toEqual(["c2: within-limits", "old: sandbox-has-containers", "new: newest-sandbox"]);
  });
  test("is kept when removing a container in it failed, though the limits count it as removed", () => {
    const done = [
      { id: "c1", end: "removed" },
      { id: "c2", end: "failed", message: "device or resource busy" },
    ];
    const decided = answer(gcNode([], { containers, sandboxes: TWO }), { done });
    expect(decided.decision.remove.map((r) => [r.id, r.end, r.message])).toEqual([
      ["c1", "removed", undefined],
      ["c2", "failed", "device or resource busy"],
      ["new", "planned", undefined],
    ]);
    expect(kept(decided)).toEqual(["old: sandbox-has-containers"]);
    expect(codesOf(decided, "c2")).toContain("removal_failed");
  });
  test("is not reached when the pass was stopped", () => {
    const done = [{ id: "c1", end: "stopped", message: "the container runs again" }];
    const logs = { podLogDirectories: ["default_z_uid-z"], danglingLogLinks: ["z_default_c-0123456789ab.log"] };
    const decided = answer(gcNode([], { containers, sandboxes: TWO, ...logs }), { done });
    expect(decided.decision.remove.map((r) => [r.id, r.end])).toEqual([["c1", "stopped"]]);
    expect(kept(decided)).toEqual([
      "c2: not-reached",
      "new: not-reached",
      "old: sandbox-has-containers",
      "default_z_uid-z: not-reached",
      "z_default_c-0123456789ab.log: not-reached",
    ]);
    expect(codesOf(decided, "c1")).toContain("pass_stopped");
  });
  test("a reported removal that was not planned gets the reason done_without_plan", () => {
    const decided = answer(gcNode([live("a")], { containers }), { done: [{ id: "c2", end: "removed" }] });
    expect(codesOf(decided, "c2")).toContain("done_without_plan");
  });
});

describe("pod log directories", () => {
  const directories = ["default_b_uid-b", "default_a_uid-a"];
  const of = (pods: readonly Json[], kubelet: Json = {}, ask?: unknown) =>
    answer(gcNode(pods, { podLogDirectories: directories }, kubelet), ask);
  test("are removed when their pod was removed, sorted by name", () => {
    const decided = of([live("a")]);
    expect(removed(decided)).toEqual(["default_b_uid-b: pod-removed"]);
    expect(kept(decided)).toEqual(["default_a_uid-a: pod-exists"]);
    expect(decided.decision.remove[0]).toMatchObject({
      target: "pod-logs",
      pod: { namespace: "default", name: "b", uid: "uid-b" },
      state: null,
      createdAtMs: null,
    });
  });
  test("are kept when their name is not NAMESPACE_NAME_UID", () => {
    const strays = ["backup", "lost+found", "ns_uid", "ns_x_y_uid", "_x_uid", "ns__uid", "ns_x_"].sort();
    const decided = answer(gcNode([], { podLogDirectories: [...strays, "ns_x_uid"] }));
    expect(removed(decided)).toEqual(["ns_x_uid: pod-removed"]);
    expect(kept(decided)).toEqual(strays.map((name) => `${name}: not-pod-logs`));
    expect(codesOf(decided, "backup")).toEqual(["not_pod_logs"]);
  });
  test("are all kept until all pod sources are ready, even that of an evicted pod", () => {
    const decided = of([evictedPod("a")], { sourcesReady: false });
    expect(removed(decided)).toEqual([]);
    expect(decided.decision.keep.map((k) => k.why)).toEqual(directories.map(() => "sources-not-ready"));
  });
  test("are kept when their pod has ended but was not deleted, under pressure too", () => {
    expect(kept(of([ENDED], {}, UNDER_PRESSURE))).toContain("default_a_uid-a: pod-exists");
    expect(removed(of([DELETED]))).toContain("default_a_uid-a: pod-removed");
  });
  test("are kept when their pod is not posted but still runs", () => {
    const runtime = { podLogDirectories: ["default_b_uid-b"], sandboxes: [sandbox("s", "b", 1, READY)] };
    expect(kept(answer(gcNode([], runtime)))).toContain("default_b_uid-b: pod-exists");
  });
});

describe("dangling links to container logs", () => {
  const ID = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  const link = (id: string) => `a_default_c-${id}.log`;
  const of = (links: readonly string[], state: string, kubelet: Json = {}) =>
    answer(gcNode([live("a")], { containers: [gcContainer(ID, "a", 1, { state })], danglingLogLinks: links }, kubelet));
  test("are removed when their container has exited or is unknown, or the name holds no id", () => {
    const links = ["a_default_c-12345.log", link("f".repeat(64)), link(ID), "x.txt"].sort();
    const decided = of(links, "CONTAINER_EXITED");
    expect(removed(decided)).toEqual(links.map((l) => `${l}: dangling`));
    const own = decided.decision.remove.find((r) => r.id === link(ID));
    expect(own).toMatchObject({ target: "log-link", name: "c", state: "CONTAINER_EXITED", pod: { name: "a" } });
  });
  test.each(["CONTAINER_RUNNING", "CONTAINER_CREATED", "CONTAINER_UNKNOWN"])(
    "are kept while the container is %s",
    (state) => {
      expect(kept(of([link(ID)], state))).toContain(`${link(ID)}: container-not-exited`);
      // a long file name is truncated
      expect(kept(of([link(ID.slice(0, 40))], state))).toContain(`${link(ID.slice(0, 40))}: container-not-exited`);
    },
  );
  test("are removed when the id in their name has fewer than six characters", () => {
    const [tooShort, enough] = [link(ID.slice(0, 5)), link(ID.slice(0, 6))];
    const decided = of([tooShort, enough], "CONTAINER_RUNNING");
    expect(removed(decided)).toEqual([`${tooShort}: dangling`]);
    expect(kept(decided)).toContain(`${enough}: container-not-exited`);
  });
  test("are kept when one of several containers with the id prefix has not exited", () => {
    const states = ["CONTAINER_EXITED", "CONTAINER_RUNNING"];
    const containers = states.map((state, i) => gcContainer(`${ID}${i}`, "a", i + 1, { state }));
    const runtime = { containers, danglingLogLinks: [link(ID), link(`${ID}0`)] };
    const decided = answer(gcNode([live("a")], runtime));
    expect(removed(decided)).toEqual([`${link(`${ID}0`)}: dangling`]);
  });
  test("are removed when this pass removes their container", () => {
    const decided = of([link(ID)], "CONTAINER_CREATED", { maximumDeadContainersPerContainer: 0 });
    expect(removed(decided)).toEqual([`${ID}: per-container-limit`, `${link(ID)}: dangling`]);
  });
  test("are removed even when not all pod sources are ready", () => {
    expect(removed(of([link(ID)], "CONTAINER_EXITED", { sourcesReady: false }))).toHaveLength(1);
  });
});
