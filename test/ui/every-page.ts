import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { claim, DRIVER, result } from "../kit/claims.ts";
import { container } from "../kit/containers.ts";
import { pod, requesting } from "../kit/pods.ts";
import { capturedNode, realRuntime } from "../kit/real-node.ts";
import { type Json, many } from "../kit/snapshots.ts";
import { decided } from "./served.ts";

/** A page of the dashboard, and the action to run before a check. */
export interface OnePage {
  readonly name: string;
  readonly path: string;
  readonly act?: (page: Page) => Promise<void>;
}

const json = (file: string): unknown => JSON.parse(readFileSync(new URL(`../data/${file}`, import.meta.url), "utf8"));
const runtime = realRuntime();
const Mi = 2 ** 20;
/** A node of 110 pods with long names that runs out of memory. */
export const FULL = "worker-pool-eu-central-1a-04.compute.internal";
const PODS = 110;
const NAMESPACE = "payments-production-europe";
const CLAIMING = 4;
const claimOf = (i: number): string => `settlement-reconciliation-accelerator-${i}`;
const uidOf = (i: number): string => `00000000-0000-4000-8000-${String(i).padStart(12, "0")}`;
const nameOf = (i: number): string => `settlement-reconciliation-worker-7d9f8b6c5d-${String(i).padStart(5, "0")}`;

const fullPods = many(PODS, (i) => {
  const memory = `${16 + (i % 9)}Mi`;
  const app = container("app", i % 3 === 0 ? undefined : { cpu: "10m", memory }, i % 7 === 0 ? { memory } : undefined);
  const claims = i < CLAIMING ? { resourceClaims: [{ name: "gpu", resourceClaimName: claimOf(i) }] } : {};
  return pod(nameOf(i), {
    metadata: { namespace: NAMESPACE, uid: uidOf(i) },
    spec: { nodeName: FULL, priority: i % 4, containers: [app], ...claims },
    status: { phase: "Running" },
  });
});
/**
 * Claims of the first pods, of which the last one is reserved for another pod, and a driver that reports its devices'
 * health.
 */
const dra = {
  resourceClaims: many(CLAIMING, (i) => {
    const { status } = claim(claimOf(i), [result(`${i}`)], []) as { readonly status: Json };
    const metadata = { name: claimOf(i), namespace: NAMESPACE, uid: `claim-${i}` };
    return { metadata, status: { ...status, reservedFor: [{ uid: uidOf(i === CLAIMING - 1 ? PODS : i) }] } };
  }),
  resourceSlices: [],
  drivers: [{ name: DRIVER }, { name: "network-accelerators.dra.example.com", registered: false }],
};
const healthOf = (LastUpdated: string): string =>
  JSON.stringify({
    [DRIVER]: {
      Devices: Object.fromEntries(
        many(CLAIMING, (i) => [
          `n1/${i}`,
          { PoolName: "n1", DeviceName: `${i}`, Health: i === 0 ? "Unhealthy" : "Healthy", LastUpdated },
        ]),
      ),
    },
  });

type Stats = { readonly node: Json & { readonly memory: Json } };
/** The full node at a time, with this much available memory and without the pods that have been evicted. */
function full(atMs: number, availableBytes: number, gone: ReadonlySet<string>): Json {
  const captured = capturedNode(FULL);
  const time = new Date(atMs).toISOString();
  const stats = captured.stats as Stats;
  const status = (captured.node as unknown as { status: { capacity: Json; allocatable: Json } }).status;
  const counted = (amounts: Json): Json => ({ ...amounts, pods: `${PODS}` });
  const pods = fullPods.filter(({ metadata }) => !gone.has(metadata.uid));
  const disk = { time, availableBytes: 14e9, capacityBytes: 270e9, inodes: 1.6e7, inodesFree: 1.5e7 };
  return {
    ...captured,
    observedAt: time,
    node: {
      ...captured.node,
      status: { ...status, capacity: counted(status.capacity), allocatable: counted(status.allocatable) },
    },
    kubeletConfiguration: { ...(captured["kubeletConfiguration"] as Json), maxPods: PODS },
    runtime,
    pods,
    dra,
    assignments: { ...(captured["assignments"] as Json), dra_health_state: healthOf(time) },
    stats: {
      node: {
        ...stats.node,
        memory: { ...stats.node.memory, time, availableBytes },
        fs: disk,
        runtime: { imageFs: disk, containerFs: disk },
      },
      pods: pods.map(({ metadata }, i) => ({
        podRef: { name: metadata.name, namespace: NAMESPACE, uid: metadata.uid },
        // the values that a daemon, or a kubelet with KubeletPSI, reports: the table of pods then has all its columns
        cpu: { usageNanoCores: (i % 40) * 1e6, throttledPermille: (i * 7) % 300, psi: { full: { avg60: i % 20 } } },
        memory: { time, workingSetBytes: (12 + ((i * 37) % 91)) * Mi },
        "ephemeral-storage": { usedBytes: ((i * 53) % 97) * Mi, inodesUsed: i },
      })),
    },
  };
}

/**
 * Passes of the full node, 15 seconds apart: its memory falls below its thresholds, and each of the last passes evicts
 * a pod.
 */
const PASSES = 40;
async function fillFull(url: string, nowMs: number): Promise<string> {
  const gone = new Set<string>();
  let last = { id: "" };
  let snapshot: Json = {};
  for (let pass = 0; pass < PASSES; pass++) {
    const left = (1100 - pass * 17 + 20 * Math.sin(pass / 3)) * Mi;
    snapshot = full(nowMs - (PASSES - pass) * 15_000, Math.round(left), gone);
    last = await decided(url, "eviction", { snapshot });
    const { decision } = last as unknown as { decision: { evicted: { pod: { uid: string } }[] } };
    for (const { pod: went } of decision.evicted) gone.add(went.uid);
  }
  for (const kind of ["allocatable", "cgroups", "cpus", "memory", "image-gc", "container-gc"])
    await decided(url, kind, { snapshot });
  const huge = requesting("trainer-with-a-long-name-of-its-own-6c9d8", { cpu: "500", memory: "4Gi" });
  await decided(url, "admission", {
    snapshot,
    ask: { pod: { ...huge, metadata: { name: huge.metadata.name, namespace: "machine-learning-research", uid: "u" } } },
  });
  return last.id;
}

const SHIFT_FROM = Date.parse("2026-11-21T06:30:00Z");
/** Adds outcomes of the kubelet on node `n1`, and the decisions about them. */
async function fillOutcomes(url: string, nowMs: number): Promise<void> {
  const now = (time: string): string => new Date(Date.parse(time) + nowMs - SHIFT_FROM).toISOString();
  const send = async (method: string, path: string, body: object): Promise<void> => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${url}${path}`, { method, headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(await response.text());
  };
  const snapshot = capturedNode("n1");
  const pods = snapshot.pods?.filter((one) => (one as { metadata?: { name?: string } }).metadata?.name !== "guar-frac");
  await send("PUT", "/v1/nodes/n1/snapshot", { ...snapshot, observedAt: now("2026-11-21T06:26:20Z") });
  await send("PUT", "/v1/nodes/n1/snapshot", { ...snapshot, observedAt: now("2026-11-21T06:26:45Z"), pods });
  const { outcomes } = json("real-outcomes/report.json") as { outcomes: { at: string }[] };
  await send("POST", "/v1/nodes/n1/outcomes", { outcomes: outcomes.map((one) => ({ ...one, at: now(one.at) })) });
}

const PROBED = pod("web", {
  metadata: { namespace: "shop" },
  spec: { containers: [container("app", undefined, undefined, { livenessProbe: { httpGet: { port: 80 } } })] },
});
const ASKS: readonly (readonly [kind: string, ask?: object])[] = [
  ["allocatable"],
  ["cgroups"],
  ["cpus"],
  ["memory"],
  ["devices"],
  ["eviction"],
  ["image-gc"],
  ["container-gc"],
  ["topology", { pod: requesting("joins", { cpu: "1" }) }],
  ["admission", { pod: requesting("refused", { cpu: "500" }) }],
  ["preemption", { pod: requesting("wants", { cpu: "1" }) }],
  ["probes", { pod: PROBED, outcomes: "ok,fail*5" }],
];

/**
 * Fills a history with a full node, a node with reported outcomes, some other nodes, and a decision of each kind.
 * Returns all pages.
 */
export async function everyPage(url: string): Promise<readonly OnePage[]> {
  const nowMs = Date.now();
  const evicting = await fillFull(url, nowMs);
  await fillOutcomes(url, nowMs);
  for (let n = 1; n <= 6; n++) {
    const worker = capturedNode(`worker-0${n}`);
    const labels = { "topology.kubernetes.io/zone": `eu-central-1${n % 2 === 0 ? "a" : "b"}` };
    const node = { ...worker.node, metadata: { ...worker.node.metadata, labels } };
    await decided(url, "eviction", { snapshot: { ...worker, node, runtime } });
  }
  const snapshot = { ...capturedNode("worker-01", "v1.34.4"), runtime };
  const ofKinds: OnePage[] = [];
  for (const [kind, ask] of ASKS) {
    const { id } = await decided(url, kind, { snapshot, ...(ask === undefined ? {} : { ask }) });
    ofKinds.push({ name: `decision-${kind}`, path: `/decisions/${id}` });
  }
  const submit =
    (label: string, name: string, text: string, done: string) =>
    async (page: Page): Promise<void> => {
      await page.getByLabel(label).first().fill(text);
      await page.getByRole("button", { name }).first().click();
      await page.locator(done).first().waitFor();
    };
  return [
    { name: "fleet", path: "/" },
    { name: "compare", path: `/compare?node=${FULL}&node=n1` },
    { name: "node", path: `/nodes/${FULL}` },
    { name: "node-with-outcomes", path: "/nodes/n1" },
    { name: "node-pods", path: `/nodes/${FULL}?list=pods` },
    { name: "node-decisions", path: `/nodes/${FULL}/decisions` },
    { name: "why", path: "/nodes/n1/pods/default/x-cpu" },
    { name: "decisions", path: "/decisions" },
    { name: "decision-evicting", path: `/decisions/${evicting}` },
    ...ofKinds,
    { name: "what-if", path: "/what-if" },
    {
      name: "what-if-compared",
      path: `/what-if?node=${FULL}`,
      act: submit("kubeReserved", "Compare", "cpu=300m, memory=1Gi", "#result h2"),
    },
    { name: "replay", path: "/replay" },
    {
      name: "replay-answered",
      path: "/replay",
      act: submit("The configuration to decide with", "Replay", "kubeReserved:\n  cpu: 1500m\n", "#answer strong"),
    },
    { name: "lint", path: "/lint" },
    {
      name: "lint-findings",
      path: "/lint",
      act: submit(
        "A KubeletConfiguration",
        "Check",
        "evictionHard: {memory.available: 5}\nmaxPod: 9\n",
        "#findings-title",
      ),
    },
    { name: "upgrade", path: "/upgrade" },
    {
      name: "upgrade-answered",
      path: "/upgrade",
      act: async (page) => {
        await page.getByLabel("To the kubelet").selectOption("1.35");
        await page.getByLabel("From").selectOption("");
        await page.getByLabel("Of the node (").fill("worker-01");
        await submit("A KubeletConfiguration", "What would change", "maxPods: 9", "#outcome")(page);
      },
    },
    { name: "agreement", path: "/agreement?verdict=all" },
    { name: "docs", path: "/docs" },
    { name: "sign-in", path: "/sign-in" },
    { name: "not-found", path: "/nodes/worker-0" },
  ];
}
