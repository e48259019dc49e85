import { byKey } from "../../base/order.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { decodeGo, type GoType, type GoValue } from "../go/decode.ts";
import { fnv1a } from "../go/fnv1a.ts";
import { type GoJson, parseGoJson } from "../go/json.ts";
import { CORRUPTED, type DataForm, readData, type StateForm } from "../go/state-data.ts";
import {
  type CheckpointFields,
  type CheckpointV2,
  type CheckpointV3,
  type Holder,
  hashedV1,
  hashedV2,
  hashedV3,
} from "./checkpoint.ts";
import { ascending, cpuListReader } from "./sets.ts";

export interface ReadOptions extends StateForm {
  /** Container id -> pod and container; for version 1 files, which use container ids. */
  readonly containers?: ReadonlyMap<string, Holder>;
}
/** The content of a file of any version. */
export interface ReadCheckpoint extends CheckpointV3 {
  /** Pod uid -> container -> the CPUs with which it was admitted; only in version 4. */
  readonly baselines?: ReadonlyMap<string, ReadonlyMap<string, { readonly baseline: string }> | null> | null;
}

const TEXT: GoType = { kind: "string", name: "string" };
const mapOf = (of: GoType, name = `map[string]${of.name}`): GoType => ({ kind: "map", name, keys: "string", of });
const struct = (name: string, fields: Readonly<Record<string, GoType>>): Extract<GoType, { kind: "struct" }> => ({
  kind: "struct",
  name: `state.${name}`,
  fields: { policyName: TEXT, defaultCpuSet: TEXT, ...fields },
});
const CHECKSUM: GoType = { kind: "uint64", name: "checksum.Checksum" };
const PER_CONTAINER = mapOf(mapOf(TEXT));
const V1 = struct("CPUManagerCheckpointV1", { entries: mapOf(TEXT), checksum: CHECKSUM });
const V2 = struct("CPUManagerCheckpointV2", { entries: PER_CONTAINER, checksum: CHECKSUM });
/** Version 2 where it is the newest known version. */
const NEWEST_V2 = struct("CPUManagerCheckpoint", V2.fields);
const POD: GoType = { kind: "struct", name: "state.podEntryJSON", fields: { cpuSet: TEXT }, decodesItself: true };
const WITH_PODS = { entries: PER_CONTAINER, podEntries: mapOf(POD, "state.PodCPUAssignments") };
const V3 = struct("CPUManagerCheckpoint", { ...WITH_PODS, checksum: CHECKSUM });
const BASELINE: GoType = { kind: "struct", name: "state.ContainerCPUs", fields: { baseline: TEXT } };
const DATA = struct("CPUManagerCheckpointData", { ...WITH_PODS, baselines: mapOf(mapOf(BASELINE)) });

interface Decoded<C> {
  readonly fields: C & { readonly checksum: bigint };
  readonly error: string | undefined;
}
const empty = (): GoValue => new Map<string, GoValue>();
const starting = (): { [field: string]: GoValue } => ({ policyName: "", defaultCpuSet: "", entries: empty() });
/** Decodes JSON as a Go type. `C`: the resulting form. */
function decode<C>(json: GoJson, type: GoType): Decoded<C> {
  const start = { ...starting(), podEntries: empty(), baselines: empty(), checksum: 0n };
  const { value, error } = decodeGo(json, type, start);
  return { fields: value as unknown as Decoded<C>["fields"], error };
}

/**
 * Reads a cpu_manager_state of any version that this kubelet reads, and verifies its checksum. Files before version 4
 * do not state their version: the kubelet tries each in turn, and reports what it found wrong with the last.
 */
export function readCheckpoint(text: string, options: ReadOptions): Result<ReadCheckpoint, string> {
  const json = parseGoJson(text);
  if (!json.ok) return json;
  const { stateFiles } = options.profile.behaviour;
  if (stateFiles === "containers") return oldestFirst(json.value, options);
  if (stateFiles === "pods") return upToV3(json.value, options);
  return readData<ReadCheckpoint>(json.value, V4) ?? readOlderVersion(json.value, options);
}

/** kubelet 1.35: restoreState. */
function oldestFirst(json: GoJson, options: ReadOptions): Result<CheckpointV3, string> {
  const first = readV1(json);
  if (first.ok) return byPod(first.value, options);
  const { fields, error } = decode<CheckpointV2>(json, NEWEST_V2);
  if (error !== undefined) return err(error);
  return isSum(fields.checksum, [hashedV2(fields)]) ? ok({ ...fields, podEntries: new Map() }) : err(CORRUPTED);
}

/** kubelet 1.36: loadAndMigrateCheckpointV2, -V3. */
function upToV3(json: GoJson, options: ReadOptions): Result<CheckpointV3, string> {
  let podEntries: CheckpointV3["podEntries"] = new Map();
  if (options.podLevel) {
    const v3 = decodeWithPods(json, V3);
    if (v3.error === undefined && v3.fields.checksum === BigInt(fnv1a(hashedV3(v3.fields)))) return ok(v3.fields);
    // the pods that the first attempt read stay, as in the kubelet
    podEntries = v3.fields.podEntries;
  }
  const v2 = decode<CheckpointV2>(json, V2);
  if (v2.error === undefined && isSumOfV2(v2, options)) return ok({ ...v2.fields, podEntries });
  const v1 = readV1(json);
  if (!v1.ok) return v1;
  const migrated = byPod(v1.value, options);
  return migrated.ok ? ok({ ...migrated.value, podEntries }) : migrated;
}

/**
 * Reads a file without `data`; version 1 is no longer read. kubelet 1.37: loadAndMigrateCheckpointV3,
 * loadCheckpointV2.
 */
function readOlderVersion(json: GoJson, options: ReadOptions): Result<CheckpointV3, string> {
  const { fields, error } = decodeWithPods(json, V3);
  const sums = [hashedV3(fields), hashedV3(fields, "CPUManagerCheckpointV3")].map((text) => BigInt(fnv1a(text)));
  if (error === undefined && sums.includes(fields.checksum)) return ok(fields);
  const v2 = decode<CheckpointV2>(json, V2);
  if (v2.error !== undefined) return err(v2.error);
  return isSumOfV2(v2, options) ? ok({ ...v2.fields, podEntries: new Map() }) : err(CORRUPTED);
}

const V4: DataForm<ReadCheckpoint> = {
  manager: "cpu",
  version: "v4",
  name: "state.CPUManagerCheckpoint",
  older: { name: "CPUManagerCheckpointV2", fields: V2.fields },
  start: starting,
  decode: (json) => decodeWithPods(json, DATA),
};

type V1Fields = CheckpointFields<ReadonlyMap<string, string>>;
function readV1(json: GoJson): Result<V1Fields, string> {
  const { fields, error } = decode<V1Fields>(json, V1);
  if (error !== undefined) return err(error);
  return isSum(fields.checksum, [hashedV1(fields)]) ? ok(fields) : err(CORRUPTED);
}

/** Whether the checksum matches. A file without one predates checksums and is accepted, except in version 3. */
const isSum = (checksum: bigint, texts: readonly string[]): boolean =>
  checksum === 0n || texts.some((text) => checksum === BigInt(fnv1a(text)));
const isSumOfV2 = ({ fields }: Decoded<CheckpointV2>, { podLevel }: ReadOptions): boolean =>
  isSum(fields.checksum, [hashedV2(fields), ...(podLevel ? [] : [hashedV2(fields, "CPUManagerCheckpointV2")])]);

function decodeWithPods(json: GoJson, type: GoType): Decoded<ReadCheckpoint> {
  type Pods = ReadonlyMap<string, { readonly cpuSet: string }> | null;
  const { fields, error } = decode<Omit<ReadCheckpoint, "podEntries"> & { readonly podEntries: Pods }>(json, type);
  const pods = new Map<string, readonly number[]>();
  const read = cpuListReader();
  let fault = error;
  for (const [uid, { cpuSet }] of fields.podEntries ?? []) {
    const cpus = read(cpuSet);
    if (!cpus.ok) fault ??= `failed to parse cpuset: ${cpus.error}`;
    pods.set(uid, cpus.ok ? ascending(cpus.value) : []);
  }
  return { fields: { ...fields, podEntries: fields.podEntries === null ? null : pods }, error: fault };
}

/** kubelet 1.36: migrateV1CheckpointToV2Checkpoint. */
function byPod(
  { entries, ...fields }: V1Fields,
  { profile, containers = new Map() }: ReadOptions,
): Result<CheckpointV3, string> {
  const pods = new Map<string, Map<string, string>>();
  for (const [id, cpus] of [...(entries ?? [])].sort(byKey)) {
    const holder = containers.get(id);
    if (holder === undefined) {
      return err(`${profile.words.cpuStateNotMigrated}: containerID '${id}' not found in initial containers list`);
    }
    const pod = pods.get(holder.uid) ?? new Map<string, string>();
    pods.set(holder.uid, pod.set(holder.container, cpus));
  }
  return ok({ ...fields, entries: pods, podEntries: new Map() });
}
