import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { openProbes } from "../../../actuator/pods/probing/open-probes.ts";
import type { KnownPod } from "../../../actuator/pods/records/pod-set.ts";
import { noProbeCounters } from "../../../actuator/status/counters.ts";
import { ok } from "../../../api/base/result.ts";
import { probe, runnable, runnableContainer } from "../../kit/runnable-pods.ts";
import { scratch } from "./scratch.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("a container that is created but not started does not fail its probes, however long that takes", async () => {
  const config = {
    nodeName: "n1",
    stateDir: scratch(),
    strictProbes: false,
    maxExecProbes: 4,
    kubeletVersion: "1.36",
  } as const;
  const { probes, close } = openProbes({
    config: { ...config, probeSpread: "even", probeGuard: "off" },
    runtime: { exec: async () => ok({ exitCode: 0, stdout: "", stderr: "" }) },
    hostIPs: [],
    counters: noProbeCounters,
    client: { decide: () => expect.fail("nothing is to be decided"), commit: async () => {} },
    onEvent() {},
    onProblem: ({ message }) => expect.fail(message),
    onChange() {},
  });
  const probed = { startup: null, readiness: null, liveness: probe({ handler: { exec: ["true"] } }) };
  const one = runnable({ containers: [runnableContainer("app", { probes: probed })] });
  const look = (state: "created" | "running"): void => {
    const app = { id: "id-1", name: "app", state, startedAtMs: state === "running" ? Date.now() : null };
    const known = { uid: one.uid, pod: one, record: {}, runtimePod: { sandboxes: [], containers: [app] } };
    probes.sync([known as unknown as KnownPod], () => ({ conditions: [], phase: "Running" }) as never);
  };
  look("created");
  await vi.advanceTimersByTimeAsync(5_000);
  expect(probes.resultOf("id-1", "liveness")).toBeUndefined();
  look("running");
  await vi.advanceTimersByTimeAsync(5_000);
  expect(probes.resultOf("id-1", "liveness")).toBe("Success");
  close();
});
