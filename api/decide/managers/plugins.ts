import type { Snapshot } from "../../model/snapshot.ts";
import { type EpochMs, epochMs } from "../../model/units.ts";
import type { DeviceCheckpoint } from "../devices/checkpoint.ts";
import { readCheckpoint } from "../devices/checkpoint-read.ts";
import { type DeviceResource, type Inventories, inventoriesOf } from "../devices/inventory.ts";
import { type PreferredAllocation, recordedAnswers } from "../devices/preferred.ts";

/** Devices and plugins of a snapshot, together by resource, in the order of the names. */
export function deviceResources({ devices = [], devicePlugins = [] }: Snapshot): readonly DeviceResource[] {
  const listed = Map.groupBy(devices, ({ resource }) => resource);
  const plugins = new Map(devicePlugins.map((plugin) => [plugin.resource, plugin]));
  return [...new Set([...listed.keys(), ...plugins.keys()])].sort().map((resource) => {
    const plugin = plugins.get(resource);
    const state = plugin && {
      registered: plugin.registered ?? true,
      stoppedAt: timeOf(plugin.stoppedAt),
      options: plugin.options,
    };
    return { resource, devices: listed.get(resource) ?? [], plugin: state };
  });
}
const timeOf = (time: string | undefined): EpochMs | undefined =>
  time === undefined ? undefined : epochMs(Date.parse(time));

/** What the kubelet knows of the node's plugins at the time of the snapshot; without one nothing has grown old. */
export function pluginsOf(snapshot: Snapshot, checkpoint: DeviceCheckpoint | undefined, needs: string[]): Inventories {
  const now = timeOf(snapshot.observedAt);
  const isStopped = (snapshot.devicePlugins ?? []).some(({ stoppedAt }) => stoppedAt !== undefined);
  if (isStopped && now === undefined) needs.push("observedAt");
  return inventoriesOf({
    resources: deviceResources(snapshot),
    checkpointed: checkpoint?.registered?.keys() ?? [],
    now: now ?? epochMs(0),
    kubeletStartedAt: timeOf(snapshot.kubelet?.startedAt),
  });
}

export const answersOf = ({ devicePlugins = [] }: Snapshot): PreferredAllocation =>
  recordedAnswers(
    devicePlugins.flatMap(({ resource, preferred = [] }) =>
      preferred.map((answered) => ({ ...answered, resource, mustInclude: answered.mustInclude ?? [] })),
    ),
  );

/** What kubelet_internal_checkpoint holds, or why it was not taken; neither: there is none. */
export interface KeptCheckpoint {
  readonly value: DeviceCheckpoint | undefined;
  readonly error: string | null;
}
export function checkpointOf({ assignments }: Snapshot): KeptCheckpoint {
  const file = assignments?.kubelet_internal_checkpoint;
  if (file === undefined) return { value: undefined, error: null };
  const read = readCheckpoint(file);
  return read.ok ? { value: read.value, error: null } : { value: undefined, error: read.error.message };
}
