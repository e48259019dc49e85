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
  made,
  NOW,
  READY,
  removed,
  sandbox,
  UNDER_PRESSURE,
} from "./container-gc-kit.ts";

const MINUTE = 60_000;
/** Three dead containers of `a`, the newest last; their sandbox is in use. */
const THREE = [gcContainer("a1", "a", 3 * MINUTE), gcContainer("a2", "a", 2 * MINUTE), gcContainer("a3", "a", MINUTE)];
const LIVE = [sandbox("sb-a", "a", 9 * MINUTE, READY)];

describe("dead containers of a removed pod", () => {
  const gone = (pods: readonly Json[], kubelet: Json = {}, ask?: unknown, more: readonly Json[] = []) =>
    answer(gcNode(pods, { containers: [...THREE, ...more] }, kubelet), ask);
  const ALL = ["a1", "a2", "a3"].map((id) => `${id}: pod-removed`);
  const LIMITED = ["a1: per-container-limit", "a2: per-container-limit"];
  const DELETED = { deletionTimestamp: "2026-01-31T11:00:00Z" };
  const running = gcContainer("run", "a", MINUTE, { state: "CONTAINER_RUNNING", metadata: { name: "r", attempt: 0 } });

  test("are all removed when the pod is not posted", () => {
    const decided = gone([]);
    expect(removed(decided)).toEqual(ALL);
    expect(codesOf(decided, "a1")).toEqual(["pod_not_posted", "sandbox_not_listed"]);
  });
  test("are removed only beyond the limits while not every pod source is ready", () => {
    const decided = gone([], { sourcesReady: false });
    expect(removed(decided)).toEqual(LIMITED);
    expect(kept(decided)).toEqual(["a3: sources-not-ready"]);
    expect(decided.decision.allSourcesReady).toBe(false);
  });
  test("are all removed when the pod was evicted, unless pod sources are missing", () => {
    expect(removed(gone([evictedPod("a")]))).toEqual(ALL);
    expect(removed(gone([evictedPod("a")], { sourcesReady: false }))).toEqual(LIMITED);
  });
  test("are removed only beyond the limits when the eviction predates the kubelet's start or the node shuts down", () => {
    const startedAt = (ms: number) => ({ startedAt: new Date(ms).toISOString() });
    expect(removed(gone([evictedPod("a")], startedAt(NOW - 30_000)))).toEqual(LIMITED);
    expect(removed(gone([evictedPod("a")], startedAt(NOW - MINUTE)))).toEqual(ALL);
    expect(removed(gone([evictedPod("a")], { shuttingDown: true }))).toEqual(LIMITED);
  });
  test("are all removed when the pod was deleted and no container runs", () => {
    const deleted = pod("a", { status: { phase: "Running" }, metadata: DELETED });
    expect(removed(gone([deleted]))).toEqual(ALL);
    expect(removed(gone([deleted], {}, undefined, [running]))).toEqual(LIMITED);
    const ready = gcNode([deleted], { containers: THREE, sandboxes: LIVE });
    expect(removed(answer(ready))).toEqual(LIMITED);
  });
  test("are removed only beyond the limits when the pod ended but was not deleted, except under pressure", () => {
    for (const phase of ["Succeeded", "Failed"]) {
      expect(removed(gone([pod("a", { status: { phase } })]))).toEqual(LIMITED);
      expect(removed(gone([pod("a", { status: { phase } })], {}, UNDER_PRESSURE))).toEqual(
        ["a1", "a2", "a3"].map((id) => `${id}: pod-terminated`),
      );
    }
    expect(removed(gone([pod("a", { status: { phase: "Failed" } })], {}, UNDER_PRESSURE, [running]))).toEqual(LIMITED);
    expect(removed(gone([pod("a", { status: { phase: "Failed" } })], { sourcesReady: false }, UNDER_PRESSURE))).toEqual(
      LIMITED,
    );
  });
  test("are removed only beyond the limits under pressure while the pod still runs", () => {
    expect(removed(gone([live("a")], {}, UNDER_PRESSURE))).toEqual(LIMITED);
  });
  test("are removed only beyond the limits when a container of the unposted pod still runs", () => {
    const decided = gone([], {}, undefined, [running]);
    expect(removed(decided)).toEqual(LIMITED);
    expect(kept(decided)).toEqual(["a3: within-limits", "run: running"]);
  });
  test("include containers without a pod uid label", () => {
    const stray = { ...gcContainer("stray", "a", 1), labels: {} };
    const decided = answer(gcNode([live("a")], { containers: [stray] }));
    expect(removed(decided)).toEqual(["stray: pod-removed"]);
    expect(decided.decision.remove[0]?.pod).toBeNull();
    const unready = answer(gcNode([live("a")], { containers: [stray] }, { sourcesReady: false }));
    expect(kept(unready)).toEqual(["stray: sources-not-ready"]);
  });
  test("are removed before containers over a limit", () => {
    const containers = [...THREE, gcContainer("z1", "z", MINUTE)];
    expect(removed(answer(gcNode([live("a")], { containers })))).toEqual(["z1: pod-removed", ...LIMITED]);
  });
});

test("containers of a static pod are matched by config hash, from the static pod or its mirror pod", () => {
  const hash = "31e35ea8608c6df6aac8c06f7c51c4a3";
  const config = { "kubernetes.io/config.hash": hash, "kubernetes.io/config.source": "file" };
  const mirror = pod("s", { metadata: { annotations: { ...config, "kubernetes.io/config.mirror": hash } } });
  const own = pod("s", { metadata: { uid: hash, annotations: config } });
  const labels = { "io.kubernetes.pod.uid": hash };
  for (const given of [mirror, own]) {
    const decided = answer(
      gcNode([given], { containers: [{ ...gcContainer("s1", "s", 1), createdAt: made(1), labels }] }),
    );
    expect(kept(decided)).toEqual(["s1: within-limits"]);
  }
});
