import { err, ok, type Result } from "../../model/result.ts";
import { decodeGo, type GoType, type GoValue } from "../go/decode.ts";
import { fnv1a, type GoJson, parseGoJson } from "../go/json.ts";
import { quote } from "../go/strconv.ts";
import {
  type CheckpointFields,
  type CheckpointV2,
  type CheckpointV3,
  type CpuAssignments,
  type CpuState,
  type Holder,
  hashedV1,
  hashedV2,
  hashedV3,
  sorted,
} from "./checkpoint.ts";
import type { CpuPolicy, StaticPolicy } from "./policy.ts";
import { ascending, type CpuSet, common, cpuListReader, cpuText, minus, NO_CPUS, parseCpus, sameCpus } from "./sets.ts";

interface ReadOptions {
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
function readCheckpoint(text: string, options: ReadOptions): Result<CheckpointV3, string> {
  const json = parseGoJson(text);
  if (!json.ok) return json;
  let podEntries: CheckpointV3["podEntries"] = new Map();
  if (options.podLevelManagers === true) {
    const v3 = decodeV3(json.value);
    if (v3.error === undefined && v3.fields.checksum === BigInt(fnv1a(hashedV3(v3.fields)))) return ok(v3.fields);
    // the pods that the first try has read stay
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

export interface StartInput extends ReadOptions {
  readonly policy: CpuPolicy;
  /** The text of cpu_manager_state; undefined: there is no such file, which is not the same as an empty one. */
  readonly file: string | undefined;
  /** The kubelet's root directory, which its words name. */
  readonly rootDir?: string;
}
const ROOT_DIR = "/var/lib/kubelet";

/**
 * The state with which a kubelet starts, or why it does not, in its words. A file that is not there, and one of an empty
 * pool without assignments, begins anew. Of several faults the kubelet names any one, this the first by pod uid and
 * container. kubelet 1.36: cpumanager.Start.
 */
export function startState({ policy, file, rootDir = ROOT_DIR, ...options }: StartInput): Result<CpuState, string> {
  if (file === undefined) return ok(freshState(policy));
  const restored = restore(file, policy.name, options);
  if (restored.ok) return policy.name === "none" ? restored : validated(policy, restored.value);
  const path = `${rootDir.replace(/\/+$/, "")}/cpu_manager_state`;
  return err(
    `could not restore state from checkpoint: ${restored.error}, please drain this node and delete the CPU manager checkpoint file ${quote(path)} before restarting Kubelet`,
  );
}

/** The state of a kubelet that starts without a file; with policy `none` nobody keeps a pool. */
export const freshState = (policy: CpuPolicy): CpuState => ({
  defaultCpus: policy.name === "none" ? NO_CPUS : managedCpus(policy),
  assignments: new Map(),
  podCpus: new Map(),
});
/** With strict-cpu-reservation the reserved CPUs are nobody's. */
const managedCpus = ({ topology, options, reserved }: StaticPolicy): CpuSet =>
  options.strictReservation ? minus(topology.all, reserved) : topology.all;

/** kubelet 1.36: restoreState. */
function restore(text: string, policyName: string, options: ReadOptions): Result<CpuState, string> {
  const checkpoint = readCheckpoint(text, options);
  if (!checkpoint.ok) return checkpoint;
  const { policyName: found, defaultCpuSet, podEntries } = checkpoint.value;
  if (found !== policyName) {
    return err(`configured policy ${quote(policyName)} differs from state checkpoint policy ${quote(found)}`);
  }
  const defaultCpus = parseCpus(defaultCpuSet);
  if (!defaultCpus.ok) return err(`could not parse default cpu set ${quote(defaultCpuSet)}: ${defaultCpus.error}`);
  const assignments = assignmentsOf(checkpoint.value);
  if (!assignments.ok) return assignments;
  const podCpus = new Map(Array.from(podEntries ?? [], ([uid, cpus]) => [uid, new Set(cpus)]));
  return ok({ defaultCpus: defaultCpus.value, assignments: assignments.value, podCpus });
}
function assignmentsOf({ entries }: CheckpointV3): Result<CpuAssignments, string> {
  const assignments = new Map<string, Map<string, CpuSet>>();
  const read = cpuListReader();
  for (const [uid, containers] of entries === null ? [] : sorted(entries)) {
    const held = new Map<string, CpuSet>();
    for (const [name, text] of containers === null ? [] : sorted(containers)) {
      const cpus = read(text);
      if (!cpus.ok) {
        return err(
          `could not parse cpuset ${quote(text)} for container ${quote(name)} in pod ${quote(uid)}: ${cpus.error}`,
        );
      }
      held.set(name, cpus.value);
    }
    assignments.set(uid, held);
  }
  return ok(assignments);
}

/** Checks that the state fits this machine and this reserve. kubelet 1.36: validateState. */
function validated(policy: StaticPolicy, state: CpuState): Result<CpuState, string> {
  const { defaultCpus, assignments, podCpus } = state;
  const managed = managedCpus(policy);
  if (defaultCpus.size === 0) {
    return assignments.size > 0 ? err("default cpuset cannot be empty") : ok({ ...state, defaultCpus: managed });
  }
  const pool = quote(cpuText(defaultCpus));
  const misplaced = misplacedReserve(policy, defaultCpus);
  if (misplaced !== undefined) return err(`${misplaced} are present in defaultCpuSet: ${pool}`);
  const known = new Set(defaultCpus);
  for (const [uid, containers] of sorted(assignments)) {
    for (const [name, cpus] of sorted(containers)) {
      if (common(defaultCpus, cpus).size > 0) {
        return err(
          `pod: ${uid}, container: ${name} cpuset: ${quote(cpuText(cpus))} overlaps with default cpuset ${pool}`,
        );
      }
      for (const cpu of cpus) known.add(cpu);
    }
  }
  for (const cpus of podCpus.values()) for (const cpu of cpus) known.add(cpu);
  if (sameCpus(known, managed)) return ok(state);
  return err(
    `current set of available CPUs ${quote(cpuText(managed))} doesn't match with CPUs in state ${quote(cpuText(known))}`,
  );
}
function misplacedReserve({ options, reserved }: StaticPolicy, pool: CpuSet): string | undefined {
  const inside = common(reserved, pool);
  if (options.strictReservation) {
    return inside.size === 0 ? undefined : `some of strictly reserved cpus: ${quote(cpuText(inside))}`;
  }
  return sameCpus(inside, reserved) ? undefined : `not all reserved cpus: ${quote(cpuText(reserved))}`;
}
