import { nearName } from "../../model/near-name.ts";
import { ENFORCEABLE } from "../allocatable/start-errors.ts";
import { DEFAULT_EVICTION_HARD, evictionHardOf } from "../eviction/configuration.ts";
import { entryField, type LintFinding, note, warning } from "./finding.ts";
import type { LintInput } from "./input.ts";

/** Defaults that go because a field was set. */
export function droppedDefaults(input: LintInput): readonly LintFinding[] {
  return [...evictionDefaults(input), ...enforcement(input), ...reportFrequency(input), ...replacedCpu(input)];
}

/** kubelet 1.36: loadConfigFile of cmd/kubelet/app. */
function evictionDefaults({ config }: LintInput): readonly LintFinding[] {
  const own = config.evictionHard;
  if (own === undefined) {
    if (config.mergeDefaultEvictionSettings !== true) return [];
    const message =
      "mergeDefaultEvictionSettings has nothing to merge into: without evictionHard the defaults hold as they are";
    const fix = { mergeDefaultEvictionSettings: null };
    return [
      note({
        code: "merge-without-thresholds",
        field: "mergeDefaultEvictionSettings",
        message,
        advice: "take it out",
        fix,
      }),
    ];
  }
  const inForce = evictionHardOf(config);
  const lost = Object.keys(DEFAULT_EVICTION_HARD).filter((signal) => inForce[signal] === undefined);
  if (lost.length === 0) return [];
  const list = lost.map((signal) => `${signal} ${DEFAULT_EVICTION_HARD[signal]}`).join(", ");
  const named = Object.keys(own).sort();
  const message =
    named.length === 0
      ? `evictionHard is empty, so nothing is evicted for: ${list}`
      : `evictionHard names ${named.join(", ")}, and with that the other defaults do not hold: ${list}`;
  return [
    warning({
      code: "eviction-defaults-dropped",
      field: "evictionHard",
      message,
      advice: "set mergeDefaultEvictionSettings, or name every signal; a share of 0% says that a signal is not wanted",
      fix: { mergeDefaultEvictionSettings: true },
    }),
  ];
}

function enforcement({ config }: LintInput): readonly LintFinding[] {
  const keys = config.enforceNodeAllocatable;
  if (keys === undefined || keys.includes("pods") || keys.includes("none") || config.cgroupsPerQOS === false) return [];
  const what = keys.length === 0 ? "is empty" : `names ${keys.join(", ")} and not pods`;
  return [
    warning({
      code: "pods-not-enforced",
      field: "enforceNodeAllocatable",
      message: `enforceNodeAllocatable ${what}: the default, pods, does not hold, so pods together may use what is reserved`,
      advice: "add pods; if that is meant, say so with none",
      fix: withPods(keys),
    }),
  ];
}

/** Each word once, as it was meant. Null: a list that the kubelet takes cannot be told from these words. */
function withPods(keys: readonly string[]): unknown {
  const meant = keys.map((key) => nearName(key, ENFORCEABLE));
  if (meant.some((word) => word === null || word === "none")) return null;
  const list = [...new Set(["pods", ...meant])];
  const isTwice = list.some((word) => list.includes(`${word}-compressible`));
  return isTwice ? null : { enforceNodeAllocatable: list };
}

const FREQUENCY = "nodeStatusUpdateFrequency";
/** kubelet 1.36: SetDefaults_KubeletConfiguration. */
function reportFrequency({ given }: LintInput): readonly LintFinding[] {
  const update = given.nanos(FREQUENCY, 0);
  if (update <= 0 || given.nanos("nodeStatusReportFrequency", 0) !== 0) return [];
  return [
    note({
      code: "report-frequency-dropped",
      field: "nodeStatusReportFrequency",
      message: `nodeStatusReportFrequency is ${given.text(FREQUENCY)} like ${FREQUENCY}: its default of 5m0s goes when that one is set`,
      advice: "set it too: a node whose status is as it was need not be written so often",
      fix: { nodeStatusReportFrequency: "5m0s" },
    }),
  ];
}

/** kubelet 1.36: run of cmd/kubelet/app. */
function replacedCpu({ config }: LintInput): readonly LintFinding[] {
  if ((config.reservedSystemCPUs ?? "") === "") return [];
  return (["kubeReserved", "systemReserved"] as const).flatMap((field) => {
    const cpu = config[field]?.["cpu"];
    if (cpu === undefined) return [];
    const message = `reservedSystemCPUs ${config.reservedSystemCPUs} takes the place of ${field}'s cpu ${cpu.text}, which counts for nothing`;
    const advice = "take it out, so that nobody reads it as true";
    return [
      note({
        code: "reserved-cpu-replaced",
        field: entryField(field, "cpu"),
        message,
        advice,
        fix: { [field]: { cpu: null } },
      }),
    ];
  });
}
