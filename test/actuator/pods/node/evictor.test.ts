import { describe, expect, test } from "vitest";
import { burstable, Gi, type Measured, Mi, running, three, USAGES } from "./measured.ts";

/** Makes a container ignore the request to stop. */
const stubborn = (measured: Measured, uid: string, stopsMs: number): void => {
  measured.world.runtime.programOf = (_, pod) => ({
    runsMs: null,
    exitCode: 143,
    stopsMs: pod.metadata.uid === uid ? stopsMs : 0,
  });
};

describe("under memory pressure", () => {
  test("one pod is evicted per pass by the kubelet's ranking, the next one when its memory is free", async () => {
    const measured = await running(three);
    Object.assign(measured.usages, USAGES);
    measured.memory = 512 * Mi;
    await measured.world.run(10);
    expect(measured.evicted[0]).toBe("most");
    expect(measured.world.pod("most").record).toMatchObject({
      end: { cause: "evicted", reason: "Evicted", graceSeconds: 1 },
    });
    await measured.world.run(8);
    expect(measured.evicted.slice(0, 2)).toEqual(["most", "above"]);
    const [first, second] = measured.world.events.filter(({ reason }) => reason === "Evicted");
    expect(Date.parse(second?.at ?? "") - Date.parse(first?.at ?? "")).toBeLessThan(10_000);
    expect(measured.world.status("most")).toMatchObject({
      phase: "Failed",
      reason: "Evicted",
      message: expect.stringMatching(
        /^The node was low on resource: memory\. Threshold quantity: 1Gi, available: 512Mi\. /,
      ),
      conditions: expect.arrayContaining([
        expect.objectContaining({ type: "DisruptionTarget", reason: "TerminationByKubelet" }),
      ]),
    });
  });

  test("eviction stops once there is enough memory again", async () => {
    const measured = await running(three);
    Object.assign(measured.usages, USAGES);
    measured.memory = 512 * Mi;
    await measured.world.run(5);
    measured.memory = 8 * Gi;
    await measured.world.run(30);
    expect(measured.evicted).toEqual(["most"]);
    expect([measured.state("within"), measured.state("above")]).toEqual(["active", "active"]);
  });

  test("a victim that does not end holds the next eviction back for 30 seconds, and is reported", async () => {
    const measured = await running(three);
    Object.assign(measured.usages, USAGES);
    measured.memory = 512 * Mi;
    measured.world.runtime.on = ({ call }) =>
      call === "StopContainer" ? { effect: false, answer: "hangs" } : undefined;
    await measured.world.run(25);
    expect(measured.evicted).toEqual(["most"]);
    expect(measured.world.events.filter(({ reason }) => reason === "ExceededGracePeriod")).toHaveLength(1);
    await measured.world.run(20);
    expect(measured.evicted).toEqual(["most", "above"]);
  });

  test("a daemon that starts while a victim ends waits for it too", async () => {
    const measured = await running(three);
    Object.assign(measured.usages, USAGES);
    measured.memory = 512 * Mi;
    measured.world.runtime.on = ({ call }) =>
      call === "StopContainer" ? { effect: false, answer: "hangs" } : undefined;
    await measured.world.run(5);
    measured.world.restart();
    await measured.world.run(20);
    expect(measured.evicted).toEqual(["most"]);
    await measured.world.run(20);
    expect(measured.evicted.slice(0, 2)).toEqual(["most", "above"]);
  });

  test("critical pods are not evicted", async () => {
    const measured = await running([
      burstable("most", { memory: "100Mi" }, { spec: { priority: 2_000_000_000 } }),
      burstable("within", { memory: "1Gi" }),
    ]);
    Object.assign(measured.usages, USAGES);
    measured.memory = 512 * Mi;
    await measured.world.run(5);
    expect([measured.evicted, measured.state("most")]).toEqual([["within"], "active"]);
  });

  test("a pod that is already terminating is not evicted", async () => {
    const measured = await running(three);
    Object.assign(measured.usages, USAGES);
    stubborn(measured, "most", 20_000);
    measured.world.end("most", "preempted", "Preempting", "", { graceSeconds: 30 });
    measured.memory = 512 * Mi;
    await measured.world.run(5);
    expect(measured.evicted).toEqual(["above"]);
  });

  test("BestEffort pods are refused until the transition period is over, other pods are admitted", async () => {
    const measured = await running(three);
    Object.assign(measured.usages, USAGES);
    measured.memory = 512 * Mi;
    await measured.world.run(5);
    measured.memory = 8 * Gi;
    measured.world.pods = [...three, burstable("best", {}), burstable("asks", { memory: "1Mi" })];
    await measured.world.run(5);
    expect([measured.state("best"), measured.state("asks")]).toEqual(["pending", "active"]);
    expect(measured.world.pod("best").record.refusal).toMatchObject({
      reason: "Evicted",
      message: "The node had condition: [MemoryPressure]. ",
    });
    await measured.world.run(45);
    expect(measured.state("best")).toBe("active");
  });
});

describe("under disk pressure", () => {
  test("the node reclaims images and containers first, and evicts no pod if that is enough", async () => {
    const measured = await running(three);
    measured.disk = 512 * Mi;
    measured.onReclaim = () => {
      measured.disk = 4 * Gi;
    };
    await measured.world.run(15);
    expect(measured.reclaimed).toEqual([["delete-unused-containers", "delete-unused-images"]]);
    expect(measured.evicted).toEqual([]);
  });

  test("the pod that uses most is evicted with its volumes if reclaiming is not enough", async () => {
    const pods = ["a", "b"].map((uid) => burstable(uid, {}, { spec: { volumes: [{ name: "data", emptyDir: {} }] } }));
    const measured = await running(pods);
    Object.assign(measured.usages, { a: { volume: 10 * Mi }, b: { volume: 100 * Mi } });
    measured.disk = 512 * Mi;
    await measured.world.run(5);
    measured.disk = 4 * Gi;
    await measured.world.run(5);
    expect(measured.reclaimed).toHaveLength(1);
    expect(measured.evicted).toEqual(["b"]);
    expect(measured.state("b")).toBe("terminated");
    expect(measured.world.pod("b").runtimePod).toBeNull();
    expect(measured.world.status("b")).toMatchObject({ phase: "Failed", reason: "Evicted" });
  });
});

describe("local storage limits", () => {
  const limited = (uid: string): object =>
    burstable(uid, {}, { spec: { volumes: [{ name: "data", emptyDir: { sizeLimit: "1Mi" } }] } });

  test("all pods above theirs are evicted at once, without a DisruptionTarget condition", async () => {
    const measured = await running([limited("a"), limited("b"), limited("c")]);
    Object.assign(measured.usages, { a: { volume: 2 * Mi }, b: { volume: 3 * Mi }, c: { volume: Mi } });
    await measured.world.run(8);
    expect(measured.evicted.toSorted()).toEqual(["a", "b"]);
    const status = measured.world.status("a");
    expect(status).toMatchObject({
      phase: "Failed",
      reason: "Evicted",
      message: 'Usage of EmptyDir volume "data" exceeds the limit "1Mi". ',
    });
    expect(status.conditions.filter(({ type }) => type === "DisruptionTarget")).toEqual([]);
    expect(measured.state("c")).toBe("active");
  });
});

test("an evicted pod is cleaned up even after a crash, and stays known until it is deleted", async () => {
  const measured = await running(three);
  Object.assign(measured.usages, USAGES);
  measured.memory = 512 * Mi;
  measured.world.runtime.on = ({ call }) =>
    call === "RemoveContainer" ? { effect: false, answer: { call, code: "UNKNOWN", message: "not now" } } : undefined;
  await measured.world.run(5);
  measured.memory = 8 * Gi;
  await measured.world.run(3);
  expect(measured.world.pod("most").runtimePod?.containers[0]?.state).toBe("exited");
  measured.world.runtime.on = () => undefined;
  measured.world.restart();
  await measured.world.run(4);
  expect(measured.world.pod("most").runtimePod).toBeNull();
  expect(measured.world.status("most")).toMatchObject({ phase: "Failed", reason: "Evicted" });
  measured.world.pods = three.slice(0, 2);
  await measured.world.run(3);
  expect(measured.world.manager.set.get("most")).toBeNull();
});
