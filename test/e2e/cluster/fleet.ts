import { KWOK, pathOf } from "../go-programs.ts";
import { LoggedProcess } from "../logged-process.ts";
import { holds, until } from "../pods/until.ts";
import type { ControlPlane } from "./control-plane.ts";

/** So many requests at a time make the objects. */
const AT_A_TIME = 48;

export interface FleetOptions {
  readonly nodes: number;
  /** On all nodes together, spread evenly. */
  readonly pods: number;
  /** Where every node says that its kubelet listens, at the API server's address. */
  readonly kubeletPort: number;
}

/** Nodes and pods that KWOK keeps alive: it sets their status and renews the nodes' leases, and nothing runs. */
export class Fleet {
  readonly #plane: ControlPlane;
  readonly #kwok: LoggedProcess;

  private constructor(plane: ControlPlane, kwok: LoggedProcess) {
    this.#plane = plane;
    this.#kwok = kwok;
  }

  /** Resolves when all are there, the nodes Ready and the pods Running. */
  static async start(plane: ControlPlane, { nodes, pods, kubeletPort }: FleetOptions): Promise<Fleet> {
    const kubeconfig = plane.kubeconfig("kwok", plane.credentialsOf("kwok", "/O=system:masters/CN=kwok"));
    const places = [`--node-ip=${plane.address}`, `--node-port=${kubeletPort}`, "--server-address=127.0.0.1:0"];
    const args = [`--kubeconfig=${kubeconfig}`, "--manage-all-nodes", "--node-lease-duration-seconds=200", ...places];
    const kwok = new LoggedProcess(pathOf(KWOK), args, `${plane.dir}/kwok.log`);
    const fleet = new Fleet(plane, kwok);
    try {
      await inTurns(nodes, (i) => plane.admin.must("POST", "/api/v1/nodes", nodeObject(i)));
      await inTurns(pods, (i) => fleet.addPod(i, nodeName(i % nodes)));
      await fleet.#settled(nodes, pods);
    } catch (error) {
      await fleet.stop();
      throw error;
    }
    return fleet;
  }

  addPod(i: number, node: string): Promise<unknown> {
    return this.#plane.admin.must("POST", "/api/v1/namespaces/default/pods", podObject(i, node));
  }
  async #settled(nodes: number, pods: number): Promise<void> {
    const { admin } = this.#plane;
    const told = (): string => this.#kwok.log().slice(-2000);
    // asked of the server's cache, one object of each: what is left is counted there
    const pending = async (path: string, selector: string): Promise<number> => {
      const list = await admin.get<{
        readonly items: readonly object[];
        readonly metadata: { readonly remainingItemCount?: number };
      }>(`${path}?fieldSelector=${encodeURIComponent(selector)}`);
      return list.items.length + (list.metadata.remainingItemCount ?? 0);
    };
    await until(
      "all pods to run",
      async () => holds((await pending("/api/v1/pods", "status.phase!=Running")) === 0),
      told,
    );
    void nodes;
    void pods;
  }

  async stop(): Promise<void> {
    await this.#kwok.end();
  }
}

async function inTurns(count: number, make: (i: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await make(next++);
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, worker));
}

export const nodeName = (i: number): string => `node-${String(i).padStart(4, "0")}`;
const RESOURCES = { cpu: "16", memory: "64Gi", "ephemeral-storage": "200Gi", pods: "110" };
const nodeObject = (i: number): object => ({
  metadata: {
    name: nodeName(i),
    labels: { "kubernetes.io/hostname": nodeName(i), "topology.kubernetes.io/zone": `zone-${i % 3}` },
  },
  status: { capacity: RESOURCES, allocatable: RESOURCES, nodeInfo: { kubeletVersion: "v1.36.3" } },
});

/** As large as a deployment's usually are. */
const podObject = (i: number, node: string): object => ({
  metadata: {
    name: `app-${i}`,
    labels: { app: `app-${i % 200}`, "app.kubernetes.io/part-of": "shop", "pod-template-hash": "7c9f8d6b5" },
    annotations: { "prometheus.io/scrape": "true", "checksum/config": "0".repeat(64) },
  },
  spec: {
    nodeName: node,
    containers: ["app", "proxy"].map((name) => ({
      name,
      image: `registry.example/${name}:1.0`,
      env: Array.from({ length: 12 }, (_, n) => ({ name: `SETTING_${n}`, value: `value-${n}-of-${i}` })),
      resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "256Mi" } },
    })),
  },
});
