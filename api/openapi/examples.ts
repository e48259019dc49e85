/** Small and whole: each may be posted as it is, which a test does. */
export const SNAPSHOT = {
  observedAt: "2026-01-31T12:00:00Z",
  bootId: "0b1f6a3e-52c9-4a77-9d7a-2f6d1c0e4b8a",
  sequence: 1,
  node: {
    metadata: { name: "n1" },
    status: { capacity: { cpu: "4", memory: "8Gi", "ephemeral-storage": "100Gi", pods: "110" } },
  },
  kubeletConfiguration: {
    kubeReserved: { cpu: "100m", memory: "256Mi" },
    evictionHard: { "memory.available": "100Mi" },
  },
  pods: [
    {
      metadata: { name: "web", namespace: "default", uid: "7f0c1f6e-1d50-4a51-9ad7-36a1c2b0a9d4" },
      spec: {
        containers: [
          { name: "app", resources: { requests: { cpu: "250m", memory: "64Mi" }, limits: { memory: "128Mi" } } },
        ],
      },
    },
  ],
  cgroup: { version: 2, driver: "systemd" },
} as const;

export const DECISION = { snapshot: SNAPSHOT, explain: "reasons" } as const;
export const BATCH = ["allocatable", "cgroups"].map((kind) => JSON.stringify({ kind, snapshot: SNAPSHOT })).join("\n");
export const REPLAY = { kubeletConfigurationPatch: { kubeReserved: { cpu: "500m", memory: "1Gi" } } } as const;
export const REPLAY_HISTORY = { since: "2026-01-01T00:00:00Z", ...REPLAY } as const;
export const LINT = { kubeletConfiguration: { evictionHard: { "memory.available": "500Mi" }, maxPods: 250 } } as const;
export const results = (decisionId: string) => ({
  decisionId,
  seq: 1,
  at: "2026-01-31T12:00:01Z",
  dryRun: false,
  complete: true,
  results: [
    {
      status: "applied",
      op: "write",
      path: "/kubepods.slice",
      file: "cpu.weight",
      from: "100",
      to: "152",
      before: "100",
      readBack: "152",
    },
  ],
});
