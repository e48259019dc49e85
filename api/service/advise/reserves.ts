import { DAY_MS } from "../../base/duration.ts";
import { decideAllocatable } from "../../decide/kinds/allocatable.ts";
import type { AdviceNote, AdviceNoteCode, ReserveAdvice, ReserveField, ReservesAdvice } from "../../model/advice.ts";
import type { AllocatableDecision, QuantityList } from "../../model/allocatable.ts";
import { type Amount, exactMilliValue, exactValue, fromNanos, fromUnits, sub, subToZero } from "../../model/amount.ts";
import { parseQuantity, type Quantity, type QuantityFormat, quantityOf } from "../../model/quantity.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type EffectiveConfiguration, type EffectiveSnapshot, effectiveSnapshot } from "../../profiles/effective.ts";
import type { Profile } from "../../profiles/profile.ts";
import { listed, many, ordinal } from "../../text/sentences/words.ts";
import { humanBytes } from "../../text/size.ts";
import { durationText } from "../../text/time-text.ts";
import { changed } from "../replay/parsed.ts";
import { rfc3339 } from "../timestamp.ts";
import { newFindings, sidesOf } from "../what-if.ts";
import type { Measurement, Use } from "./measurement.ts";

/** The settings of the advice, and its data. */
export interface ReservesQuestion {
  readonly measurements: readonly Measurement[];
  /** The number of snapshots without node stats. */
  readonly withoutStats: number;
  /** The minimum time between measurements if some were skipped, ms; null if all were read. */
  readonly everyMs: number | null;
  /** The node with its current configuration. */
  readonly snapshot: Snapshot;
  readonly profile: Profile;
  /** Greater than 0, at most 100. */
  readonly percentile: number;
  /** A safety margin in whole percent. */
  readonly marginPercent: number;
}
export const DEFAULT_PERCENTILE = 99;
export const DEFAULT_MARGIN_PERCENT = 10;

/** One resource of one reservation, with its measured values. */
interface Series {
  readonly field: ReserveField;
  readonly resource: "cpu" | "memory" | "ephemeral-storage" | "pid";
  /** The values in the resource's own unit, ascending. */
  readonly values: readonly number[];
}

/** Which system containers occur in any measurement. */
interface Containers {
  readonly kubelet: boolean;
  readonly runtime: boolean;
}

/**
 * Advises what to reserve for the node's own daemons. `kubeReserved` is measured as the sum of the kubelet's and the
 * runtime's containers at one time; `systemReserved` is everything on the node that is neither of them nor a pod. If
 * the kubelet reports neither container, only the sum is known: kubeReserved stays, and systemReserved gets the rest.
 */
export function adviseReserves(question: ReservesQuestion): ReservesAdvice {
  const { measurements, snapshot, profile, percentile, marginPercent } = question;
  const config = effectiveSnapshot(snapshot, profile).kubeletConfiguration;
  const containers = {
    kubelet: measurements.some(({ memory, cpu }) => (memory.kubelet ?? cpu.kubelet) !== null),
    runtime: measurements.some(({ memory, cpu }) => (memory.runtime ?? cpu.runtime) !== null),
  };
  const all = seriesOf(measurements, containers);
  const known = all.filter(({ values }) => values.length > 0);
  const reserves = known.map((series) => reserveOf(series, question, config, isKubeKnown(containers)));
  const patch = patchOf(reserves);
  const effect = effectOf(question, patch);
  const times = measurements.flatMap(({ atMs }) => atMs ?? []);
  const [from, to] = [Math.min(...times), Math.max(...times)];
  return {
    node: snapshot.node?.metadata.name ?? null,
    policyVersion: profile.policyVersion,
    percentile,
    marginPercent,
    measurements: {
      count: measurements.length,
      from: times.length === 0 ? null : rfc3339(from),
      to: times.length === 0 ? null : rfc3339(to),
    },
    reserves,
    patch,
    ...effect,
    notes: notesOn({
      ...question,
      count: measurements.length,
      spanMs: times.length === 0 ? null : to - from,
      hasKubelet: containers.kubelet,
      hasRuntime: containers.runtime,
      unmeasured: all.filter(({ values }) => values.length === 0).map(nameOf),
      measured: known.map(nameOf),
      imageBytes: Math.max(0, ...measurements.map(({ images }) => images ?? 0)),
      config,
      hasCapacity: effect.allocatable.length > 0,
    }),
  };
}

const nameOf = ({ field, resource }: Series): string => `${field}.${resource}`;
const isKubeKnown = ({ kubelet, runtime }: Containers): boolean => kubelet || runtime;

function seriesOf(measurements: readonly Measurement[], containers: Containers): readonly Series[] {
  const series = (
    field: ReserveField,
    resource: Series["resource"],
    of: (one: Measurement) => number | null,
  ): Series => ({
    field,
    resource,
    values: measurements.flatMap((one) => of(one) ?? []).sort((a, b) => a - b),
  });
  return [
    series("kubeReserved", "cpu", ({ cpu }) => kubeUse(cpu, containers)),
    series("kubeReserved", "memory", ({ memory }) => kubeUse(memory, containers)),
    series("systemReserved", "cpu", ({ cpu }) => systemUse(cpu, containers)),
    series("systemReserved", "memory", ({ memory }) => systemUse(memory, containers)),
    series("systemReserved", "ephemeral-storage", ({ storage }) => storage),
    series("systemReserved", "pid", ({ pids }) => pids),
  ];
}

/** The usage of kubelet and runtime; null if a container that other measurements have is missing, or no measurement has one. */
function kubeUse({ kubelet, runtime }: Use, has: Containers): number | null {
  if (!isKubeKnown(has) || (has.kubelet && kubelet === null) || (has.runtime && runtime === null)) return null;
  return (kubelet ?? 0) + (runtime ?? 0);
}

/** Everything except pods and kubeReserved; if that is not known, the kubelet's systemCgroups. */
function systemUse(use: Use, has: Containers): number | null {
  const { node, pods, misc } = use;
  const kube = isKubeKnown(has) ? kubeUse(use, has) : 0;
  // each container was measured at a slightly different moment
  return node === null || pods === null || kube === null ? misc : Math.max(0, node - pods - kube);
}

/** The value that `percentile` percent of the sorted values do not exceed (nearest rank). */
export function percentileOf(sorted: readonly number[], percentile: number): number {
  // floating point: 99.9 % of 1,000 must give the 999th
  const rank = Math.ceil((percentile * sorted.length) / 100 - 1e-9);
  return sorted[Math.min(sorted.length, Math.max(1, rank)) - 1] as number;
}

const FORMATS: Readonly<Record<Series["resource"], QuantityFormat>> = {
  cpu: "DecimalSI",
  memory: "BinarySI",
  "ephemeral-storage": "BinarySI",
  pid: "DecimalSI",
};
/** A measured value; CPU is rounded to thousandths. */
function measured(resource: Series["resource"], raw: number): Quantity {
  const amount = resource === "cpu" ? upTo(MILLI_NANOS, BigInt(raw)) : fromUnits(raw);
  return quantityOf(amount, FORMATS[resource]);
}

const MILLI_NANOS = 1_000_000n;
const MI = 2n ** 20n;
/** Billionths, rounded up to a multiple of the step. */
const upTo = (step: bigint, nanos: bigint): Amount => fromNanos(((nanos + step - 1n) / step) * step);

/** Rounded up to thousandths of a CPU, to Mi, or to a process. */
function rounded(resource: Series["resource"], amount: Amount): Quantity {
  const format = FORMATS[resource];
  if (resource === "cpu") return quantityOf(fromNanos(exactMilliValue(amount) * MILLI_NANOS), format);
  const whole = exactValue(amount);
  if (resource === "pid") return quantityOf(fromUnits(Number(whole)), format);
  return quantityOf(fromUnits(Number(((whole + MI - 1n) / MI) * MI)), format);
}

function reserveOf(
  { field, resource, values }: Series,
  { percentile, marginPercent }: ReservesQuestion,
  config: EffectiveConfiguration,
  isKubeMeasured: boolean,
): ReserveAdvice {
  const at = percentileOf(values, percentile);
  const kubeNow = config.kubeReserved[resource];
  const isCpuFixed = resource === "cpu" && config.reservedSystemCPUs !== "";
  // storage and processes are never split by container
  const isWhole =
    field === "systemReserved" && (!isKubeMeasured || resource === "ephemeral-storage" || resource === "pid");
  const withMargin = withPercent(measured(resource, at).amount, marginPercent);
  const left = isWhole && kubeNow !== undefined ? subToZero(withMargin, kubeNow.amount) : withMargin;
  return {
    field,
    resource,
    measurements: values.length,
    median: measured(resource, percentileOf(values, 50)).text,
    atPercentile: measured(resource, at).text,
    peak: measured(resource, values.at(-1) as number).text,
    now: config[field][resource]?.text ?? null,
    recommended: isCpuFixed ? null : rounded(resource, left).text,
  };
}

const withPercent = (amount: Amount, percent: number): Amount => {
  const nanos = typeof amount === "bigint" ? amount : BigInt(amount) * MILLI_NANOS;
  return upTo(1n, (nanos * BigInt(100 + percent) + 99n) / 100n);
};

function patchOf(reserves: readonly ReserveAdvice[]): ReservesAdvice["patch"] {
  const patch: { [field in ReserveField]?: Record<string, string> } = {};
  for (const { field, resource, recommended } of reserves) {
    if (recommended !== null) patch[field] = { ...patch[field], [resource]: recommended };
  }
  return patch;
}

/** The effect of the patch: the node with and without it. */
function effectOf(
  { snapshot, profile }: ReservesQuestion,
  patch: ReservesAdvice["patch"],
): Pick<ReservesAdvice, "allocatable" | "findings"> {
  const change = { kubeletConfigurationPatch: patch };
  const sides = sidesOf(snapshot, change, profile);
  if (!sides.ok) throw new Error(`a patch of quantities is refused: ${JSON.stringify(sides.error)}`);
  const { before, after } = sides.value;
  const configuration = JSON.parse(JSON.stringify(snapshot.kubeletConfiguration ?? {})) as unknown;
  const patched = changed({ kubeletConfiguration: configuration }, change).kubeletConfiguration;
  const findings = newFindings(
    { configuration, snapshot, profile },
    { configuration: patched, snapshot: after, profile },
  ).map(({ severity, field, message, advice }) => ({ severity, field, message, advice }));
  const [was, is] = [decisionOn(before), decisionOn(after)];
  if (was === null || is === null) return { allocatable: [], findings };
  const resources = ["cpu", "memory", "ephemeral-storage"].filter((name) => was.capacity[name] !== undefined);
  const allocatable = resources.map((resource) => {
    const [from, to] = [amountIn(was.allocatable, resource), amountIn(is.allocatable, resource)];
    const more = quantityOf(sub(to.amount, from.amount), from.format).text;
    return { resource, from: from.text, to: to.text, change: more };
  });
  return { allocatable, findings };
}

/** Null if the node's capacity is unknown. */
function decisionOn(snapshot: EffectiveSnapshot): AllocatableDecision | null {
  const decided = decideAllocatable({ snapshot, facts: {}, ask: undefined, explain: "off" });
  if (!decided.ok) return null;
  const { decision } = decided.value;
  return decision.capacity["cpu"] === undefined && decision.capacity["memory"] === undefined ? null : decision;
}

function amountIn(list: QuantityList, resource: string): Quantity {
  const parsed = parseQuantity(list[resource] ?? "0");
  if (!parsed.ok) throw new Error(`allocatable.${resource}: ${parsed.error.message}`);
  return parsed.value;
}

/** The data behind an advice. */
interface Basis {
  /** The number of measurements. */
  readonly count: number;
  readonly percentile: number;
  /** The time from the first to the last measurement; null if unknown. */
  readonly spanMs: number | null;
  readonly everyMs: number | null;
  readonly withoutStats: number;
  readonly hasKubelet: boolean;
  readonly hasRuntime: boolean;
  /** Names such as `kubeReserved.cpu` without any measurement, and those with some. */
  readonly unmeasured: readonly string[];
  readonly measured: readonly string[];
  /** The most bytes of images on the kubelet's own file system; 0 if none are known. */
  readonly imageBytes: number;
  readonly config: EffectiveConfiguration;
  readonly hasCapacity: boolean;
}

const note = (code: AdviceNoteCode, message: string, advice: string | null = null): AdviceNote => ({
  code,
  message,
  advice,
});

/** Notes to read before following the advice, most serious first. */
const notesOn = (basis: Basis): readonly AdviceNote[] =>
  basis.count === 0
    ? [note("not-measured", "there is no measurement", "give the kubelet's /stats/summary, or a longer time")]
    : [...onMeasurements(basis), ...onContainers(basis), ...onResources(basis), ...onConfiguration(basis)];

function onMeasurements({ count, percentile, spanMs, everyMs, withoutStats }: Basis): readonly AdviceNote[] {
  const notes: AdviceNote[] = [];
  if (percentile < 100 && count < 100 / (100 - percentile)) {
    const message = `the ${ordinal(percentile)} percentile of ${many(count, "measurement")} is the largest of them`;
    notes.push(note("few-measurements", message, "measure longer: a peak that was not met is not in it"));
  }
  if (spanMs === null) notes.push(note("no-times", "no measurement has a time"));
  else if (spanMs < DAY_MS) {
    const when = spanMs === 0 ? "one moment" : durationText(spanMs);
    const message = `all measurements are of ${when}, and a day has peaks of its own (starts, image pulls, backups)`;
    notes.push(note("short-span", message, "measure a week, and a day on which many pods start"));
  }
  if (everyMs !== null) {
    const message = `one measurement of every ${durationText(everyMs)} was read, and shorter peaks between them are not seen`;
    notes.push(note("sampled", message, "ask of a shorter time to read more of it"));
  }
  if (withoutStats > 0) {
    const advice = "have whoever sends them send the kubelet's /stats/summary too";
    notes.push(
      note("without-stats", `${many(withoutStats, "snapshot")} without statistics of the node did not count`, advice),
    );
  }
  return notes;
}

function onContainers({ hasKubelet, hasRuntime }: Basis): readonly AdviceNote[] {
  const notes: AdviceNote[] = [];
  if (!hasKubelet) {
    const message =
      "the kubelet does not report its own cgroup (systemContainers has no `kubelet`): what it uses counts as systemReserved";
    notes.push(note("no-kubelet-container", message, "set kubeletCgroups in its configuration"));
  }
  if (!hasRuntime) {
    const message =
      "the kubelet does not report the container runtime (systemContainers has no `runtime`): what it uses counts as systemReserved";
    notes.push(
      note(
        "no-runtime-container",
        message,
        "start the kubelet with --runtime-cgroups, such as /system.slice/containerd.service",
      ),
    );
  }
  if (!hasKubelet && !hasRuntime) {
    const message = "kubeReserved stays as it is, and systemReserved is what it leaves of the whole, which is measured";
    notes.push(note("kube-reserved-kept", message));
  }
  return notes;
}

function onResources({ unmeasured, measured, imageBytes, hasKubelet, hasRuntime }: Basis): readonly AdviceNote[] {
  const notes: AdviceNote[] = [];
  // the containers already account for all of kubeReserved
  const notMeasured = unmeasured.filter((name) => hasKubelet || hasRuntime || !name.startsWith("kubeReserved."));
  if (notMeasured.length > 0) {
    const words =
      notMeasured.length === 1 ? "is not measured, and stays as it is" : "are not measured, and stay as they are";
    notes.push(note("not-measured", `${listed(notMeasured)} ${words}`));
  }
  if (measured.includes("systemReserved.ephemeral-storage") && imageBytes > 0) {
    const message = `images take up to ${humanBytes(imageBytes)} of the same file system, which no reservation holds`;
    notes.push(
      note("images-on-node-fs", message, "imageGCHighThresholdPercent is the usage from which they are removed"),
    );
  }
  if (measured.includes("systemReserved.pid")) {
    const message =
      "pid is at most what the system has: the node counts threads, and of pods only their processes are known";
    notes.push(note("pid-at-most", message));
  }
  return notes;
}

function onConfiguration({ config, hasCapacity }: Basis): readonly AdviceNote[] {
  const notes: AdviceNote[] = [];
  const { reservedSystemCPUs, enforceNodeAllocatable } = config;
  if (reservedSystemCPUs !== "") {
    const message = `reservedSystemCPUs (${reservedSystemCPUs}) takes the place of the cpu of both reservations`;
    notes.push(note("reserved-system-cpus", message, "compare the measured cpu with the number of those CPUs"));
  }
  const enforced = enforceNodeAllocatable.filter((key) => /^(?:kube|system)-reserved$/.test(key));
  if (enforced.length > 0) {
    const message = `enforceNodeAllocatable has ${listed(enforced)}: the reservation is the limit of these daemons too, and one that needs more memory is killed`;
    notes.push(
      note(
        "enforced-as-limits",
        message,
        "take the peak and a larger margin, or leave them out of enforceNodeAllocatable",
      ),
    );
  }
  if (!hasCapacity)
    notes.push(
      note("no-capacity", "what the node has is not known, so nothing is said about allocatable", "give the node"),
    );
  return notes;
}
