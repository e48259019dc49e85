import { join } from "node:path";
import { Client, credentials, type ServiceError, status } from "@grpc/grpc-js";
import { loadSync, type MethodDefinition } from "@grpc/proto-loader";
import { onTestFinished } from "vitest";
import type { PodResourcesSource } from "../../../actuator/podresources/live-source.ts";
import {
  type PodResourcesMethod,
  type PodResourcesServing,
  servePodResources,
} from "../../../actuator/podresources/server.ts";
import { ok } from "../../../api/base/result.ts";
import { type Pod, pod as podSchema } from "../../../api/model/pod.ts";
import { container, sidecar } from "../../kit/containers.ts";
import { pod } from "../../kit/pods.ts";
import { scratchFolder } from "../../kit/scratch.ts";

export const scratch = (): string => {
  const directory = scratchFolder();
  return directory;
};

/** `init` and `side` are init containers; `side` is a sidecar. */
export const servedPod = (name: string, containers: readonly string[], namespace = "default"): Pod =>
  podSchema.parse(
    pod(name, {
      metadata: { namespace, uid: `${namespace}-${name}` },
      spec: {
        initContainers: [container("init"), sidecar("side")],
        containers: containers.map((one) => container(one)),
      },
    }),
  );

const NOTHING: PodResourcesSource = {
  pods: [],
  activePods: [],
  devices: () => [],
  cpus: () => [],
  memory: () => [],
  claims: () => [],
  allocatable: { devices: [], cpus: [], memory: [] },
};
export const sourceWith = (more: Partial<PodResourcesSource>): PodResourcesSource => ({ ...NOTHING, ...more });

const GPU = "example.com/gpu";
const ACTIVE = [servedPod("b", ["app"]), servedPod("a", ["app", "idle"], "kube-system"), servedPod("a", ["app"])];
/** Two NUMA nodes; pod `a` has every kind of resource, in no sorted order. */
export const FULL: PodResourcesSource = {
  pods: [...ACTIVE, servedPod("ended", ["app"])],
  activePods: ACTIVE,
  devices: (uid, container) =>
    uid !== "default-a" || !["app", "init"].includes(container)
      ? []
      : [
          { resource: "example.com/nic", perNuma: new Map([[-1, ["eth0"]]]) },
          {
            resource: GPU,
            perNuma: new Map([
              [1, ["gpu-10", "gpu-2"]],
              [0, ["gpu-10"]],
            ]),
          },
          { resource: "example.com/none", perNuma: new Map() },
        ],
  claims: () => [],
  cpus: (uid, container) => (uid === "default-a" && container === "side" ? new Set([11, 3, 2]) : []),
  memory: (uid, container) =>
    uid !== "default-a" || container !== "app"
      ? []
      : [
          { numaAffinity: [0, 1], type: "memory", size: 9_007_199_254_740_991 },
          { numaAffinity: [1], type: "hugepages-2Mi", size: 4_194_304 },
        ],
  allocatable: {
    devices: [
      { resource: "example.com/nic", devices: [{ id: "eth0" }] },
      {
        resource: GPU,
        devices: [
          { id: "gpu-10", numaNodes: [1, 0] },
          { id: "gpu-2", numaNodes: [1] },
          { id: "gpu-3", numaNodes: [] },
        ],
      },
    ],
    cpus: new Set([3, 11, 2]),
    memory: [{ numaAffinity: [0], type: "memory", size: 1024 }],
  },
};

/** A server in its own directory, closed after the test. */
export async function serving(more: Partial<PodResourcesServing> = {}) {
  const served = await servePodResources({ directory: scratch(), source: () => ok(FULL), ...more });
  if (!served.ok) throw new Error(served.error);
  onTestFinished(served.value.close);
  return served.value;
}

type Methods = Readonly<Record<string, MethodDefinition<object, object>>>;
const methodsOf = (file: string, service: string): Methods => {
  const proto = join(import.meta.dirname, "../../../actuator/podresources", file);
  return loadSync(proto, { longs: Number, arrays: true })[service] as unknown as Methods;
};
const methods: Methods = {
  ...methodsOf("podresources.proto", "v1.PodResourcesLister"),
  "v1alpha1.List": methodsOf("podresources-v1alpha1.proto", "v1alpha1.PodResourcesLister")["List"] as Methods[string],
};
/** The decoded bytes of a ListPodResourcesResponse, without fields that have no value. */
export const listIn = (bytes: Buffer): unknown =>
  JSON.parse(JSON.stringify(methods["List"]?.responseDeserialize(bytes)), (_, value) => value ?? undefined);

export type ServedAnswer = { readonly ok: unknown } | { readonly code: string; readonly message: string };

/** A client of a socket; `frame`: bytes to send instead of the encoded request. */
export function clientOf(path: string) {
  const client = new Client(`unix://${path}`, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
  onTestFinished(() => client.close());
  return (method: PodResourcesMethod, request: object = {}, frame?: Buffer): Promise<ServedAnswer> =>
    new Promise((done) => {
      const { path: name, requestSerialize, responseDeserialize } = methods[method] as MethodDefinition<object, object>;
      client.makeUnaryRequest(
        name,
        frame === undefined ? requestSerialize : () => frame,
        responseDeserialize,
        request,
        { deadline: Date.now() + 10_000 },
        (error: ServiceError | null, answer?: object) =>
          done(error === null ? { ok: answer } : { code: status[error.code] as string, message: error.details }),
      );
    });
}
