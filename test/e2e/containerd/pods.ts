import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Connection } from "../../../actuator/containerd/connection.ts";
import type { RuntimeResult } from "../../../actuator/containerd/cri.ts";
import { faultText } from "../../../actuator/containerd/fault.ts";
import type { SandboxConfig } from "../../../actuator/containerd/messages.ts";

const EXIT_MS = 60_000;

export interface PodSpec {
  readonly name: string;
  readonly uid: string;
  readonly namespace?: string;
  /** The attempt number of the sandbox. */
  readonly attempt?: number;
}
export interface ContainerSpec {
  readonly name?: string;
  readonly attempt?: number;
  readonly image: string;
  readonly command?: readonly string[];
}
export interface Pod {
  readonly sandboxId: string;
  readonly config: SandboxConfig;
}
export interface PodFixture {
  readonly connection: Connection;
  readonly cgroupParent: string;
  readonly podLogs: string;
  readonly containerLogs: string;
}

/** The result of a call; throws if the call fails. */
export async function must<T>(asked: RuntimeResult<T>): Promise<T> {
  const answer = await asked;
  if (!answer.ok) throw new Error(faultText(answer.error));
  return answer.value;
}

/** Runs a sandbox on the host network, with the labels and the log directory that a kubelet sets. */
export async function runSandbox(ground: PodFixture, spec: PodSpec): Promise<Pod> {
  const { name, uid, namespace = "default", attempt = 0 } = spec;
  const logDirectory = join(ground.podLogs, `${namespace}_${name}_${uid}`);
  mkdirSync(logDirectory, { recursive: true });
  const config: SandboxConfig = {
    metadata: { name, uid, namespace, attempt },
    logDirectory,
    labels: { "io.kubernetes.pod.name": name, "io.kubernetes.pod.namespace": namespace, "io.kubernetes.pod.uid": uid },
    linux: { cgroupParent: ground.cgroupParent, securityContext: { namespaceOptions: { network: "NODE" } } },
  };
  const { podSandboxId } = await must(ground.connection.call("RunPodSandbox", { config }));
  return { sandboxId: podSandboxId, config };
}

/** Starts a container and links its log as a kubelet does. */
export async function runContainer(
  ground: PodFixture,
  { sandboxId, config }: Pod,
  spec: ContainerSpec,
): Promise<string> {
  const { name = "app", attempt = 0, image, command = ["/bin/busybox", "sleep", "1000000"] } = spec;
  const logPath = `${name}/${attempt}.log`;
  const logDirectory = config.logDirectory ?? "";
  mkdirSync(join(logDirectory, name), { recursive: true });
  const { containerId } = await must(
    ground.connection.call("CreateContainer", {
      podSandboxId: sandboxId,
      sandboxConfig: config,
      config: {
        metadata: { name, attempt },
        image: { image },
        command,
        logPath,
        labels: { ...config.labels, "io.kubernetes.container.name": name },
        linux: { securityContext: { namespaceOptions: { network: "NODE" } } },
      },
    }),
  );
  await must(ground.connection.call("StartContainer", { containerId }));
  const link = `${config.metadata.name}_${config.metadata.namespace}_${name}-${containerId}.log`;
  symlinkSync(join(logDirectory, logPath), join(ground.containerLogs, link));
  return containerId;
}

/** Waits until the container's process has exited. */
export async function exited(connection: Connection, containerId: string): Promise<void> {
  for (const deadline = Date.now() + EXIT_MS; ; await sleep(20)) {
    const { status } = await must(connection.call("ContainerStatus", { containerId }));
    if (status?.state === "CONTAINER_EXITED") return;
    if (Date.now() > deadline) throw new Error(`container ${containerId} is still ${status?.state}`);
  }
}
