import { describe, expect, test } from "vitest";
import { sidecar } from "../../kit/containers.ts";
import { node } from "../../kit/nodes.ts";
import { decoded } from "../../kit/snapshots.ts";
import { answerOf, attempts, dryRun, firstOf, HTTP, probedPod, probeOf } from "./probes-kit.ts";

const seconds = (spans: readonly { fromMs: number; toMs: number | null }[]) =>
  spans.map(({ fromMs, toMs }) => [fromMs / 1000, toMs === null ? null : toMs / 1000]);

describe("a dry run of probes", () => {
  test("of liveness restarts the container after three failures, at once and then after a back-off", () => {
    const pod = probedPod({ livenessProbe: { ...HTTP, periodSeconds: 5 } });
    const decision = dryRun(pod, { outcomes: "ok,ok,fail*3", seconds: 90 });
    expect(attempts(decision, "liveness")).toEqual([
      "0s c0 ok",
      "5s c0 ok",
      "10s c0 fail",
      "15s c0 fail",
      "20s c0 fail",
      "25s c1 fail",
      "30s c1 fail",
      "35s c1 fail",
      "40s c2 fail",
      "45s c2 fail",
      "50s c2 fail",
      "55s c3 fail",
      "60s c3 fail",
      "65s c3 fail",
      // CrashLoopBackOff delays this start by 20 s after the newest end, since the container before had ended only 15 s
      // earlier
      "85s c4 fail",
      "90s c4 fail",
    ]);
    expect(decision).toMatchObject({ restarts: 4, firstRestartAtMs: 20_000, endMs: 90_000, truncated: false });
    expect(probeOf(decision, "liveness").results.slice(0, 4)).toEqual([
      { atMs: 0, containerId: "c0", result: "Success" },
      { atMs: 20_000, containerId: "c0", result: "Failure" },
      { atMs: 25_000, containerId: "c1", result: "Success" },
      { atMs: 35_000, containerId: "c1", result: "Failure" },
    ]);
    expect(decision.events).toEqual([
      {
        type: "Warning",
        reason: "Unhealthy",
        message: "Liveness probe failed: ",
        container: "app",
        count: 14,
        firstAtMs: 10_000,
        lastAtMs: 90_000,
      },
      {
        type: "Normal",
        reason: "Killing",
        message: "Container app failed liveness probe, will be restarted",
        container: "app",
        count: 4,
        firstAtMs: 20_000,
        lastAtMs: 65_000,
      },
    ]);
    expect(dryRun(pod, { outcomes: "ok,ok,fail*3", seconds: 90, backOff: false }).restarts).toBe(5);
    expect(answerOf({ pod, outcomes: "fail" }).verdict).toBe("restarts");
    expect(answerOf({ pod }).verdict).toBe("decided");
  });

  test("backs off restarts like the kubelet version of the node", () => {
    const pod = probedPod({ livenessProbe: { ...HTTP, periodSeconds: 5 } });
    const restarts = (version: string, kubeletConfiguration: object = {}) =>
      answerOf(
        { pod, outcomes: "fail", seconds: 600 },
        decoded({ node: node({ nodeInfo: { kubeletVersion: version } }), kubeletConfiguration }),
      ).decision.restarts;
    const always = answerOf({ pod, outcomes: "fail", seconds: 600, backOff: false }).decision.restarts;
    const crashLoopBackOff = { maxContainerRestartPeriod: "1s" };
    expect(restarts("v1.37.2")).toBe(7);
    expect(restarts("v1.37.2", { crashLoopBackOff: {} })).toBe(7);
    expect(restarts("v1.37.2", { crashLoopBackOff })).toBeGreaterThan(always - 9);
    expect(restarts("v1.37.2", { crashLoopBackOff, featureGates: { KubeletCrashLoopBackOffMax: false } })).toBe(7);
    // the field's gate is alpha in 1.34
    expect(restarts("v1.34.4", { crashLoopBackOff })).toBe(7);
    const featureGates = { ReduceDefaultCrashLoopBackOffDecay: true };
    expect(restarts("v1.34.4", { featureGates })).toBeGreaterThan(10);
  });

  test("of all three: startup holds the others back, and readiness is asked right after it", () => {
    const probes = {
      startupProbe: { ...HTTP, periodSeconds: 2, failureThreshold: 10 },
      livenessProbe: { ...HTTP, periodSeconds: 10 },
      readinessProbe: { ...HTTP, periodSeconds: 10 },
    };
    const decision = dryRun(probedPod(probes), { outcomes: { startup: "fail*3,ok" }, seconds: 30 });
    expect(attempts(decision, "startup")).toEqual(["0s c0 fail", "2s c0 fail", "4s c0 fail", "6s c0 ok"]);
    expect(attempts(decision, "liveness")).toEqual(["10s c0 ok", "20s c0 ok", "30s c0 ok"]);
    expect(attempts(decision, "readiness")).toEqual(["6s c0 ok", "16s c0 ok", "26s c0 ok"]);
    expect(seconds(firstOf(decision).started)).toEqual([[6, null]]);
    expect(seconds(firstOf(decision).ready)).toEqual([[6, null]]);
    expect(seconds(probeOf(decision, "startup").onHold)).toEqual([[6, null]]);
  });

  test("starts an attempt late when a timeout exceeds the period, and never runs two at once", () => {
    const pod = probedPod({ livenessProbe: { ...HTTP, periodSeconds: 2, timeoutSeconds: 5, failureThreshold: 2 } });
    const decision = dryRun(pod, { outcomes: "ok@1s,timeout", seconds: 14 });
    expect(attempts(decision, "liveness")).toEqual(["0s c0 ok", "2s c0 timeout", "7s c0 timeout", "14s c1 timeout"]);
    const slow = dryRun(pod, { outcomes: "ok@5s", seconds: 4 });
    expect(probeOf(slow, "liveness").attempts).toEqual([
      { atMs: 0, containerId: "c0", outcome: "timeout", tookMs: 5000 },
    ]);
  });

  test("tries hangs and errors three times, and never restarts the container for them unless strict", () => {
    const pod = probedPod({ livenessProbe: { ...HTTP, failureThreshold: 1, timeoutSeconds: 2 } });
    for (const [outcome, code, ticks] of [
      ["hang", "hang-discarded", 0],
      ["error", "error-discarded", 0],
    ] as const) {
      const decision = dryRun(pod, { outcomes: outcome, seconds: 30 });
      expect(decision.restarts).toBe(ticks);
      expect(decision.quirks).toMatchObject([{ code, container: "app", type: "liveness" }]);
      expect(probeOf(decision, "liveness").attempts.length).toBeGreaterThan(8);
      expect(dryRun(pod, { outcomes: outcome, seconds: 30, strict: true }).restarts).toBeGreaterThan(0);
    }
    expect(attempts(dryRun(pod, { outcomes: "hang", seconds: 9 }), "liveness")).toEqual([
      "0s c0 hang",
      "2s c0 hang",
      "4s c0 hang",
    ]);
  });

  test("has the kubelet's messages for outcomes that count as no failure and for nameless timeouts", () => {
    const runOf = (probe: object, outcomes: string) =>
      dryRun(probedPod({ livenessProbe: { failureThreshold: 1, timeoutSeconds: 2, ...probe } }), {
        outcomes,
        seconds: 9,
      });
    const said = (probe: object, outcomes: string) => runOf(probe, outcomes).events[0]?.message;
    const errored = "Liveness probe errored and resulted in";
    const late = "context deadline exceeded (Client.Timeout or context cancellation while reading body)";
    expect(said(HTTP, "hang")).toBe(`${errored} failure state: ${late}`);
    expect(said(HTTP, "hang@1s")).toBe(`${errored} failure state: unexpected EOF`);
    const byName = { httpGet: { port: "web" } };
    expect(said(byName, "ok")).toBe(`${errored} unknown state: port "web" not found`);
    const older = { pod: probedPod({ livenessProbe: { failureThreshold: 1, ...byName } }), seconds: 9 };
    expect(answerOf(older, decoded({ node: node({}) })).decision.events[0]?.message).toBe(
      `${errored} unknown state: strconv.Atoi: parsing "web": invalid syntax`,
    );
    // a gRPC probe has no body that could hang: the probe fails, and the container is restarted
    const grpc = runOf({ grpc: { port: 9 } }, "hang");
    expect(grpc.events[0]?.message).toBe("Liveness probe failed: timeout: health rpc did not complete within 2s");
    expect([grpc.quirks, attempts(grpc, "liveness")[0]]).toEqual([[], "0s c0 timeout"]);
    expect(grpc.restarts).toBeGreaterThan(0);
  });

  test("starts sidecars one after the other before the app, and their end does not end the pod", () => {
    const startupProbe = { tcpSocket: { port: 15_021 }, periodSeconds: 1 };
    const probed = (name: string) => sidecar(name, undefined, undefined, { startupProbe });
    const initContainers = [probed("first"), { name: "plain" }, probed("second")];
    const decision = dryRun(probedPod({}, { initContainers }), { outcomes: { startup: "fail*2,ok" }, seconds: 20 });
    expect(decision.containers.map(({ container, runs }) => [container, (runs[0]?.startedAtMs ?? 0) / 1000])).toEqual([
      ["first", 0],
      ["second", 2],
      ["app", 5],
    ]);
    expect(seconds(decision.ready)).toEqual([[5, null]]);
    const failing = dryRun(probedPod({}, { initContainers }), { outcomes: { startup: "fail" }, seconds: 20 });
    expect(failing.events.map((e) => e.message)).toContain("Init container first failed startup probe");
    expect(failing.containers.at(-1)?.runs).toEqual([]);
  });

  test("ends a container with restartPolicy Never for good, and its probes with it", () => {
    const spec = { restartPolicy: "Never" };
    const decision = dryRun(probedPod({ livenessProbe: { ...HTTP, failureThreshold: 1 } }, spec), { outcomes: "fail" });
    expect(attempts(decision, "liveness")).toEqual(["0s c0 fail"]);
    expect(firstOf(decision).runs).toEqual([{ id: "c0", startedAtMs: 0, endedAtMs: 0, endedBy: "liveness" }]);
    expect(decision.events.at(-1)?.message).toBe("Container app failed liveness probe");
    expect(answerOf({ pod: probedPod({ livenessProbe: HTTP }, spec), outcomes: "fail" }).verdict).toBe("restarts");
  });

  test("ends a container within its grace period: the probe's own, else the pod's", () => {
    const end = (probe: object, spec: object) => {
      const pod = probedPod({ livenessProbe: { ...HTTP, failureThreshold: 1, ...probe } }, { ...spec });
      return firstOf(dryRun(pod, { outcomes: "fail,ok", stopSeconds: 3600, seconds: 100 })).runs[0]?.endedAtMs;
    };
    expect(end({}, {})).toBe(30_000);
    expect(end({}, { terminationGracePeriodSeconds: 7 })).toBe(7000);
    expect(end({ terminationGracePeriodSeconds: 60 }, { terminationGracePeriodSeconds: 7 })).toBe(60_000);
    expect(end({ terminationGracePeriodSeconds: 1 }, {})).toBe(2000);
  });

  test("across a kubelet restart keeps containers ready that ran for 10 s, and makes younger containers unready", () => {
    const pod = probedPod({ readinessProbe: { ...HTTP, periodSeconds: 30 } });
    const late = dryRun(pod, { kubeletRestartSeconds: 15, jitter: 0.5, seconds: 60 });
    expect(seconds(firstOf(late).ready)).toEqual([[0, null]]);
    expect(attempts(late, "readiness")).toEqual(["0s c0 ok", "0s c0 ok", "30s c0 ok", "30s c0 ok", "60s c0 ok"]);
    expect(late.quirks).toMatchObject([{ code: "ready-kept-on-restart" }]);
    const soon = dryRun(pod, { kubeletRestartSeconds: 5, jitter: 0.5, seconds: 60 });
    expect(seconds(firstOf(soon).ready)).toEqual([
      [0, 5],
      [20, null],
    ]);
  });

  test("is truncated when there are too many attempts", () => {
    const pod = probedPod({ livenessProbe: { ...HTTP, periodSeconds: 1 } });
    const decision = dryRun(pod, { seconds: 86_400 });
    expect(decision).toMatchObject({ truncated: true, endMs: 19_999_000 });
    expect(probeOf(decision, "liveness").attempts).toHaveLength(20_000);
  });

  test("can ask for one container, and gives each container the outcomes from the start", () => {
    const both = probedPod({ livenessProbe: HTTP }, {});
    const spec = {
      containers: [
        { name: "app", livenessProbe: HTTP },
        { name: "log", livenessProbe: HTTP },
      ],
    };
    const decision = dryRun({ ...both, spec }, { outcomes: "ok,fail*3,ok", seconds: 35 });
    expect(decision.containers.map(({ restarts }) => restarts)).toEqual([1, 1]);
    const one = dryRun({ ...both, spec }, { outcomes: "ok,fail*3,ok", seconds: 35, container: "log" });
    expect(one.containers.map(({ container, restarts }) => [container, restarts])).toEqual([["log", 1]]);
  });

  test("of a pod without probes is ready at once", () => {
    const answer = answerOf({ pod: probedPod({}) });
    expect(answer.decision).toMatchObject({ restarts: 0, ready: [{ fromMs: 0, toMs: null }], findings: [] });
    expect(answer.reasons).toEqual([
      {
        at: "app",
        because: [
          { code: "started_at_once", field: "started" },
          { code: "ready_once_started", field: "ready" },
        ],
      },
    ]);
  });
});
