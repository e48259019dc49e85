import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { endPhase } from "./pods/end-phase.ts";
import { podOf } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";
import { WAITS } from "./pods/until.ts";

const LONG_MS = 300_000;
const Mi = 2 ** 20;
/** The memory of all pods together: the pressure stays within the test's own cgroup. */
const FOR_PODS = 256 * Mi;
const TRANSITION_SECONDS = 8;
const why = noPods("the kernel's memory pressure");

const machineBytes = (): number =>
  Number(/^MemTotal:\s+(\d+) kB$/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1]) * 1024;
const SHORT_OF_MEMORY = {
  systemReserved: { memory: String(machineBytes() - FOR_PODS) },
  evictionHard: { "memory.available": "64Mi" },
  evictionPressureTransitionPeriod: `${TRANSITION_SECONDS}s`,
};
/** Uses this much memory, step by step. The memory of a volume counts for the pod as long as the volume exists. */
const eats = (mebibytes: number, perStep = 16): object => ({
  script: `i=0; while [ $i -lt ${mebibytes / perStep} ]; do dd if=/dev/zero of=/memory/$i bs=1M count=${perStep} 2>/dev/null; i=$((i+1)); sleep 0.3; done; trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done`,
  volumeMounts: [{ name: "memory", mountPath: "/memory" }],
});
const VOLUMES = [{ name: "memory", emptyDir: { medium: "Memory" } }];

describe.skipIf(why !== undefined)("under memory pressure caused by a pod", { timeout: LONG_MS }, () => {
  let node: PodNode;
  beforeAll(async () => {
    node = await PodNode.start({
      hasServer: true,
      settings: { evictionPeriodSeconds: 0.5, retrySeconds: 600 },
      configuration: {
        ...SHORT_OF_MEMORY,
        // long enough for a pod to be refused because of the pressure
        evictionPressureTransitionPeriod: "1h",
      },
    });
  }, LONG_MS);
  afterAll(() => node?.stop(), LONG_MS);

  const within = podOf("within", {
    uid: "within",
    containers: [{ ...eats(48), requests: { memory: "64Mi" } }],
    volumes: VOLUMES,
  });
  const small = podOf("small", { uid: "small", containers: [{}] });
  const eater = podOf("eater", {
    uid: "eater",
    containers: [{ ...eats(160), requests: { memory: "16Mi" } }],
    volumes: VOLUMES,
  });

  test("the pod most above its request is evicted, and no other", async () => {
    node.server.set([within, small]);
    const daemon = node.startDaemon();
    await daemon.running("within", "small");
    expect(node.cgroupFile("/kubepods", "memory.limit_in_bytes")).toBe(String(FOR_PODS));
    node.server.set([within, small, eater]);
    const { msg } = await daemon.event("eater", "Evicted");
    expect(msg).toMatch(
      /^The node was low on resource: memory\. Threshold quantity: 64Mi, available: \d+[KM]i\. Container app was using \d+[KM]i, request is 16Mi, has larger consumption of memory\. $/,
    );
    const ended = await daemon.pod("eater", "ended", ({ state }) => state === "terminated");
    expect(ended).toMatchObject({ phase: endPhase(ended), reason: "Evicted", message: msg });
  });

  test("no BestEffort pod is admitted while the pressure lasts, but others are", async () => {
    const { daemon } = node;
    const newcomers = [
      podOf("late", { uid: "late" }),
      podOf("asking", { uid: "asking", containers: [{ requests: { memory: "8Mi" } }] }),
    ];
    node.server.set([within, small, eater, ...newcomers]);
    await daemon.running("asking");
    const [evicted] = daemon.eventsOf("eater", "Evicted");
    const refused = await daemon.event("late", "Evicted");
    node.configure(SHORT_OF_MEMORY);
    expect(refused.msg).toBe("The node had condition: [MemoryPressure]. ");
    await daemon.running("late");
    const started = await daemon.event("late", "Started");
    const waited = Date.parse(started.at) - Date.parse(evicted?.at ?? "");
    expect(waited).toBeGreaterThanOrEqual(TRANSITION_SECONDS * 1000 - 1000);
  });

  test("one pod was evicted, its resources are gone, and the others were never restarted", async () => {
    const { daemon } = node;
    const victims = daemon.events.filter(({ reason, msg }) => reason === "Evicted" && msg.includes("low on resource"));
    expect(victims.map(({ pod }) => pod)).toEqual(["eater"]);
    const others = await daemon.running("within", "small", "late", "asking");
    expect(others.map((row) => row.containers[0]?.restarts)).toEqual([0, 0, 0, 0]);
    const left = async () =>
      (await node.leftovers()).filter((path) => /eater\//.test(path) || path.endsWith("pods/eater"));
    await expect.poll(left, WAITS).toEqual([]);
    await expect.poll(() => node.containersOf("eater"), WAITS).toEqual([]);
  });
});
