import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { scratchFolder } from "../../kit/scratch.ts";
import { podOf, SERVES, type TestContainer, type TestPod } from "../pods/manifest.ts";
import { holds, until } from "../pods/until.ts";
import type { ApiClient } from "./api-client.ts";
import { type ClusterNode, FOR_PODS, NODE_NAME, type NodeParts } from "./node.ts";

export interface SeenPod {
  readonly metadata: { readonly name: string; readonly namespace: string; readonly uid: string };
  readonly spec: object;
  readonly status: {
    readonly phase?: string;
    readonly reason?: string;
    readonly message?: string;
    readonly conditions?: readonly SeenCondition[];
    readonly containerStatuses?: readonly SeenContainer[];
  };
}
export interface SeenCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}
export interface SeenContainer {
  readonly name: string;
  readonly restartCount: number;
  readonly state?: object;
  readonly lastState?: { readonly terminated?: { readonly exitCode: number; readonly reason: string } };
}
export interface SeenEvent {
  readonly reason: string;
  readonly message: string;
  readonly type: string;
  readonly count: number;
  readonly involvedObject: { readonly kind: string; readonly name: string; readonly uid?: string };
}
/** What a kubelet did to a pod, and the state of the node immediately before. The pods exist until `Stage.clear`. */
export interface Scene {
  /** The pod as the API server returns it afterwards. */
  readonly pod: SeenPod;
  /** The events of that pod. */
  readonly events: readonly SeenEvent[];
  readonly before: NodeParts;
  /** All pods that the scene created. */
  readonly pods: readonly SeenPod[];
}

/** Creates pods of one namespace on a node on which no scheduler places pods. */
export class Stage {
  readonly api: ApiClient;
  readonly node: ClusterNode;
  readonly #seen: () => Promise<void>;

  /** `seen` resolves when all other observers of the node have seen its current state. */
  constructor(api: ApiClient, node: ClusterNode, seen: () => Promise<void> = async () => {}) {
    this.api = api;
    this.node = node;
    this.#seen = seen;
  }

  /** The state of the node, once all observers have seen it. */
  async before(): Promise<NodeParts> {
    await this.#seen();
    return this.node.parts();
  }

  /** Creates a pod that is bound to the node from the start. */
  create(name: string, { namespace = "default", ...spec }: TestPod): Promise<SeenPod> {
    const bound = { nodeName: NODE_NAME, terminationGracePeriodSeconds: 1, metadata: { namespace }, ...spec };
    return this.api.must("POST", `/api/v1/namespaces/${namespace}/pods`, podOf(name, bound));
  }
  read(pod: SeenPod): Promise<SeenPod> {
    return this.api.get(pathOf(pod));
  }
  /** The pod as soon as `is` returns true for it. */
  async once(what: string, pod: SeenPod, is: (pod: SeenPod) => boolean): Promise<SeenPod> {
    let last: SeenPod = pod;
    const look = async (): Promise<SeenPod | undefined> => {
      last = await this.read(pod);
      return is(last) ? last : undefined;
    };
    return until(`${pod.metadata.name} to be ${what}`, look, () => JSON.stringify(last.status, null, 1));
  }
  async running(...pods: readonly SeenPod[]): Promise<void> {
    const isReady = ({ status }: SeenPod): boolean =>
      status.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
    await Promise.all(pods.map((pod) => this.once("ready", pod, isReady)));
  }
  async eventsOf({ metadata: { namespace, uid } }: SeenPod): Promise<readonly SeenEvent[]> {
    const selector = `fieldSelector=involvedObject.uid%3D${uid}`;
    return (await this.api.get<EventList>(`/api/v1/namespaces/${namespace}/events?${selector}`)).items;
  }
  /** The events of a pod, as soon as one of them has this reason. */
  events(pod: SeenPod, reason: string): Promise<readonly SeenEvent[]> {
    return until(`the event ${reason}`, async () => {
      const events = await this.eventsOf(pod);
      return events.some((event) => event.reason === reason) ? events : undefined;
    });
  }
  /** Deletes pods and waits until the API server has removed them. */
  async clear(...pods: readonly SeenPod[]): Promise<void> {
    // a DELETE may conflict with a change that the kubelet makes; it is then sent again
    const isGone = async (pod: SeenPod): Promise<true | undefined> =>
      holds((await this.api.ask("DELETE", pathOf(pod), { gracePeriodSeconds: 1 })).status === 404);
    await Promise.all(pods.map((pod) => until(`${pod.metadata.name} to be gone`, () => isGone(pod))));
  }
}
interface EventList {
  readonly items: readonly SeenEvent[];
}
const pathOf = ({ metadata: { namespace, name } }: SeenPod): string => `/api/v1/namespaces/${namespace}/pods/${name}`;

const MIB = 2 ** 20;
const cpu = (milliCpu: number): TestContainer => ({ requests: { cpu: `${milliCpu}m`, memory: "8Mi" } });

/** The pod requests more CPU than the node has. */
export async function outOfCpu(stage: Stage): Promise<Scene> {
  const before = await stage.before();
  const made = await stage.create("too-large", { containers: [cpu(100_000)] });
  const pod = await stage.once("refused", made, ({ status }) => status.phase === "Failed");
  return { pod, events: await stage.events(pod, "OutOfcpu"), before, pods: [made] };
}

/** A critical pod arrives on a full node: of the two pods that could make room, the smaller one is preempted. */
export async function preemption(stage: Stage): Promise<Scene> {
  const large = await stage.create("large", { containers: [cpu(FOR_PODS.milliCpu - 700)] });
  const small = await stage.create("small", { containers: [cpu(400)] });
  await stage.running(large, small);
  const before = await stage.before();
  const critical = await stage.create("critical", {
    namespace: "kube-system",
    priorityClassName: "system-node-critical",
    containers: [cpu(500)],
  });
  await stage.running(critical);
  const pod = await stage.read(small);
  return { pod, events: await stage.events(pod, "Preempting"), before, pods: [large, small, critical] };
}

/**
 * A script that waits for the file /told/now and then holds `bytes` of memory until it is killed: its output goes into
 * a pipe that is never read.
 */
const holding = (bytes: number): string =>
  `trap '' TERM; until [ -e /told/now ]; do sleep 0.1; done; dd if=/dev/zero bs=${bytes} count=1 | sleep 1000`;

const HOG_BYTES = FOR_PODS.memoryBytes - FOR_PODS.evictionBytes + 30 * MIB;
/**
 * Two pods, one of which uses memory beyond the hard eviction threshold of the pods' cgroup. It starts right after an
 * eviction check of the kubelet, so that the pressure is visible for seconds before the next check.
 */
export async function memoryEviction(stage: Stage): Promise<Scene> {
  const folder = scratchFolder();
  const modest = await stage.create("modest", { containers: [{ requests: { memory: "32Mi" } }] });
  const hog = await stage.create("hog", {
    volumes: [{ name: "told", hostPath: { path: folder } }],
    containers: [{ script: holding(HOG_BYTES), volumeMounts: [{ name: "told", mountPath: "/told" }] }],
  });
  await stage.running(modest, hog);
  await stage.node.lookedForPressure();
  writeFileSync(join(folder, "now"), "");
  const before = await lastBefore(stage, async () => (await stage.eventsOf(hog)).some(isEvicted));
  const pod = await stage.once("evicted", hog, ({ status }) => status.phase === "Failed");
  return { pod, events: await stage.events(pod, "Evicted"), before, pods: [modest, hog] };
}
const isEvicted = ({ reason }: SeenEvent): boolean => reason === "Evicted";
/** The last state of the node that was read before the action happened. */
async function lastBefore(stage: Stage, hasHappened: () => Promise<boolean>): Promise<NodeParts> {
  let last = await stage.node.parts();
  await until("what the kubelet does", async () => {
    const parts = await stage.node.parts();
    if (await hasHappened()) return true;
    last = parts;
    return undefined;
  });
  return last;
}

/** The container's liveness probe fails from the start. */
export async function livenessRestart(stage: Stage): Promise<Scene> {
  const before = await stage.before();
  const livenessProbe = {
    exec: { command: ["sh", "-c", "echo not alive; exit 1"] },
    periodSeconds: 1,
    failureThreshold: 2,
  };
  const made = await stage.create("not-alive", { containers: [{ script: SERVES, livenessProbe }] });
  const restarts = ({ status }: SeenPod): number => status.containerStatuses?.[0]?.restartCount ?? 0;
  const pod = await stage.once("restarted", made, (pod) => restarts(pod) > 0);
  return { pod, events: await stage.events(pod, "Killing"), before, pods: [made] };
}

const DRA = "/apis/resource.k8s.io/v1";
const DRA_DRIVER = "gpu.example.com";
/**
 * A pod whose claim has a device that every node can use, but is reserved for another pod; and a pod whose claim needs
 * no driver. The claims, their ResourceSlice and their DeviceClass are not removed.
 */
export async function unreservedClaim(stage: Stage): Promise<Scene> {
  const { api } = stage;
  const metadata = { name: "gpu" };
  const requests = [{ name: "gpu", exactly: { deviceClassName: "gpu" } }];
  const pool = { name: "shared", generation: 1, resourceSliceCount: 1 };
  const slice = { driver: DRA_DRIVER, pool, allNodes: true, devices: [{ name: "gpu-0" }] };
  await api.must("POST", `${DRA}/deviceclasses`, { metadata, spec: {} });
  await api.must("POST", `${DRA}/resourceslices`, { metadata, spec: slice });
  const claims = `${DRA}/namespaces/default/resourceclaims`;
  const claim = await api.must<object>("POST", claims, { metadata, spec: { devices: { requests } } });
  const results = [{ request: "gpu", driver: DRA_DRIVER, pool: "shared", device: "gpu-0" }];
  const reservedFor = [{ resource: "pods", name: "another", uid: "another" }];
  await api.must("PUT", `${claims}/gpu/status`, {
    ...claim,
    status: { allocation: { devices: { results } }, reservedFor },
  });
  const before = await stage.before();
  const made = await stage.create("claims", { resourceClaims: [{ name: "gpu", resourceClaimName: "gpu" }] });
  const events = await stage.events(made, "FailedPrepareDynamicResources");
  return { pod: made, events, before, pods: [made, await preparedClaim(stage)] };
}

/**
 * Creates what a scheduler would create: the claim is allocated (here without a device) and reserved for the pod, and
 * then the pod is bound.
 */
async function preparedClaim(stage: Stage): Promise<SeenPod> {
  const { api } = stage;
  const claims = `${DRA}/namespaces/default/resourceclaims`;
  const requests = [{ name: "none", exactly: { deviceClassName: "gpu" } }];
  const claim = await api.must<object>("POST", claims, {
    metadata: { name: "none" },
    spec: { devices: { requests } },
  });
  const spec = { resourceClaims: [{ name: "none", resourceClaimName: "none" }], nodeName: undefined };
  const made = await stage.create("prepared", spec);
  const { name, uid } = made.metadata;
  const status = { allocation: { devices: { results: [] } }, reservedFor: [{ resource: "pods", name, uid }] };
  await api.must("PUT", `${claims}/none/status`, { ...claim, status });
  const target = { kind: "Node", name: NODE_NAME };
  await api.must("POST", `${pathOf(made)}/binding`, { metadata: { name }, target });
  await stage.running(made);
  return made;
}

const patchOf = (requests: object, limits?: object): object => ({
  spec: { containers: [{ name: "app", resources: { requests, ...(limits && { limits }) } }] },
});
const STRATEGIC = "application/strategic-merge-patch+json";

/** Two resizes of running pods: one requests more CPU than there is room for, the other is carried out. */
export async function resizes(stage: Stage): Promise<{ readonly waits: Scene; readonly taken: Scene }> {
  const waiting = await stage.create("waits", { containers: [cpu(100)] });
  const growing = await stage.create("grows", { containers: [cpu(100)] });
  const filler = await stage.create("filler", { containers: [cpu(FOR_PODS.milliCpu - 1000)] });
  await stage.running(waiting, growing, filler);
  const before = await stage.before();
  const to = async (pod: SeenPod, milliCpu: number): Promise<void> => {
    await stage.api.must("PATCH", `${pathOf(pod)}/resize`, patchOf({ cpu: `${milliCpu}m` }), STRATEGIC);
  };
  await to(waiting, 1000);
  const isPending = ({ status }: SeenPod): boolean =>
    status.conditions?.some(({ type }) => type === "PodResizePending") ?? false;
  const pod = await stage.once("with a waiting resize", waiting, isPending);
  const waits = { pod, events: await stage.events(pod, "ResizeDeferred"), before, pods: [waiting, growing, filler] };
  await to(growing, 200);
  const events = await stage.events(growing, "ResizeCompleted");
  return { waits, taken: { pod: await stage.read(growing), events, before, pods: [] } };
}

/**
 * Two resizes of pod-level resources of running pods: one requests more than there is room for, the other is carried
 * out.
 */
export async function podLevelResize(stage: Stage): Promise<{ readonly waits: Scene; readonly taken: Scene }> {
  const whole = (milliCpu: number): object => ({ requests: { cpu: `${milliCpu}m` } });
  const waiting = await stage.create("wide", { containers: [{}], resources: whole(100) });
  const growing = await stage.create("grows", { containers: [cpu(100)] });
  const filler = await stage.create("filler", { containers: [cpu(FOR_PODS.milliCpu - 1000)] });
  await stage.running(waiting, growing, filler);
  const before = await stage.before();
  await stage.api.must("PATCH", `${pathOf(waiting)}/resize`, { spec: { resources: whole(1000) } }, STRATEGIC);
  const isPending = ({ status }: SeenPod): boolean =>
    status.conditions?.some(({ type }) => type === "PodResizePending") ?? false;
  const pod = await stage.once("with a waiting resize", waiting, isPending);
  const waits = { pod, events: await stage.events(pod, "ResizeDeferred"), before, pods: [waiting, growing, filler] };
  const whileItWaits = await stage.before();
  await stage.api.must("PATCH", `${pathOf(growing)}/resize`, patchOf({ cpu: "200m" }), STRATEGIC);
  const events = await stage.events(growing, "ResizeCompleted");
  return { waits, taken: { pod: await stage.read(growing), events, before: whileItWaits, pods: [] } };
}

/**
 * A resize of a running pod with an exclusive CPU to less than one CPU, which the CPU manager's static policy refuses.
 */
export async function infeasibleResize(stage: Stage): Promise<Scene> {
  const one = { cpu: "1", memory: "16Mi" };
  const made = await stage.create("resized", { containers: [{ requests: one, limits: one }] });
  await stage.running(made);
  const before = await stage.before();
  const half = { cpu: "500m" };
  await stage.api.must("PATCH", `${pathOf(made)}/resize`, patchOf(half, half), STRATEGIC);
  const isPending = ({ status }: SeenPod): boolean =>
    status.conditions?.some(({ type }) => type === "PodResizePending") ?? false;
  const pod = await stage.once("with a waiting resize", made, isPending);
  return { pod, events: await stage.events(pod, "ResizeInfeasible"), before, pods: [made] };
}
