import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { container } from "../../kit/containers.ts";
import { node } from "../../kit/nodes.ts";
import { podOf } from "../../kit/pods.ts";
import type { Json } from "../../kit/snapshots.ts";
import { KWOK, pathOf } from "../go-programs.ts";
import { LoggedProcess } from "../logged-process.ts";
import { holds, until } from "../pods/until.ts";
import type { ControlPlane } from "./control-plane.ts";

const PODS = "/api/v1/namespaces/default/pods";

export interface FleetOptions {
  readonly nodes: number;
  /** The number of pods on all nodes together, evenly distributed. */
  readonly pods: number;
  /** The port of a node's kubelet at the API server's address. */
  readonly kubeletPort: (node: number) => number;
}

/**
 * Nodes and pods that KWOK simulates: it sets pods to Running and renews each node's status and lease. No containers
 * run.
 */
export class Fleet {
  readonly #plane: ControlPlane;
  readonly #kwok: LoggedProcess;

  private constructor(plane: ControlPlane) {
    this.#plane = plane;
    const credentials = plane.credentialsOf("kwok", "/O=system:masters/CN=kwok");
    const config = join(plane.dir, "kwok.json");
    writeFileSync(config, [OPTIONS, ...STAGES].map((one) => JSON.stringify(one)).join("\n---\n"));
    const places = [`--config=${config}`, `--kubeconfig=${plane.kubeconfig("kwok", credentials)}`];
    const args = ["--manage-all-nodes", "--node-lease-duration-seconds=0", `--node-ip=${plane.address}`];
    this.#kwok = new LoggedProcess(pathOf(KWOK), [...places, ...args], join(plane.dir, "kwok.log"));
  }

  /**
   * Resolves when all nodes are Ready and all pods Running. One pod, and one node for each kubelet port, is created
   * through the API server; all others are copies of its final stored form under other names, because creating 10,000
   * pods by requests takes minutes.
   */
  static async start(plane: ControlPlane, { nodes, pods, kubeletPort }: FleetOptions): Promise<Fleet> {
    const fleet = new Fleet(plane);
    try {
      for (const [port, numbers] of Map.groupBy(upTo(nodes), kubeletPort)) {
        const [first = 0, ...others] = numbers;
        await plane.admin.must("POST", "/api/v1/nodes", nodeObject(nodeName(first), plane.address, port));
        const node = await fleet.#stored(`minions/${nodeName(first)}`);
        await plane.store(others.map((i) => [`minions/${nodeName(i)}`, like(node, [nodeName(first), nodeName(i)])]));
      }
      await fleet.addPod(podName(0), nodeName(0));
      const others = upTo(pods).slice(1);
      const named = others.map((i) => [podName(i), nodeName(i % nodes)] as const);
      await plane.store(await fleet.podsLike(podName(0), named));
    } catch (error) {
      await fleet.stop();
      throw error;
    }
    return fleet;
  }

  /** Copies of a pod of node 0, ready for `store`. Each copy has its own node, and a name as long as the original's. */
  async podsLike(
    name: string,
    copies: readonly (readonly [name: string, node: string])[],
  ): Promise<readonly (readonly [at: string, pod: Buffer])[]> {
    const pod = await this.#stored(`pods/default/${name}`);
    return copies.map(([copy, node]) => [`pods/default/${copy}`, like(pod, [name, copy], [nodeName(0), node])]);
  }
  async #stored(at: string): Promise<Stored> {
    const [resource = "", ...names] = at.split("/");
    const path = resource === "minions" ? `/api/v1/nodes/${names[0]}` : `${PODS}/${names[1]}`;
    const { metadata } = await this.#plane.admin.get<{ readonly metadata: { readonly uid: string } }>(path);
    return { bytes: await this.#plane.stored(at), uid: metadata.uid };
  }

  /** Resolves when the pod is Running. */
  async addPod(name: string, node: string): Promise<void> {
    await this.#plane.admin.must("POST", PODS, podObject(name, node));
    const runs = async (): Promise<true | undefined> => {
      const { status } = await this.#plane.admin.get<{ readonly status: { readonly phase: string } }>(
        `${PODS}/${name}`,
      );
      return holds(status.phase === "Running");
    };
    await until(`pod ${name} to run`, runs, () => this.#kwok.log().slice(-2000));
  }

  async stop(): Promise<void> {
    await this.#kwok.end();
  }
}

interface Stored {
  readonly bytes: Buffer;
  readonly uid: string;
}
/**
 * Copies an object and replaces its names and its uid. Protobuf stores the length of each text, so a replacement has
 * the same length.
 */
function like({ bytes, uid }: Stored, ...names: readonly (readonly [from: string, to: string])[]): Buffer {
  const text = [...names, [uid, randomUUID()] as const].reduce(
    (text, [from, to]) => text.replaceAll(from, to),
    bytes.toString("latin1"),
  );
  const copy = Buffer.from(text, "latin1");
  if (copy.length !== bytes.length) throw new Error(`names of different lengths: ${names.join(" and ")}`);
  return copy;
}
const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => i);

const podName = (i: number): string => `app-${String(i).padStart(5, "0")}`;
export const nodeName = (i: number): string => `node-${String(i).padStart(4, "0")}`;
const RESOURCES = { cpu: "16", memory: "64Gi", "ephemeral-storage": "200Gi", pods: "110" };
const nodeObject = (name: string, address: string, port: number): Json =>
  node(
    {
      capacity: RESOURCES,
      allocatable: RESOURCES,
      conditions: [
        { type: "Ready", status: "True", reason: "KubeletReady", lastTransitionTime: new Date().toISOString() },
      ],
      addresses: [{ type: "InternalIP", address }],
      daemonEndpoints: { kubeletEndpoint: { Port: port } },
      nodeInfo: { kubeletVersion: "v1.36.3", operatingSystem: "linux", architecture: "amd64" },
    },
    { metadata: { name, labels: { "kubernetes.io/os": "linux", "topology.kubernetes.io/zone": "zone-1" } } },
  );

/** Pods of the size that pods of a deployment usually have. */
const podObject = (name: string, nodeName: string): Json => {
  const containers = ["app", "proxy"].map((one) =>
    container(
      one,
      { cpu: "100m", memory: "128Mi" },
      { memory: "256Mi" },
      {
        image: `registry.example/${one}:1.0`,
        env: Array.from({ length: 12 }, (_, n) => ({ name: `SETTING_${n}`, value: `${n} of ${name}` })),
      },
    ),
  );
  const labels = { app: "shop", "app.kubernetes.io/part-of": "shop", "pod-template-hash": "7c9f8d6b5" };
  const annotations = { "prometheus.io/scrape": "true", "checksum/config": "0".repeat(64) };
  return podOf(containers, { nodeName }, { metadata: { name, labels, annotations } });
};

/**
 * KWOK lists the pods of each node once, from the API server's watch cache; with the pager it would list everything in
 * etcd each time.
 */
const OPTIONS = {
  apiVersion: "config.kwok.x-k8s.io/v1alpha1",
  kind: "KwokConfiguration",
  options: {
    enablePodsOnNodeSyncListPager: false,
    ...{
      podPlayStageParallelism: 4,
      nodePlayStageParallelism: 4,
      nodeLeaseParallelism: 4,
      podsOnNodeSyncParallelism: 1,
    },
  },
};

const READY = '.status.conditions.[] | select( .type == "Ready" ) | .status';
/** A KWOK stage: the changes that KWOK makes to an object for which all conditions hold. */
const stageOf = (kind: string, name: string, [key, operator, ...values]: readonly string[], more: object): object => ({
  apiVersion: "kwok.x-k8s.io/v1alpha1",
  kind: "Stage",
  metadata: { name },
  spec: {
    resourceRef: { apiGroup: "v1", kind },
    selector: { matchExpressions: [{ key, operator, ...(values.length > 0 ? { values } : {}) }] },
    ...more,
  },
});
const STAGES: readonly object[] = [
  stageOf("Pod", "pod-runs", [".status.phase", "In", "Pending"], {
    next: {
      statusTemplate: `{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
conditions:
- {type: Ready, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: ContainersReady, status: "True", lastTransitionTime: {{ $now | Quote }}}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: true
  restartCount: 0
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ end }}`,
    },
  }),
  stageOf("Pod", "pod-goes", [".metadata.deletionTimestamp", "Exists"], { next: { delete: true } }),
  // more often than a kubelet, which sends an unchanged status every five minutes
  stageOf("Node", "node-tells", [READY, "In", "True"], {
    delay: { durationMilliseconds: 100_000, jitterDurationMilliseconds: 200_000 },
    next: {
      statusTemplate: `{{ $now := Now }}
conditions:
- type: Ready
  status: "True"
  reason: KubeletReady
  lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ .metadata.creationTimestamp | Quote }}`,
    },
    immediateNextStage: true,
  }),
];
