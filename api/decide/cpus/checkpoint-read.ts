import { err, ok, type Result } from "../../model/result.ts";
import { fnv1a } from "../go/checksum.ts";
import { decodeGo, type GoType, type GoValue } from "../go/decode.ts";
import { type GoJson, parseGoJson } from "../go/json.ts";
import {
  type CheckpointFields,
  type CheckpointV2,
  type CheckpointV3,
  hashedV1,
  hashedV2,
  hashedV3,
} from "./checkpoint.ts";
import { cpuListReader } from "./go-cpu-set.ts";
import { ascending } from "./sets.ts";
import { type Holder, sorted } from "./state.ts";

export interface ReadOptions {
  /** Container id -> whose it is, for files of version 1, which know containers by their ids. */
  readonly containers?: ReadonlyMap<string, Holder>;
  /** The gate PodLevelResourceManagers, without which version 3 is not read. */
  readonly podLevelManagers?: boolean;
}

const TEXT: GoType = { kind: "string", name: "string" };
const mapOf = (of: GoType, name = `map[string]${of.name}`): GoType => ({ kind: "map", name, keys: "string", of });
const POD: GoType = { kind: "struct", name: "state.PodEntry", fields: { cpuSet: TEXT } };
const version = (name: string, maps: Readonly<Record<string, GoType>>): GoType => ({
  kind: "struct",
  name: `state.${name}`,
  fields: {
    policyName: TEXT,
    defaultCpuSet: TEXT,
    ...maps,
    checksum: { kind: "uint64", name: "checksum.Checksum" },
  },
});
const PER_CONTAINER = mapOf(mapOf(TEXT));
const V1 = version("CPUManagerCheckpointV1", { entries: mapOf(TEXT) });
const V2 = version("CPUManagerCheckpointV2", { entries: PER_CONTAINER });
const V3 = version("CPUManagerCheckpoint", {
  entries: PER_CONTAINER,
  podEntries: mapOf(POD, "state.PodCPUAssignments"),
});

interface Decoded<C> {
  readonly fields: C & { readonly checksum: bigint };
  readonly error: string | undefined;
}
/** `C`: the form of what `type` decodes to. */
function decode<C>(json: GoJson, type: GoType): Decoded<C> {
  const empty = (): GoValue => new Map<string, GoValue>();
  const start = { policyName: "", defaultCpuSet: "", entries: empty(), podEntries: empty(), checksum: 0n };
  const { value, error } = decodeGo(json, type, start);
  return { fields: value as unknown as Decoded<C>["fields"], error };
}

/**
 * The text of a cpu_manager_state of any version, its checksum verified. A version is not written down: the kubelet tries
 * one after the other, and says what it found wrong with the oldest. kubelet 1.36: loadAndMigrateCheckpointV2, -V3.
 */
export function readCheckpoint(text: string, options: ReadOptions): Result<CheckpointV3, string> {
  const json = parseGoJson(text);
  if (!json.ok) return json;
  let podEntries: CheckpointV3["podEntries"] = new Map();
  if (options.podLevelManagers === true) {
    const v3 = decodeV3(json.value);
    if (v3.error === undefined && v3.fields.checksum === BigInt(fnv1a(hashedV3(v3.fields)))) return ok(v3.fields);
    // what the first try has read of the pods stays
    podEntries = v3.fields.podEntries;
  }
  const v2 = decode<CheckpointV2>(json.value, V2);
  if (v2.error === undefined && isSumOfV2(v2, options)) return ok({ ...v2.fields, podEntries });
  const v1 = decode<CheckpointFields<ReadonlyMap<string, string>>>(json.value, V1);
  if (v1.error !== undefined) return err(v1.error);
  if (!isSum(v1.fields.checksum, [hashedV1(v1.fields)])) return err("checkpoint is corrupted");
  const entries = byPod(v1.fields.entries ?? new Map(), options.containers ?? new Map());
  return entries.ok ? ok({ ...v1.fields, entries: entries.value, podEntries }) : entries;
}

/** A file without a checksum is of the days before there was one; not so in version 3. */
const isSum = (checksum: bigint, texts: readonly string[]): boolean =>
  checksum === 0n || texts.some((text) => checksum === BigInt(fnv1a(text)));
const isSumOfV2 = ({ fields }: Decoded<CheckpointV2>, { podLevelManagers }: ReadOptions): boolean =>
  isSum(fields.checksum, [
    hashedV2(fields),
    ...(podLevelManagers === true ? [] : [hashedV2(fields, "CPUManagerCheckpointV2")]),
  ]);

function decodeV3(json: GoJson): Decoded<CheckpointV3> {
  type Pods = ReadonlyMap<string, { readonly cpuSet: string }> | null;
  const { fields, error } = decode<CheckpointV2 & { readonly podEntries: Pods }>(json, V3);
  const pods = new Map<string, readonly number[]>();
  const read = cpuListReader();
  let fault = error;
  for (const [uid, { cpuSet }] of fields.podEntries ?? []) {
    const cpus = read(cpuSet);
    if (!cpus.ok) fault ??= cpus.error;
    pods.set(uid, cpus.ok ? ascending(cpus.value) : []);
  }
  return { fields: { ...fields, podEntries: fields.podEntries === null ? null : pods }, error: fault };
}

/** kubelet 1.36: migrateV1CheckpointToV2Checkpoint. */
function byPod(
  entries: ReadonlyMap<string, string>,
  containers: ReadonlyMap<string, Holder>,
): Result<Map<string, Map<string, string>>, string> {
  const pods = new Map<string, Map<string, string>>();
  for (const [id, cpus] of sorted(entries)) {
    const holder = containers.get(id);
    if (holder === undefined) {
      return err(
        `failed to migrate checkpoint from v1 to v2: containerID '${id}' not found in initial containers list`,
      );
    }
    const pod = pods.get(holder.uid) ?? new Map<string, string>();
    pods.set(holder.uid, pod.set(holder.container, cpus));
  }
  return ok(pods);
}
