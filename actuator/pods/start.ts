import { join } from "node:path";
import type { CgroupValues } from "../../api/model/decision.ts";
import type { DeviceOptions } from "../../api/model/device-decision.ts";
import type { Result } from "../../api/model/result.ts";
import type { ContainerConfig, SandboxConfig } from "../containerd/messages.ts";
import { containerConfigOf } from "../lifecycle/config/container-config.ts";
import { withDeviceEnv } from "../lifecycle/config/device-parts.ts";
import { restartGrace } from "../lifecycle/ending.ts";
import { podAddresses, resolveEnv } from "../lifecycle/env.ts";
import type { PodContainer } from "../lifecycle/pod.ts";
import { containerDevices } from "./container-devices.ts";
import { makeLogDirectory } from "./container-logs.ts";
import type { DeviceHands } from "./devices/port.ts";
import { runHook } from "./hooks.ts";
import type { ContainerFault, Images } from "./images.ts";
import type { LogLinks } from "./log-link.ts";
import type { Mounter } from "./mounter.ts";
import { mountsOf } from "./mounts.ts";
import type { PodNode } from "./pod-node.ts";
import type { LocalImage } from "./ports.ts";
import { stopContainer } from "./stop.ts";
import type { Turn } from "./turn.ts";

export interface StartTurn extends Turn {
  readonly images: Images;
  readonly mounter: Mounter;
  /** Undefined: this daemon serves no device plugins. */
  readonly devices: DeviceHands | undefined;
  readonly logLinks: LogLinks | undefined;
  readonly owner: string;
  readonly node: PodNode;
  /** The sandbox that it is started in. */
  readonly sandboxId: string;
  readonly sandboxConfig: SandboxConfig;
  /** The sandbox's; none on the host's network. */
  readonly podIps: readonly string[];
}
export interface StartAsked {
  readonly container: PodContainer;
  /** Its restart count. */
  readonly attempt: number;
  /** Asked right before it is made, since pulling its image may take long; null: not decided. */
  readonly values: () => CgroupValues | null;
}

/** The turn was cut short between two steps. */
export type Started = ContainerFault | "started" | "cut" | "undecided";

/**
 * Starts a container: image, devices, configuration, create, start, postStart hook. Tells the kubelet's events. What comes back is
 * why it does not run, for its status. kubelet 1.36: startContainer.
 */
export async function startContainer(turn: StartTurn, asked: StartAsked): Promise<Started> {
  const { pod, runtime, events, images, signal, sandboxId, sandboxConfig } = turn;
  const { name } = asked.container;
  const failed = (reason: string, message: string, id = ""): ContainerFault => {
    // a container's id in a message would make each event another one
    const said = id === "" ? message : message.replaceAll(id, name);
    events.warning("Failed", `Error: ${said}`, name);
    return { reason, message };
  };
  const image = await images.ensure(pod.uid, asked.container, events);
  if (!image.ok) {
    events.warning("Failed", `Error: ${image.error.reason}`, name);
    return image.error;
  }
  if (signal.aborted) return "cut";
  const values = asked.values();
  if (values === null) return "undecided";
  const devices = await containerDevices(turn.devices, pod, asked.container);
  if (!devices.ok) return failed(devices.error.reason, devices.error.message);
  if (signal.aborted) return "cut";
  const config = await configOf(turn, { ...asked, values, devices: devices.value }, image.value);
  if (!config.ok) return failed("CreateContainerConfigError", config.error);
  if (signal.aborted) return "cut";
  const created = await runtime.createContainer(sandboxId, config.value, sandboxConfig);
  if (!created.ok) return failed("CreateContainerError", created.error.message);
  const id = created.value;
  events.normal("Created", "Container created", name);
  if (signal.aborted) return "cut";
  const started = await runtime.startContainer(id);
  if (!started.ok) return failed("RunContainerError", started.error.message, id);
  events.normal("Started", "Container started", name);
  turn.logLinks?.link({
    pod,
    container: name,
    id,
    log: join(sandboxConfig.logDirectory ?? "", config.value.logPath ?? ""),
  });
  return afterStart(turn, asked.container, id);
}

async function configOf(
  turn: StartTurn,
  asked: Pick<StartAsked, "container" | "attempt"> & {
    readonly values: CgroupValues;
    readonly devices: DeviceOptions | null;
  },
  image: LocalImage,
): Promise<Result<ContainerConfig, string>> {
  const { pod, places, podIps, mounter, owner, node } = turn;
  const { container, attempt, values, devices } = asked;
  const { hostIPs, allocatable, clusterDomain, cgroupVersion, security } = node;
  const own = resolveEnv(container, pod, { hostIPs, podIPs: podIps, allocatable });
  if (!own.ok) return own;
  const env = withDeviceEnv(devices, own.value);
  const ips = podAddresses(pod, { hostIPs, podIPs: podIps });
  const mounts = await mountsOf({ pod, container, attempt, places, podIps: ips, env, clusterDomain }, mounter);
  if (!mounts.ok) return mounts;
  const logs = makeLogDirectory(places, container.name);
  if (!logs.ok) return logs;
  return containerConfigOf(pod, container, {
    owner,
    attempt,
    image: image.id,
    imageUser: image.user,
    env,
    mounts: mounts.value,
    devices,
    resources: values,
    version: cgroupVersion,
    security,
  });
}

/** A container whose hook fails is killed; the event tells no more, since a hook may print secrets. */
async function afterStart(turn: StartTurn, { name, postStart, preStop }: PodContainer, id: string): Promise<Started> {
  if (postStart === null) return "started";
  const { pod, runtime, events, clock, signal } = turn;
  const container = { id, name };
  const podIps = podAddresses(pod, { hostIPs: turn.node.hostIPs, podIPs: turn.podIps });
  const ran = await runHook({ handler: postStart, pod, container, podIps, timeoutSeconds: 0 }, runtime, clock, signal);
  if (ran.ok) return "started";
  if (signal.aborted) return "cut";
  events.warning("FailedPostStartHook", "PostStartHook failed", name);
  const stop = { containerId: id, name, message: "FailedPostStartHook", waitsFor: [], preStop };
  await stopContainer({ ...turn, podIps }, stop, restartGrace(pod));
  return { reason: "PostStartHookError", message: ran.error };
}
