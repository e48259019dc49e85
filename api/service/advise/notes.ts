import type { AdviceNote, AdviceNoteCode } from "../../model/advice.ts";
import { DAY_MS } from "../../model/duration.ts";
import type { EffectiveConfiguration } from "../../profiles/effective.ts";
import { listed, many, ordinal } from "../../text/sentences/words.ts";
import { humanBytes } from "../../text/size.ts";
import { durationText } from "../../text/time-text.ts";

/** The data that an advice rests on. */
interface Basis {
  /** Measurements. */
  readonly count: number;
  readonly percentile: number;
  /** From the first to the last of them; null: no time is known. */
  readonly spanMs: number | null;
  readonly everyMs: number | null;
  readonly withoutStats: number;
  readonly hasKubelet: boolean;
  readonly hasRuntime: boolean;
  /** `kubeReserved.cpu` and the like: those that no measurement tells, and those that some do. */
  readonly unmeasured: readonly string[];
  readonly measured: readonly string[];
  /** The most bytes of images that lie on the kubelet's own file system; 0: none are known there. */
  readonly imageBytes: number;
  readonly config: EffectiveConfiguration;
  readonly hasCapacity: boolean;
}

const note = (code: AdviceNoteCode, message: string, advice: string | null = null): AdviceNote => ({
  code,
  message,
  advice,
});

/** Notes for a reader before he follows the advice, the gravest first. */
export const notesOn = (basis: Basis): readonly AdviceNote[] =>
  basis.count === 0
    ? [note("not-measured", "there is no measurement", "give the kubelet's /stats/summary, or a longer time")]
    : [...onMeasurements(basis), ...onContainers(basis), ...onResources(basis), ...onConfiguration(basis)];

function onMeasurements({ count, percentile, spanMs, everyMs, withoutStats }: Basis): readonly AdviceNote[] {
  const notes: AdviceNote[] = [];
  if (percentile < 100 && count < 100 / (100 - percentile)) {
    const message = `the ${ordinal(percentile)} percentile of ${many(count, "measurement")} is the largest of them`;
    notes.push(note("few-measurements", message, "measure longer: a peak that was not met is not in it"));
  }
  if (spanMs === null) notes.push(note("no-times", "no measurement tells when it was made"));
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
      "the kubelet tells nothing of its own cgroup (systemContainers has no `kubelet`): what it uses counts as systemReserved";
    notes.push(note("no-kubelet-container", message, "set kubeletCgroups in its configuration"));
  }
  if (!hasRuntime) {
    const message =
      "the kubelet tells nothing of the container runtime (systemContainers has no `runtime`): what it uses counts as systemReserved";
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
  // of kubeReserved as a whole the containers tell already
  const untold = unmeasured.filter((name) => hasKubelet || hasRuntime || !name.startsWith("kubeReserved."));
  if (untold.length > 0) {
    const words =
      untold.length === 1 ? "is not measured, and stays as it is" : "are not measured, and stay as they are";
    notes.push(note("not-measured", `${listed(untold)} ${words}`));
  }
  if (measured.includes("systemReserved.ephemeral-storage") && imageBytes > 0) {
    const message = `images take up to ${humanBytes(imageBytes)} of the same file system, which no reservation holds`;
    notes.push(note("images-on-node-fs", message, "imageGCHighThresholdPercent says from when on they are removed"));
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
      note("no-capacity", "what the node has is not known, so nothing is told of allocatable", "give the node"),
    );
  return notes;
}
