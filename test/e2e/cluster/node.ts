import { availableParallelism, totalmem } from "node:os";
import { giveAddresses } from "../containerd/cni.ts";
import { type Containerd, startContainerd } from "../containerd/start.ts";
import { Kubelet } from "../kubelet/kubelet.ts";
import { IMAGE } from "../pods/manifest.ts";
import { holds, until } from "../pods/until.ts";
import type { ApiClient, Credentials } from "./api-client.ts";
import type { ControlPlane } from "./control-plane.ts";

export const NODE_NAME = "worker-1";
const MIB = 2 ** 20;
/** All pods together may have so much: no pressure ever leaves the kubelet's own cgroup. */
export const FOR_PODS = { milliCpu: 1800, memoryBytes: 512 * MIB, evictionBytes: 100 * MIB } as const;

/** The machine is of any size; what is left for pods is not. */
const RESERVED = {
  kubeReserved: { cpu: `${availableParallelism() * 1000 - FOR_PODS.milliCpu}m` },
  systemReserved: { memory: String(totalmem() - FOR_PODS.memoryBytes) },
  evictionHard: { "memory.available": `${FOR_PODS.evictionBytes / MIB}Mi` },
  evictionPressureTransitionPeriod: "5s",
  // every pressure is told, however soon it ends
  nodeStatusUpdateFrequency: "2s",
  // a pod with a CPU of its own cannot be resized
  cpuManagerPolicy: "static",
};

/** The documents of a node that a person would read before a decision, each as the API server and the kubelet tell it. */
export interface NodeParts {
  readonly node: object;
  readonly pods: { readonly items: readonly object[] };
  readonly configz: object;
  readonly stats: object;
}

/** A real kubelet that has joined the cluster, over a containerd of its own. */
export class ClusterNode {
  readonly #plane: ControlPlane;
  readonly #undo: (() => unknown)[] = [];
  #kubeletUrl = "";
  #asAdmin: ApiClient | undefined;
  #kubelet: Kubelet | undefined;

  private constructor(plane: ControlPlane) {
    this.#plane = plane;
  }

  /** Resolves when the node is Ready. */
  static async start(plane: ControlPlane, version: string): Promise<ClusterNode> {
    const node = new ClusterNode(plane);
    try {
      await node.#open(version);
    } catch (error) {
      await node.stop();
      throw error;
    }
    return node;
  }

  async #open(version: string): Promise<void> {
    const containerd = await startContainerd({ images: [{ name: IMAGE, sizeBytes: 4096, base: "tools" }] });
    this.#undo.push(() => this.#end(containerd));
    // a node without a network is not Ready
    await giveAddresses(containerd, "10.88.7.1", "fd00::7");
    const subject = `/O=system:nodes/CN=system:node:${NODE_NAME}`;
    const identity = this.#plane.credentialsOf(`node-${NODE_NAME}`, subject);
    const serving = this.#plane.certificate(`kubelet-${NODE_NAME}`, {
      subject,
      names: [`IP:${this.#plane.address}`, `DNS:${NODE_NAME}`],
    });
    this.#kubelet = await Kubelet.start({
      runtimeEndpoint: containerd.endpoint,
      version,
      nodeName: NODE_NAME,
      configuration: {
        ...RESERVED,
        address: this.#plane.address,
        tlsCertFile: serving.cert,
        tlsPrivateKeyFile: serving.key,
        authentication: {
          anonymous: { enabled: false },
          webhook: { enabled: true },
          x509: { clientCAFile: this.#plane.caFile },
        },
        // a kubelet remembers for 30 s whom it refused
        authorization: { mode: "Webhook", webhook: { cacheUnauthorizedTTL: "1s" } },
      },
      args: [
        `--kubeconfig=${this.#plane.kubeconfig(NODE_NAME, identity)}`,
        `--node-ip=${this.#plane.address}`,
        // how old the numbers of /stats/summary are; the kubelet's own are as of the moment
        "--housekeeping-interval=1s",
        // each look for pressure is in its log
        "--vmodule=eviction_manager=3",
      ],
    });
    const isReady = (): Promise<true | undefined> => this.#isReady().catch(() => undefined);
    await until("the node to be Ready", isReady, () => this.log().slice(-3000));
    const { status } = await this.read();
    this.#kubeletUrl = `https://${this.#plane.address}:${status.daemonEndpoints.kubeletEndpoint.Port}`;
    this.#asAdmin = this.kubelet(this.#plane.credentialsOf("kubelet-admin", "/O=system:masters/CN=kubelet-admin"));
  }
  async #isReady(): Promise<true | undefined> {
    const { conditions } = (await this.read()).status;
    return holds(conditions.some(({ type, status }) => type === "Ready" && status === "True"));
  }
  /** The kubelet first, that it starts nothing again; its directory last, that nothing mounted from it is in use. */
  async #end(containerd: Containerd): Promise<void> {
    await this.#kubelet?.end();
    await containerd.stop();
    await this.#kubelet?.stop();
  }

  async stop(): Promise<void> {
    this.#asAdmin?.close();
    for (const step of this.#undo.toReversed()) await step();
  }

  log(): string {
    return this.#kubelet?.log() ?? "";
  }
  /** Resolves when the kubelet has just looked for pressure and found none: it looks again 10 s later. */
  async lookedForPressure(): Promise<void> {
    const looks = (): number => this.log().split("Eviction manager: no resources are starved").length;
    const before = looks();
    await until("the kubelet to look for pressure", () => holds(looks() > before));
  }
  /** The node's object. */
  read(): Promise<NodeObject> {
    return this.#plane.admin.get(`/api/v1/nodes/${NODE_NAME}`);
  }
  /** A client of the kubelet's own API. */
  kubelet(credentials: Credentials): ApiClient {
    return this.#plane.client(credentials, this.#kubeletUrl);
  }
  async parts(): Promise<NodeParts> {
    const kubelet = this.#asAdmin as ApiClient;
    const [node, pods, configz, stats] = await Promise.all([
      this.read(),
      this.#plane.admin.get<NodeParts["pods"]>(`/api/v1/pods?fieldSelector=spec.nodeName%3D${NODE_NAME}`),
      kubelet.get<object>("/configz"),
      kubelet.get<object>("/stats/summary"),
    ]);
    return { node, pods, configz, stats };
  }
}
interface NodeObject {
  readonly status: {
    readonly allocatable: Readonly<Record<string, string>>;
    readonly conditions: readonly { readonly type: string; readonly status: string }[];
    readonly daemonEndpoints: { readonly kubeletEndpoint: { readonly Port: number } };
  };
}
