import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Hierarchy } from "../../../actuator/cgroupfs/hierarchy.ts";
import type { PodRuntime, RuntimeContainer } from "../../../actuator/containerd/cri.ts";
import type { ContainerConfig, SandboxConfig } from "../../../actuator/containerd/messages.ts";
import { openPodRuntime } from "../../../actuator/containerd/pods.ts";
import { removeCgroups } from "./leftovers.ts";
import { must } from "./pods.ts";
import { type Containerd, startContainerd } from "./start.ts";

const CALL_MS = 90_000;
const STATE_MS = 60_000;
/** Without CONTAINER, all containers of a pod share one PID namespace. */
export const NAMESPACES = { network: "NODE", pid: "CONTAINER", ipc: "POD" } as const;
export const APP = "nodewise.test/app:1";

export interface OwnPod {
  readonly sandboxId: string;
  readonly config: SandboxConfig;
  /** The pod's cgroup, relative to the test's own root. */
  readonly cgroup: string;
}
type Made = Partial<Omit<ContainerConfig, "metadata" | "command">> & {
  readonly name: string;
  readonly attempt?: number;
  /** A program of busybox and its arguments. */
  readonly command: readonly string[];
};

/** A containerd with a runnable image, a PodRuntime on top, and a cgroup for each pod below the test's own root. */
export class PodRuntimeFixture {
  readonly containerd: Containerd;
  readonly runtime: PodRuntime;
  readonly hierarchy: Hierarchy;

  private constructor(containerd: Containerd, runtime: PodRuntime, hierarchy: Hierarchy) {
    this.containerd = containerd;
    this.runtime = runtime;
    this.hierarchy = hierarchy;
  }

  static async start(hierarchy: Hierarchy): Promise<PodRuntimeFixture> {
    const containerd = await startContainerd({ images: [{ name: APP, sizeBytes: 4096, base: "busybox" }] });
    const runtime = openPodRuntime({ endpoint: containerd.endpoint, timeoutMs: CALL_MS });
    if (!runtime.ok) throw new Error(runtime.error);
    return new PodRuntimeFixture(containerd, runtime.value, hierarchy);
  }

  async stop(): Promise<void> {
    this.runtime.close();
    await this.containerd.stop();
    removeCgroups(this.hierarchy.root.slice(1));
  }

  /** Creates a pod's cgroup and writes its values before the sandbox starts, as the actuator does. */
  async pod(name: string, files: Readonly<Record<string, string>> = {}): Promise<OwnPod> {
    const cgroup = `/pod-${name}`;
    for (const path of ["/", cgroup]) await done(this.hierarchy.create(path, this.hierarchy.support().controllers));
    for (const [file, value] of Object.entries(files)) await done(this.hierarchy.write(cgroup, file, value));
    const logDirectory = join(this.containerd.podLogs, name);
    mkdirSync(logDirectory, { recursive: true });
    const config: SandboxConfig = {
      metadata: { name, uid: `uid-${name}`, namespace: "shop", attempt: 0 },
      logDirectory,
      labels: { "io.kubernetes.pod.name": name, "io.kubernetes.pod.uid": `uid-${name}` },
      annotations: { "example/of": name },
      linux: { cgroupParent: this.hierarchy.root + cgroup, securityContext: { namespaceOptions: NAMESPACES } },
    };
    return { sandboxId: await must(this.runtime.runSandbox(config)), config, cgroup };
  }

  create(pod: OwnPod, { name, attempt = 0, command, linux, ...more }: Made): Promise<string> {
    mkdirSync(join(pod.config.logDirectory ?? "", name), { recursive: true });
    const securityContext = { namespaceOptions: NAMESPACES, ...linux?.securityContext };
    const config: ContainerConfig = {
      metadata: { name, attempt },
      image: { image: APP },
      command: ["/bin/busybox", ...command],
      logPath: `${name}/${attempt}.log`,
      labels: { ...pod.config.labels, "io.kubernetes.container.name": name },
      ...more,
      linux: { ...linux, securityContext },
    };
    return must(this.runtime.createContainer(pod.sandboxId, config, pod.config));
  }

  async run(pod: OwnPod, made: Made): Promise<string> {
    const id = await this.create(pod, made);
    await must(this.runtime.startContainer(id));
    return id;
  }

  /** The container in the runtime's list of pods; undefined: the list does not contain it. */
  async reportOf(id: string): Promise<RuntimeContainer | undefined> {
    const pods = await must(this.runtime.pods());
    return [...pods.values()].flatMap(({ containers }) => containers).find((container) => container.id === id);
  }

  async ended(id: string): Promise<RuntimeContainer> {
    for (const deadline = Date.now() + STATE_MS; ; await sleep(20)) {
      const reported = await this.reportOf(id);
      if (reported?.state === "exited") return reported;
      if (Date.now() > deadline) throw new Error(`container ${id} is still ${reported?.state}`);
    }
  }

  /** Runs a process in the container and returns its output. */
  async print(id: string, ...command: readonly string[]): Promise<string> {
    const { stdout, stderr, exitCode } = await must(this.runtime.exec(id, ["/bin/busybox", ...command], 60));
    return exitCode === 0 ? stdout.trimEnd() : `exit ${exitCode}: ${stderr.trimEnd()}`;
  }

  /** The content of a file of a pod's cgroup. */
  file(path: string, name: string): string {
    const text = this.hierarchy.read(path, name);
    return text.ok ? text.value : text.error.message;
  }
}

async function done(asked: ReturnType<Hierarchy["create"]>): Promise<void> {
  const answer = await asked;
  if (!answer.ok) throw new Error(`${answer.error.path}: ${answer.error.message}`);
}
