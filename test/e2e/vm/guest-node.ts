import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Hierarchy } from "../../../actuator/cgroupfs/hierarchy.ts";
import { openHierarchy } from "../../../actuator/cgroupfs/open.ts";
import type { RuntimeContainer } from "../../../actuator/containerd/cri.ts";
import { podRuntimeOver } from "../../../actuator/containerd/pods.ts";
import { type ActuatorConfig, actuatorConfig } from "../../../actuator/core/config.ts";
import { type Actuator, startActuator } from "../../../actuator/main.ts";
import type { PassReport } from "../../../actuator/pass/loop.ts";
import type { PodRow } from "../../../actuator/status/node-status.ts";
import { mountsBelow } from "../containerd/leftovers.ts";
import { must } from "../containerd/pods.ts";
import { type Containerd, startContainerd } from "../containerd/start.ts";
import { IMAGE, NODE_NAME } from "../pods/manifest.ts";
import { GuestStatus } from "./guest-status.ts";

export const MOUNT = "/sys/fs/cgroup";
export const ROOT = "/nodewise";
const STATUS = "127.0.0.1:10299";

/** A node in the guest: containerd, manifests, and the daemon in this process. */
export class GuestNode extends GuestStatus {
  readonly dir = mkdtempSync("/var/lib/nodewise-guest-");
  readonly hierarchy: Hierarchy;
  readonly containerd: Containerd;
  /** The daemon's problems and events, the newest last. */
  readonly messages: string[] = [];
  readonly passes: PassReport[] = [];
  #daemon: Actuator | null = null;
  #settings: Readonly<Record<string, unknown>> = {};

  private constructor(containerd: Containerd) {
    super(STATUS);
    this.containerd = containerd;
    const opened = openHierarchy({ mountRoot: MOUNT, root: ROOT });
    if (!opened.ok) throw new Error(opened.error.message);
    this.hierarchy = opened.value;
    mkdirSync(join(this.dir, "manifests"));
  }

  static async start(): Promise<GuestNode> {
    const containerd = await startContainerd({ images: [{ name: IMAGE, sizeBytes: 0, base: "tools" }] });
    return new GuestNode(containerd);
  }

  /**
   * Starts a daemon whose pods come from the manifests or from `podsUrl`; with `podsUrl`, the daemon has a new state
   * directory. With the CPU manager's static policy, which the state records, Guaranteed pods are not resized.
   */
  async startDaemon(configuration: object, podsUrl?: string): Promise<void> {
    const file = join(this.dir, "kubelet.json");
    const head = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
    writeFileSync(file, JSON.stringify({ ...head, ...configuration }));
    this.#settings = {
      ...(podsUrl === undefined ? { manifests: join(this.dir, "manifests") } : { podsUrl }),
      mode: "enforce",
      pods: "enforce",
      nodeName: NODE_NAME,
      cgroupRoot: ROOT,
      stateDir: join(this.dir, podsUrl === undefined ? "state" : "state-of-url"),
      podsDirectory: join(this.dir, "pods"),
      podLogsDirectory: join(this.dir, "logs"),
      containerLogsDirectory: join(this.dir, "links"),
      kubeletConfiguration: file,
      runtimeEndpoint: this.containerd.endpoint,
      statusListen: STATUS,
      // the interval never elapses, so only changes lead to passes over the cgroups
      intervalSeconds: 3600,
      syncSeconds: 2,
      evictionPeriodSeconds: 10,
    };
    const started = await startActuator({
      config: configOf(this.#settings),
      onPass: (report) => this.passes.push(report),
      onProblem: ({ from, message }) => this.messages.push(`${from}: ${message}`),
      onRecovery: () => {},
      onEvent: ({ pod, reason, message }) => this.messages.push(`${pod.name} ${reason}: ${message}`),
    });
    if (!started.ok) throw new Error(started.error);
    this.#daemon = started.value;
  }
  /** Sets the interval of the passes over all cgroups. */
  lookEach(intervalSeconds: number): void {
    this.#settings = { ...this.#settings, intervalSeconds };
    this.#daemon?.reload(configOf(this.#settings));
  }
  async stopDaemon(): Promise<void> {
    await this.#daemon?.stop();
    this.#daemon = null;
  }

  put(pod: object & { readonly metadata: { readonly name: string } }): void {
    writeFileSync(join(this.dir, "manifests", `${pod.metadata.name}.json`), JSON.stringify(pod));
  }
  remove(...names: readonly string[]): void {
    for (const name of names) rmSync(join(this.dir, "manifests", `${name}.json`));
  }

  /** The pass after which all running containers of these pods have decided cgroups with their container ids. */
  async settled(...names: readonly string[]): Promise<PassReport> {
    const ids = (await Promise.all(names.map((name) => this.running(name)))).flatMap(({ containers }) =>
      containers.filter(({ state }) => state === "running").map(({ id }) => id),
    );
    return this.wait(`a pass over ${names}`, () => {
      const last = this.passes.at(-1);
      const decided = new Set(last?.cgroups?.cgroups.map(({ containerId }) => containerId));
      return ids.every((id) => decided.has(id)) ? last : undefined;
    });
  }

  read(path: string, file: string): string {
    const text = this.hierarchy.read(path, file);
    return text.ok ? text.value.trim() : text.error.message;
  }
  /** The output of a pod's container, without the runtime's prefix of each line. */
  log({ namespace, name, uid }: PodRow, container: string): readonly string[] {
    const text = readFileSync(join(this.dir, "logs", `${namespace}_${name}_${uid}`, container, "0.log"), "utf8");
    return text.split("\n").map((line) => line.split(" ").slice(3).join(" "));
  }
  /** The state file that the CPU manager's static policy has written. */
  cpuState(): { readonly defaultCpuSet: string; readonly entries?: Readonly<Record<string, object>> } {
    return JSON.parse(readFileSync(join(this.dir, "state/managers/cpu_manager_state"), "utf8"));
  }
  /** Runs a script in the container; throws if it fails. */
  async exec(id: string, script: string): Promise<void> {
    const { exitCode, stderr } = await must(
      podRuntimeOver(this.containerd.connection).exec(id, ["sh", "-c", script], 60),
    );
    if (exitCode !== 0) throw new Error(`${script}: exit ${exitCode}: ${stderr}`);
  }
  async containers(): Promise<readonly RuntimeContainer[]> {
    const pods = await must(podRuntimeOver(this.containerd.connection).pods());
    return [...pods.values()].flatMap(({ containers }) => containers);
  }
  async sandboxes(): Promise<number> {
    return (await must(podRuntimeOver(this.containerd.connection).pods())).size;
  }
  leftovers(): readonly string[] {
    const cgroups = this.hierarchy.paths().filter((path) => /\/pod[^/]*$/.test(path));
    const folders = ["pods", "logs", "links", "state/pods"].filter((folder) => existsSync(join(this.dir, folder)));
    const files = folders.flatMap((folder) => readdirSync(join(this.dir, folder)).map((name) => join(folder, name)));
    return [...cgroups, ...files, ...mountsBelow(join(this.dir, "pods"))];
  }
}

function configOf(settings: Readonly<Record<string, unknown>>): ActuatorConfig {
  const config = actuatorConfig(settings);
  if (!config.ok) throw new Error(config.error);
  return config.value;
}
