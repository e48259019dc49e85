import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Hierarchy } from "../../../actuator/cgroupfs/hierarchy.ts";
import { openHierarchy } from "../../../actuator/cgroupfs/open.ts";
import type { PodRuntime, RuntimeContainer, RuntimePods } from "../../../actuator/containerd/cri.ts";
import type { CriMethod } from "../../../actuator/containerd/messages.ts";
import { podRuntimeOver } from "../../../actuator/containerd/pods.ts";
import type { RunOptions } from "../../cli/run.ts";
import { giveAddresses } from "../containerd/cni.ts";
import { cgroupsBelow, mountsBelow, removeCgroups, unmountBelow } from "../containerd/leftovers.ts";
import { type Meddler, type Meddling, startMeddler } from "../containerd/meddler.ts";
import { must } from "../containerd/pods.ts";
import { type Containerd, startContainerd } from "../containerd/start.ts";
import { Gate } from "../gc/gate.ts";
import { type PodsServer, startPodsServer } from "../gc/pods-server.ts";
import { removeClaims } from "./claims.ts";
import { DaemonProcess, isNamed } from "./daemon.ts";
import { NodeFiles } from "./files.ts";
import { IMAGE } from "./manifest.ts";
import { freePort } from "./port.ts";
import { holds, until } from "./until.ts";

export interface NodeOptions {
  /** Pods may have their own addresses. */
  readonly hasNetwork?: boolean;
  /** The pods come from a URL, as from an API server, and not from manifests. */
  readonly hasServer?: boolean;
  /** A meddler stands between the daemon and the runtime. */
  readonly isMeddled?: boolean;
  /** The configuration of containerd as it is shipped; absent: the tests' configuration. */
  readonly containerd?: string;
  /** The path of another containerd than the machine's. */
  readonly runtime?: string | undefined;
  /** Fields of the KubeletConfiguration. */
  readonly configuration?: object;
  readonly settings?: Readonly<Record<string, unknown>>;
  /** The installed command that starts the daemon; absent: the checkout's. */
  readonly launcher?: string;
}
/**
 * A node for one test file: containerd with an image, a cgroup, a directory of manifests or a server, and the daemon.
 */
export class PodNode extends NodeFiles {
  readonly hierarchy: Hierarchy;
  meddling: Meddling = {};
  readonly #options: NodeOptions;
  readonly #undo: (() => unknown)[] = [];
  readonly #daemons: DaemonProcess[] = [];
  #containerd: Containerd | undefined;
  #runtime: PodRuntime | undefined;
  #server: PodsServer | undefined;
  #meddler: Meddler | undefined;
  #isServerClosed = false;
  #port = 0;

  private constructor(options: NodeOptions) {
    super();
    this.#options = options;
    const opened = openHierarchy({ root: this.cgroupRoot });
    if (!opened.ok) throw new Error(opened.error.message);
    this.hierarchy = opened.value;
  }

  static async start(options: NodeOptions = {}): Promise<PodNode> {
    const node = new PodNode(options);
    try {
      await node.#open();
    } catch (error) {
      await node.stop();
      throw error;
    }
    return node;
  }

  async #open(): Promise<void> {
    const { hasNetwork, hasServer, isMeddled, configuration } = this.#options;
    this.#port = await freePort();
    this.configure({ ...configuration });
    const { containerd: deployed, runtime: binary } = this.#options;
    const images = [{ name: IMAGE, sizeBytes: 4096, base: "tools" }] as const;
    const containerd = await startContainerd({ configuration: deployed, binary, images });
    this.#containerd = containerd;
    this.#undo.push(containerd.stop);
    if (hasNetwork) await giveAddresses(containerd, "10.88.7.1", "fd00::7");
    this.#runtime = podRuntimeOver(containerd.connection);
    if (hasServer) {
      const server = await startPodsServer(new Gate());
      this.#server = server;
      this.#undo.push(() => this.closeServer());
    }
    if (isMeddled) {
      const meddler = await startMeddler(this.dir, containerd.connection, () => this.meddling);
      this.#meddler = meddler;
      this.#undo.push(meddler.close);
    }
  }

  /** Stops everything and removes all files, mounts and cgroups. */
  async stop(): Promise<void> {
    for (const daemon of this.#daemons) await daemon.kill();
    for (const step of this.#undo.toReversed()) await step();
    removeClaims(...this.#daemons.map(({ pid }) => pid));
    unmountBelow(this.dir);
    await until("the end of all processes", () => (this.hierarchy.processes("/") === 0 ? true : undefined));
    removeCgroups(this.cgroupRoot.slice(1));
    this.removeFiles();
  }

  get containerd(): Containerd {
    return given(this.#containerd);
  }
  get server(): PodsServer {
    return given(this.#server);
  }
  async closeServer(): Promise<void> {
    if (!this.#isServerClosed) await this.server.close();
    this.#isServerClosed = true;
  }
  /** The daemon that was started last. */
  get daemon(): DaemonProcess {
    return given(this.#daemons.at(-1));
  }

  startDaemon(settings: Readonly<Record<string, unknown>> = {}): DaemonProcess {
    const daemon = new DaemonProcess(this.settingsFile(settings), this.statusUrl, this.#run);
    this.#daemons.push(daemon);
    return daemon;
  }
  get #run(): RunOptions {
    const { launcher } = this.#options;
    return launcher === undefined ? {} : { launcher };
  }
  get statusUrl(): string {
    return `http://127.0.0.1:${this.#port}`;
  }
  settingsFile(settings: Readonly<Record<string, unknown>> = {}): string {
    const source = this.#server === undefined ? { manifests: this.manifests } : { podsUrl: this.#server.url };
    const places = {
      runtimeEndpoint: this.#meddler?.endpoint ?? this.containerd.endpoint,
      statusListen: `127.0.0.1:${this.#port}`,
    };
    return this.writeSettings({ ...source, ...places, ...this.#options.settings, ...settings });
  }

  /** Makes the daemon's first call of this method hang; resolves when the call has reached that point. */
  hangAt(method: CriMethod, where: "before" | "after"): Promise<void> {
    const reached = Promise.withResolvers<void>();
    const stopThere = async (called: CriMethod): Promise<void> => {
      if (called !== method) return;
      reached.resolve();
      await new Promise(() => {});
    };
    this.meddling = { [where]: stopThere };
    return reached.promise;
  }

  /** Waits until the runtime has finished all calls, which it does even if the caller was killed; needs `isMeddled`. */
  async runtimeAtRest(): Promise<void> {
    // the last call may not have arrived yet
    await sleep(100);
    await until("the runtime's rest", () => holds(given(this.#meddler).isQuiet()));
  }

  /** The pods in the real runtime. */
  held(): Promise<RuntimePods> {
    return must(given(this.#runtime).pods());
  }
  /** Every instance of the container, the newest first. */
  async containersOf(name: string, container = "app"): Promise<readonly RuntimeContainer[]> {
    const pods = [...(await this.held()).values()].filter((pod) => isNamed(pod, name));
    return pods.flatMap(({ containers }) => containers.filter((one) => one.name === container));
  }
  /** Runs a script in the container and returns its output. */
  async exec(id: string, script: string): Promise<string> {
    const { stdout, stderr, exitCode } = await must(given(this.#runtime).exec(id, ["sh", "-c", script], 30));
    return exitCode === 0 ? stdout.trimEnd() : `exit ${exitCode}: ${stderr.trimEnd()}`;
  }
  /** Kills a container with SIGKILL, without the daemon's knowledge. */
  async kill(id: string): Promise<void> {
    await must(given(this.#runtime).stopContainer(id, 0));
  }
  /** The kernel's content of a file in the cgroup of a pod or container. */
  cgroupFile(path: string, file: string): string {
    const text = this.hierarchy.read(path, file);
    return text.ok ? text.value.trimEnd() : text.error.message;
  }
  /**
   * The cgroups of a pod in all hierarchies, including those without a controller; with an empty uid, the cgroups of
   * all pods.
   */
  cgroupsOf(uid: string): readonly string[] {
    return cgroupsBelow(this.cgroupRoot.slice(1)).filter((path) =>
      path.slice(path.indexOf(this.cgroupRoot)).includes(`/pod${uid}`),
    );
  }
  /** Everything that pods have left behind; empty if there is nothing. */
  async leftovers(): Promise<readonly string[]> {
    const held = [...(await this.held()).values()].map(({ name }) => `${name} in the runtime`);
    const cgroups = this.cgroupsOf("").filter((path) => /\/pod[^/]*$/.test(path));
    const dirs = ["pods", "logs", "links", "state/pods"].map((name) => join(this.dir, name)).filter(existsSync);
    const files = dirs.flatMap((dir) => readdirSync(dir).map((name) => join(dir, name)));
    return [...held, ...cgroups, ...files, ...mountsBelow(this.dir)];
  }
}

function given<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("this node has none");
  return value;
}
