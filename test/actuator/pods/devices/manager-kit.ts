import { join } from "node:path";
import { onTestFinished } from "vitest";
import { decideLocally } from "../../../../actuator/client/local-client.ts";
import type { RunnablePod } from "../../../../actuator/lifecycle/pod.ts";
import type { DeviceManager } from "../../../../actuator/pods/devices/device-manager.ts";
import { type DeviceManagerOptions, openDeviceManager } from "../../../../actuator/pods/devices/device-manager.ts";
import { readDeviceHistory } from "../../../../actuator/pods/devices/history.ts";
import {
  ManagerFiles,
  persistDeviceCheckpoint,
  readDeviceCheckpoint,
} from "../../../../actuator/pods/devices/manager-files.ts";
import { type PodClock, systemClock } from "../../../../actuator/pods/pod-clock.ts";
import type { DeviceCheckpoint, PodDevicesEntry } from "../../../../api/decide/devices/checkpoint.ts";
import type { PreferredAllocationRequest } from "../../../../api/decide/devices/preferred.ts";
import type { DevicesDecision } from "../../../../api/model/devices.ts";
import { scratchFolder } from "../../../kit/scratch.ts";
import { NodePlugin, type PluginScript, until } from "../../deviceplugin/node-plugin.ts";

export const GPU = "example.com/gpu";
export const NIC = "example.com/nic";
/** Container `app` requests one GPU. */
export const ONE = { app: { [GPU]: 1 } };
export const BOOT = "6f1c2f0e-0000-4000-8000-000000000001";
/** A v1beta1.ContainerAllocateResponse with the variable A=1. */
export const ANSWER = Buffer.from([0x0a, 6, 0x0a, 1, 0x41, 0x12, 1, 0x31]).toString("base64");
/** Long enough for a busy machine; tests of hanging calls use shorter timeouts. */
const PATIENT = { dialMs: 20_000, optionsMs: 20_000, preferredMs: 20_000, allocateMs: 20_000, preStartMs: 20_000 };

export const entry = (
  podUid: string,
  ids: readonly string[],
  allocResp: string | null = null,
  containerName = "app",
  resourceName = GPU,
): PodDevicesEntry => ({ podUid, containerName, resourceName, deviceIds: new Map([[-1, ids]]), allocResp });

/** A clock that a test can set forward. */
export class SettableClock implements PodClock {
  aheadMs = 0;
  nowMs = (): number => Date.now() + this.aheadMs;
  monotonicMs = (): number => performance.now() + this.aheadMs;
  sleep = systemClock.sleep;
}

export interface Node {
  readonly dir: string;
  readonly stateDir: string;
  readonly clock: SettableClock;
  readonly problems: string[];
  manager: DeviceManager;
  files: ManagerFiles;
  plugin(script: Omit<PluginScript, "dir">): NodePlugin;
  /** Closes the daemon, and starts another one on its files. */
  restart(options?: Partial<DeviceManagerOptions>): Promise<void>;
}

/** A daemon's devices in its own directories, over a real host; `before` runs before the first start. */
export async function nodeWith(
  options: Partial<DeviceManagerOptions> = {},
  before: (files: ManagerFiles) => unknown = () => undefined,
): Promise<Node> {
  const [dir, stateDir] = [scratchFolder(), scratchFolder()];
  const clock = new SettableClock();
  const problems: string[] = [];
  before(new ManagerFiles(join(stateDir, "managers")));
  const open = async (more: Partial<DeviceManagerOptions>) => {
    const files = new ManagerFiles(join(stateDir, "managers"));
    const opened = await openDeviceManager({
      pluginDir: dir,
      registryDir: null,
      stateDir,
      files,
      clock,
      bootId: BOOT,
      waitMs: 300_000,
      timeouts: PATIENT,
      onProblem: ({ message }) => problems.push(message),
      ...options,
      ...more,
    });
    if (!opened.ok) throw new Error(opened.error);
    onTestFinished(() => opened.value.close());
    return { files, manager: opened.value };
  };
  const node: Node = {
    dir,
    stateDir,
    clock,
    problems,
    ...(await open({})),
    plugin: (script) => {
      const made = new NodePlugin({ dir, ...script });
      onTestFinished(() => made.vanish());
      return made;
    },
    restart: async (more = {}) => {
      node.manager.close();
      Object.assign(node, await open(more));
    },
  };
  return node;
}

/** Registers a plugin, and waits until its devices are known. */
export async function joined(node: Node, script: Omit<PluginScript, "dir">): Promise<NodePlugin> {
  const plugin = node.plugin(script);
  await plugin.start();
  await ready(node, script.resource);
  return plugin;
}
export const ready = (node: Node, resource: string) =>
  until(
    () => node.manager.host.states().find((state) => state.resource === resource),
    (state) => state?.state === "registered" && state.listed,
    20_000,
  );

export function checkpointIn(files: ManagerFiles): DeviceCheckpoint {
  const read = readDeviceCheckpoint(files);
  if (!read.ok) throw new Error(read.error.message);
  return read.value ?? { entries: null, registered: null };
}
/** Changes the allocated devices, as a decision would. */
export function hold(files: ManagerFiles, ...entries: readonly PodDevicesEntry[]): void {
  const now = checkpointIn(files);
  const kept = persistDeviceCheckpoint(files, { ...now, entries: [...(now.entries ?? []), ...entries] });
  if (!kept.ok) throw new Error(kept.error);
}
export const messages = ({ manager }: Pick<Node, "manager">) => manager.problems().map(({ message }) => message);
export const entriesIn = ({ files }: Pick<Node, "files">) => checkpointIn(files).entries ?? [];
export const historyOf = ({ stateDir }: Pick<Node, "stateDir">, limit = 1000) => {
  const read = readDeviceHistory(stateDir, { limit });
  if (!read.ok) throw new Error(read.error);
  return read.value.toReversed();
};

/** The core's own answer about a pod, requested as the daemon does. */
export function decided(node: Node, asking: RunnablePod, living: readonly RunnablePod[] = []) {
  const snapshot = {
    ...node.manager.snapshot(asking.uid),
    observedAt: new Date(node.clock.nowMs()).toISOString(),
    pods: living.map(({ object }) => object),
    assignments: node.files.redacted().assignments,
  };
  const answer = decideLocally("devices", snapshot, { ask: { pod: asking.object } });
  if (!answer.ok) throw new Error(answer.error.message);
  const { unanswered, refusal } = answer.value.decision as DevicesDecision;
  return { unanswered: unanswered as readonly PreferredAllocationRequest[], refusal, next: answer.value.next };
}
/** Admits a pod as the daemon does. */
export function letIn(node: Node, asking: RunnablePod, living: readonly RunnablePod[] = []): void {
  const { refusal, next } = decided(node, asking, living);
  if (refusal !== null) throw new Error(refusal.message);
  const kept = node.files.persist(node.manager.withResponses(next));
  if (!kept.ok) throw new Error(kept.error);
}
export const RUNNING = new AbortController().signal;
