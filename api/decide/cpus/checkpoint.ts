import { byKey } from "../../base/order.ts";
import { formatCpuSet } from "../../model/cpu-set.ts";
import { fnv1a } from "../go/fnv1a.ts";
import { jsonText } from "../go/json.ts";
import { mapDump, mapJson } from "../go/maps.ts";
import { type StateForm, withData } from "../go/state-data.ts";
import { ascending, type CpuSet, common, cpuText } from "./sets.ts";

type Entries = ReadonlyMap<string, ReadonlyMap<string, string> | null>;

/**
 * The fields of a cpu_manager_state, with CPUs as the file writes them. Null is Go's nil, which has another checksum
 * than an empty map.
 */
export interface CheckpointFields<E> {
  readonly policyName: string;
  readonly defaultCpuSet: string;
  readonly entries: E | null;
}
/** Pod uid -> container -> CPUs. */
export type CheckpointV2 = CheckpointFields<Entries>;

/**
 * Writes cpu_manager_state as the kubelet does: version 2; version 3 if pods as a whole have CPUs; or version 4, which
 * is version 2 followed by the whole data. kubelet 1.37: storeState, MarshalCheckpoint.
 */
export function writeCpuState(policyName: string, state: CpuState, form: StateForm): string {
  const { stateFiles } = form.profile.behaviour;
  const checkpoint = checkpointOf(policyName, state);
  const podEntries = new Map(
    form.podLevel ? Array.from(state.podCpus, ([uid, cpus]) => [uid, ascending(cpus)] as const) : [],
  );
  const fields = fieldsText(checkpoint);
  if (stateFiles === "pods" && form.podLevel) {
    return `{${fields}${podsText(podEntries)},"checksum":${fnv1a(hashedV3({ ...checkpoint, podEntries }))}}`;
  }
  const older = `{${fields},"checksum":${fnv1a(hashedV2(checkpoint))}}`;
  if (stateFiles !== "data") return older;
  return withData(older, `{${fields}${podsText(podEntries)}${form.exclusiveResize ? baselinesText(checkpoint) : ""}}`);
}
const fieldsText = ({ policyName, defaultCpuSet, entries }: CheckpointV2): string =>
  `"policyName":${jsonText(policyName)},"defaultCpuSet":${jsonText(defaultCpuSet)}` +
  mapText("entries", entries, (containers) => mapJson(containers ?? new Map(), jsonText));
const podsText = (podEntries: ReadonlyMap<string, readonly number[]>): string =>
  mapText("podEntries", podEntries, (cpus) =>
    cpus.length === 0 ? "{}" : `{"cpuSet":${jsonText(formatCpuSet(cpus))}}`,
  );
/**
 * The CPUs with which containers were admitted; they never differ from the current ones, as this policy does not
 * resize CPUs.
 */
const baselinesText = ({ entries }: CheckpointV2): string =>
  mapText("baselines", entries, (containers) =>
    mapJson(containers ?? new Map(), (cpus) => `{"baseline":${jsonText(cpus)}}`),
  );
const mapText = <V>(name: string, map: ReadonlyMap<string, V> | null, show: (value: V) => string): string =>
  map === null || map.size === 0 ? "" : `,"${name}":${mapJson(map, show)}`;

/** The state in the form of version 2. */
export const checkpointOf = (policyName: string, { defaultCpus, assignments }: CpuState): CheckpointV2 => ({
  policyName,
  defaultCpuSet: cpuText(defaultCpus),
  entries: new Map(
    Array.from(assignments, ([uid, containers]) => [
      uid,
      new Map(Array.from(containers, ([name, cpus]) => [name, cpuText(cpus)] as const)),
    ]),
  ),
});

/**
 * Builds the text that version 2's checksum is computed from: the Go value as spew prints it for hashing, with sorted
 * maps.
 */
export const hashedV2 = (checkpoint: CheckpointV2, type = "CPUManagerCheckpoint"): string =>
  hashed(type, checkpoint, `(map[string]map[string]string)${mapDump(checkpoint.entries, (c) => mapDump(c, asIs))}`);

/** The hashed text of version 1, which uses container ids as keys. */
export const hashedV1 = (checkpoint: CheckpointFields<ReadonlyMap<string, string>>): string =>
  hashed("CPUManagerCheckpoint", checkpoint, `(map[string]string)${mapDump(checkpoint.entries, asIs)}`);

export interface CheckpointV3 extends CheckpointV2 {
  /** Pod uid -> its CPUs. */
  readonly podEntries: ReadonlyMap<string, readonly number[]> | null;
}
/** The hashed text of version 3, which also has the CPUs of pods as a whole. */
export function hashedV3({ podEntries, ...checkpoint }: CheckpointV3, type = "CPUManagerCheckpoint"): string {
  const cpus = (list: readonly number[]) => list.map((cpu) => `${cpu}:{}`).join(" ");
  const pods = mapDump(podEntries, (list) => `{CPUSet:(cpuset.CPUSet){elems:(map[int]struct {})map[${cpus(list)}]}}`);
  const entries = `(map[string]map[string]string)${mapDump(checkpoint.entries, (c) => mapDump(c, asIs))}`;
  return hashed(type, checkpoint, `${entries} PodEntries:(state.PodCPUAssignments)${pods}`);
}

const hashed = (type: string, { policyName, defaultCpuSet }: CheckpointFields<unknown>, entries: string): string =>
  `(*state.${type}){PolicyName:(string)${policyName} DefaultCPUSet:(string)${defaultCpuSet} ` +
  `Entries:${entries} Checksum:(checksum.Checksum)0}`;

const asIs = (text: string): string => text;
/** Pod uid -> container -> its own CPUs. */
export type CpuAssignments = ReadonlyMap<string, ReadonlyMap<string, CpuSet>>;

/** The state of the CPU manager. kubelet 1.36: state.State. */
export interface CpuState {
  /** The shared pool including the reserved CPUs; empty: not known yet. */
  readonly defaultCpus: CpuSet;
  readonly assignments: CpuAssignments;
  /** Pod uid -> CPUs of the pod as a whole; only with the gate PodLevelResourceManagers. */
  readonly podCpus: ReadonlyMap<string, CpuSet>;
}

/** CPUs that containers of two pods both hold exclusively; the kubelet accepts such a state silently. */
interface SharedCpus {
  readonly cpus: CpuSet;
  readonly holders: readonly [Holder, Holder];
}
export interface Holder {
  readonly uid: string;
  readonly container: string;
}
/**
 * Finds CPUs that containers of different pods hold, in the order of uids and names. Containers of one pod may share,
 * since an init container leaves its CPUs to later containers.
 */
export function sharedCpus(assignments: CpuAssignments): readonly SharedCpus[] {
  const first = new Map<number, Holder>();
  const shared = new Map<string, SharedCpus>();
  for (const [uid, containers] of [...assignments].sort(byKey)) {
    for (const [container, cpus] of [...containers].sort(byKey)) {
      for (const cpu of cpus) {
        const holder = first.get(cpu);
        if (holder === undefined) first.set(cpu, { uid, container });
        else if (holder.uid !== uid) {
          const other = assignments.get(holder.uid)?.get(holder.container) ?? cpus;
          const key = JSON.stringify([holder.uid, holder.container, uid, container]);
          shared.set(key, { cpus: common(other, cpus), holders: [holder, { uid, container }] });
        }
      }
    }
  }
  return [...shared.values()];
}
