import { describe, expect, test } from "vitest";
import { container, sidecar } from "../kit/containers.ts";
import { bestEffort, burstable, guaranteed, namedPod } from "../kit/pods.ts";
import { configured, type Json } from "../kit/snapshots.ts";
import { cgroupsOf, filesAt, Gi, Mi, reasonsOf, refusalOf, valuesAt } from "./ask.ts";

const GATE = { featureGates: { QOSReserved: true } };
const pods = [guaranteed("g", "1", "1001Mi"), burstable("b", "1", "333Mi"), bestEffort("e")];
const tiers = (config: Json, parts: Json = {}): (number | undefined)[] =>
  ["burstable", "besteffort"].map(
    (tier) => valuesAt(configured(config, { pods, ...parts }), `/kubepods/${tier}`).memory,
  );

describe("qosReserved", () => {
  test("subtracts Guaranteed requests from the burstable limit, and Burstable ones from the besteffort limit", () => {
    // every step is an integer division
    const burst = 8 * Gi - Math.floor((1001 * Mi * 33) / 100);
    expect(tiers({ ...GATE, qosReserved: { memory: "33%" } })).toEqual([
      burst,
      burst - Math.floor((333 * Mi * 33) / 100),
    ]);
    expect(tiers({ ...GATE, qosReserved: { memory: "100%" } })).toEqual([8 * Gi - 1001 * Mi, 8 * Gi - 1334 * Mi]);
    expect(tiers({ ...GATE, qosReserved: { memory: "0%" } })).toEqual([8 * Gi, 8 * Gi]);
  });
  test("starts from allocatable memory without hard eviction, whether that is enforced or not", () => {
    const reserved = {
      ...GATE,
      qosReserved: { memory: "0%" },
      kubeReserved: { memory: "1Gi" },
      evictionHard: { "memory.available": "1Gi" },
    };
    expect(tiers(reserved)).toEqual([7 * Gi, 7 * Gi]);
    expect(tiers({ ...reserved, enforceNodeAllocatable: ["none"] })).toEqual([7 * Gi, 7 * Gi]);
  });
  test("is written as the memory limits of the QoS tiers", () => {
    const input = configured({ ...GATE, qosReserved: { memory: "100%" } }, { pods });
    expect(filesAt(input, "/kubepods/burstable")["memory.max"]).toBe(String(8 * Gi - 1001 * Mi));
    expect(filesAt({ ...input, cgroup: { version: 1 } }, "/kubepods/besteffort")["memory.limit_in_bytes"]).toBe(
      String(8 * Gi - 1334 * Mi),
    );
  });
  test("has no effect without its gate, without a percentage, or with no memory left for pods", () => {
    expect(tiers({ qosReserved: { memory: "50%" } })).toEqual([undefined, undefined]);
    expect(tiers(GATE)).toEqual([undefined, undefined]);
    expect(tiers({ ...GATE, qosReserved: {} })).toEqual([undefined, undefined]);
    expect(tiers({ ...GATE, qosReserved: { memory: "50%" }, kubeReserved: { memory: "9Gi" } })).toEqual([
      undefined,
      undefined,
    ]);
  });
  test("keeps besteffort within burstable within kubepods for every percentage", () => {
    for (let percent = 0; percent <= 100; percent++) {
      const [burst, rest] = tiers({ featureGates: { AllAlpha: true }, qosReserved: { memory: `${percent}%` } });
      expect(burst).toBe(8 * Gi - Number((BigInt(1001 * Mi) * BigInt(percent)) / 100n));
      expect((rest as number) <= (burst as number), `${percent}%`).toBe(true);
    }
  });
  test.each([
    { memory: "101%" },
    { memory: "-1%" },
    { memory: "50" },
    { memory: "50.5%" },
    { memory: "%" },
    { cpu: "50%" },
  ])("of %j refuses the kubelet's start, whatever the gate", (qosReserved) => {
    const refusal = refusalOf("cgroups", configured({ qosReserved }));
    expect(refusal.code).toBe("invalid_configuration");
    expect(refusal.message).toContain("qosReserved");
  });
});

describe("the CPU shares of the burstable tier", () => {
  test("are the sum of all Burstable requests with overhead, sidecars and init containers", () => {
    const more = namedPod("m", [container("c", { cpu: "300m" })], {
      initContainers: [sidecar("s", { cpu: "100m" }), container("i", { cpu: "700m" })],
      overhead: { cpu: "50m" },
    });
    // 1000m and max(300 + 100, 100 + 700) + 50
    expect(valuesAt(configured({}, { pods: [...pods, more] }), "/kubepods/burstable").cpuShares).toBe(
      Math.floor((1850 * 1024) / 1000),
    );
    expect(valuesAt(configured({}, { pods }), "/kubepods/besteffort").cpuShares).toBe(2);
  });
  test("are summed before they are rounded", () => {
    const small = Array.from({ length: 7 }, (_, i) => burstable(`b${i}`, "1m", "1Mi"));
    expect(valuesAt(configured({}, { pods: small }), "/kubepods/burstable").cpuShares).toBe(7);
  });
  test("are at most the kernel's maximum", () => {
    expect(valuesAt(configured({}, { pods: [burstable("b", "1000", "1Mi")] }), "/kubepods/burstable").cpuShares).toBe(
      262_144,
    );
  });
  test("have a reason with the requests that they were computed from", () => {
    expect(reasonsOf(cgroupsOf(configured({}, { pods })))).toContainEqual({
      code: "shares_from_burstable_requests",
      at: "/kubepods/burstable",
      field: "cpuShares",
      numbers: { milliCpu: 1000, cpuShares: 1024 },
    });
  });
});
