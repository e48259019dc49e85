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
/** The resources of all pods together: memory pressure stays within the kubelet's own cgroup. */
export const FOR_PODS = { milliCpu: 1800, memoryBytes: 512 * MIB, evictionBytes: 100 * MIB } as const;

/** The test machine may have any size; the resources that remain for pods are fixed. */
const RESERVED = {
  kubeReserved: { cpu: `${availableParallelism() * 1000 - FOR_PODS.milliCpu}m` },
  systemReserved: { memory: String(totalmem() - FOR_PODS.memoryBytes) },
  evictionHard: { "memory.available": `${FOR_PODS.evictionBytes / MIB}Mi` },
  evictionPressureTransitionPeriod: "5s",
  // every pressure is reported, however soon it ends
  nodeStatusUpdateFrequency: "2s",
  // the static policy does not resize a pod with exclusive CPUs
  cpuManagerPolicy: "static",
};

/** The documents about a node that a person reads before a decision, as the API server and the kubelet return them. */
export interface NodeParts {
  readonly node: object;
  readonly pods: { readonly items: readonly object[] };
  readonly configz: object;
  readonly stats: object;
}

/** A real kubelet that has joined the cluster and uses its own containerd. */
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
    // a node without a CNI configuration is not Ready
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
        // the default is 30 s, during which the kubelet caches that a user is not authorized
        authorization: { mode: "Webhook", webhook: { cacheUnauthorizedTTL: "1s" } },
      },
      args: [
        `--kubeconfig=${this.#plane.kubeconfig(NODE_NAME, identity)}`,
        `--node-ip=${this.#plane.address}`,
        // the maximum age of the numbers in /stats/summary; evictions use current numbers
        "--housekeeping-interval=1s",
        // the kubelet logs each eviction check
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
  /**
   * Stops the kubelet first, so that it starts no more pods, and removes its directory last, when nothing mounted from
   * it is in use.
   */
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
  /** Resolves when the kubelet has just checked for pressure and found none: its next check is 10 s later. */
  async lookedForPressure(): Promise<void> {
    const looks = (): number => this.log().split("Eviction manager: no resources are starved").length;
    const before = looks();
    await until("the kubelet to look for pressure", () => holds(looks() > before));
  }
  /** The Node object. */
  read(): Promise<NodeObject> {
    return this.#plane.admin.get(`/api/v1/nodes/${NODE_NAME}`);
  }
  /** A client for the kubelet's API. */
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
