import { err, ok, type Result } from "../../api/base/result.ts";
import { profileOf } from "../../api/profiles/index.ts";
import type { RuntimeLists } from "../containerd/cri.ts";
import { faultText, kubeletText } from "../containerd/fault.ts";
import type { ImageFileSystems } from "../containerd/file-systems.ts";
import type { ObservedLogs } from "../containerd/logs.ts";
import type { ActuatorConfig } from "../core/config.ts";
import type { Problem } from "../core/interfaces.ts";
import type { Moment } from "../core/pass-clock.ts";
import { driverOf, snapshotOf } from "../pass/snapshot.ts";
import type { GcDeps } from "./dependencies.ts";
import type { Space } from "./journal.ts";

export type ObserveSettings = Pick<ActuatorConfig, "nodeName" | "cgroupMount" | "kubeletVersion"> & {
  /** The kubelet's flags for dead containers, as a snapshot has them. */
  readonly flags: Readonly<Record<string, number>>;
};
export type ObserveDeps = Omit<GcDeps, "client" | "journal">;
/** One listing of the runtime, with pods, logs, disks and configuration at the same moment. */
export interface NodeObservation {
  readonly at: string;
  readonly moment: Moment;
  readonly snapshot: Readonly<Record<string, unknown>>;
  readonly lists: RuntimeLists;
  readonly pods: readonly unknown[];
  /** Id of a container or sandbox -> its creation time, in the runtime's own text. */
  readonly createdAt: ReadonlyMap<string, string>;
  readonly sandboxOf: ReadonlyMap<string, string>;
  /** Uids of pods with a sandbox that is ready or a container that runs. */
  readonly livingPods: ReadonlySet<string>;
  /** The images' file system; null: it could not be measured. */
  readonly space: Space | null;
  readonly notices: readonly Problem[];
}

/** A runtime that lists nothing: a snapshot without lists, and its answer as the kubelet prints it. */
export type FailedListing = Pick<NodeObservation, "at" | "moment" | "snapshot"> & { readonly error: string };
/** Why an observation failed. */
interface ObserveFault extends Problem {
  readonly unlisted?: FailedListing;
}

/** Observes the runtime once. Errors: the runtime or the configuration cannot be read; lesser faults are in `notices`. */
export async function observeNode(
  deps: ObserveDeps,
  settings: ObserveSettings,
  sequence: number,
): Promise<Result<NodeObservation, ObserveFault>> {
  const configuration = await deps.readConfiguration();
  if (!configuration.ok) return configuration;
  const read = await deps.readPods();
  const listed = await deps.runtime.list();
  const machine = deps.observeMachine();
  const moment = deps.clock.now(Date.parse(machine.observedAt), machine.system.bootID ?? "");
  // INVARIANT: a pod that could not be read never counts as removed
  const kubelet = { sourcesReady: read.pods !== null && read.whole, ...settings.flags };
  const profile = profileOf(settings.kubeletVersion);
  const snapshotWith = (runtime?: RuntimeLists): Readonly<Record<string, unknown>> => ({
    ...snapshotOf({
      machine,
      profile,
      kubeletConfiguration: configuration.value,
      pods: read.pods ?? [],
      cgroup: { driver: driverOf(configuration.value, profile), root: settings.cgroupMount },
      nodeName: settings.nodeName,
      sequence,
      runtime,
    }),
    ...deps.clock.snapshotFields(moment),
    kubelet,
  });
  const at = machine.observedAt;
  if (!listed.ok) {
    const unlisted = { at, moment, snapshot: snapshotWith(), error: kubeletText(listed.error) };
    return err({ from: "runtime", message: faultText(listed.error), unlisted });
  }
  const logs = deps.logs.observe();
  const disks = deps.observeDisks(listed.value);
  const lists = withLogs(listed.value, logs);
  const snapshot = snapshotWith(lists);
  return ok({
    at,
    moment,
    snapshot: { ...snapshot, stats: statsWith(snapshot["stats"], disks) },
    lists,
    pods: read.pods ?? [],
    ...idsOf(lists),
    space: spaceOf(disks),
    notices: [
      ...read.problems,
      ...read.notices,
      ...logs.missing.map(({ path, why }) => ({ from: "logs" as const, message: `${path}: ${why}` })),
      ...disks.missing.map(({ path, why }) => ({ from: "machine" as const, message: `${path}: ${why}` })),
    ],
  });
}

function withLogs(lists: RuntimeLists, { podLogDirectories, danglingLogLinks }: ObservedLogs): RuntimeLists {
  return {
    ...lists,
    ...(podLogDirectories === undefined ? {} : { podLogDirectories }),
    ...(danglingLogLinks === undefined ? {} : { danglingLogLinks }),
  };
}

/** The Summary with the runtime's disks, which the machine does not know. */
function statsWith(stats: unknown, { imageFs, containerFs, fileSystems }: ImageFileSystems): unknown {
  const summary = stats as { readonly node?: object };
  const runtime = {
    ...(imageFs === undefined ? {} : { imageFs }),
    ...(containerFs === undefined ? {} : { containerFs }),
  };
  return { ...summary, node: { ...summary.node, runtime, ...(fileSystems === undefined ? {} : { fileSystems }) } };
}

/** The space of the file system that the images lie on. */
export const spaceOf = ({ imageFs }: ImageFileSystems): Space | null =>
  imageFs === undefined ? null : { capacityBytes: imageFs.capacityBytes, availableBytes: imageFs.availableBytes };

interface Listed {
  readonly id: string;
  readonly createdAt: string | number;
  readonly state: string;
}
type ListedContainer = Listed & { readonly podSandboxId?: string };
type ListedSandbox = Listed & { readonly metadata: { readonly uid: string } };
function idsOf(lists: RuntimeLists): Pick<NodeObservation, "createdAt" | "sandboxOf" | "livingPods"> {
  const containers = (lists["containers"] ?? []) as readonly ListedContainer[];
  const sandboxes = (lists["sandboxes"] ?? []) as readonly ListedSandbox[];
  const running = new Set(containers.flatMap((c) => (c.state === "CONTAINER_RUNNING" ? [c.podSandboxId] : [])));
  const living = sandboxes.filter(({ id, state }) => state === "SANDBOX_READY" || running.has(id));
  return {
    createdAt: new Map([...containers, ...sandboxes].map(({ id, createdAt }) => [id, String(createdAt)])),
    sandboxOf: new Map(containers.map(({ id, podSandboxId }) => [id, podSandboxId ?? ""])),
    livingPods: new Set(living.map(({ metadata }) => metadata.uid)),
  };
}
