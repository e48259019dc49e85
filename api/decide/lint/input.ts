import { withoutNulls } from "../../base/nulls.ts";
import type { Fields } from "../../base/own.ts";
import { type Amount, fromUnits } from "../../model/amount.ts";
import type { EvictionSignal } from "../../model/eviction.ts";
import { type KubeletConfiguration, kubeletConfiguration } from "../../model/kubelet-configuration.ts";
import type { Quantity } from "../../model/quantity.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import {
  type EffectiveConfiguration,
  type EffectiveSnapshot,
  effectiveConfiguration,
} from "../../profiles/effective.ts";
import { isGateOn, type Profile } from "../../profiles/profile.ts";
import { nodeCapacity } from "../allocatable/capacity.ts";
import { Reasons } from "../reasons.ts";
import { RawConfiguration } from "./finding.ts";

/**
 * How relative paths are to be read: `resolved` against the file's folder, or `kept` as given. kubelet 1.37:
 * fsLoader.Load.
 */
export type RelativePaths = "resolved" | "kept";

/** How a configuration is checked. */
export interface LintBy {
  readonly profile: Profile;
  readonly snapshot: Snapshot | undefined;
  readonly relativePaths: RelativePaths;
}

/** The input of every check. */
export interface LintInput {
  readonly relativePaths: RelativePaths;
  /** The posted configuration, including fields that the version does not know. */
  readonly posted: Fields;
  readonly given: RawConfiguration;
  readonly profile: Profile;
  /** The profile's defaults, to be read as the given fields are. */
  readonly defaults: RawConfiguration;
  /** The configuration as decisions use it, without fields that they would refuse. */
  readonly config: EffectiveConfiguration;
  /** Fields that decisions do not take, with why. */
  readonly untaken: ReadonlyMap<string, string>;
  readonly isOn: (gate: string) => boolean;
  readonly gates: Readonly<Record<string, boolean>>;
  /** The snapshot, with `config` in it; null: no node is known. */
  readonly snapshot: EffectiveSnapshot | null;
  /** The node's capacity; empty without a snapshot. */
  readonly capacity: ReadonlyMap<string, Quantity>;
}

export function lintInput(posted: Fields, { profile, snapshot, relativePaths }: LintBy): LintInput {
  const known = new Set(profile.fieldNames.get(""));
  const raw = Object.fromEntries(Object.entries(posted).filter(([name]) => known.has(name)));
  const { config: own, untaken } = decodeValidFields(raw);
  const config = effectiveConfiguration(profile, own);
  const defaults = new RawConfiguration(profile.defaults);
  const given = new RawConfiguration(raw);
  const gates = gatesIn(given);
  const node = snapshot === undefined ? null : { ...snapshot, kubeletConfiguration: config };
  const capacity = node === null ? new Map<string, Quantity>() : nodeCapacity(node, new Reasons<string>("off"), []);
  const isOn = (gate: string): boolean => isGateOn(profile, gates, gate);
  return { relativePaths, posted, given, profile, defaults, config, untaken, isOn, gates, snapshot: node, capacity };
}

export function gatesIn(given: RawConfiguration): LintInput["gates"] {
  const named = Object.entries(given.inside("featureGates").raw);
  return Object.fromEntries(named.filter((entry): entry is [string, boolean] => typeof entry[1] === "boolean"));
}

function decodeValidFields(raw: Fields): { readonly config: KubeletConfiguration } & Pick<LintInput, "untaken"> {
  const rest: Record<string, unknown> = { ...(withoutNulls(raw) as Fields) };
  // a document of any kind is read as a configuration
  delete rest["kind"];
  const untaken = new Map<string, string>();
  for (;;) {
    const parsed = kubeletConfiguration.safeParse(rest);
    if (parsed.success) return { config: parsed.data, untaken };
    const before = untaken.size;
    for (const { path, message } of parsed.error.issues) {
      const field = String(path[0]);
      if (!untaken.has(field) && Object.hasOwn(rest, field)) untaken.set(field, message);
      delete rest[field];
    }
    // an issue that belongs to no field would recur for ever
    if (untaken.size === before) return { config: {}, untaken };
  }
}

/**
 * Returns the capacity that a signal's threshold is a share of; undefined: not known. Inodes and process ids count as units.
 */
export function capacityOf({ snapshot, capacity }: LintInput, signal: EvictionSignal): Amount | undefined {
  const node = snapshot?.stats?.node;
  const units = (n: number | null | undefined): Amount | undefined =>
    n === undefined || n === null || n <= 0 ? undefined : fromUnits(n);
  switch (signal) {
    case "memory.available":
    case "allocatableMemory.available":
      return capacity.get("memory")?.amount;
    case "nodefs.available":
      return units(node?.fs?.capacityBytes) ?? capacity.get("ephemeral-storage")?.amount;
    case "nodefs.inodesFree":
      return units(node?.fs?.inodes);
    case "imagefs.available":
      return units(node?.runtime?.imageFs?.capacityBytes);
    case "imagefs.inodesFree":
      return units(node?.runtime?.imageFs?.inodes);
    case "pid.available":
      return units(node?.rlimit?.maxpid);
    default:
      return undefined;
  }
}
