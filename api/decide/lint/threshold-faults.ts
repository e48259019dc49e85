import { readThresholds } from "../eviction/configuration.ts";
import type { SettingFault } from "../setting-fault.ts";
import { type LintFinding, refusal } from "./finding.ts";
import type { LintInput } from "./input.ts";
import { Renames, UNKNOWN_SIGNAL } from "./signal-fix.ts";
import { NAMED_SIGNALS } from "./signal-meant.ts";
import { meantDuration, meantQuantity } from "./units.ts";

/** Thresholds that cannot be read, and soft ones without a grace period. kubelet 1.36: ParseThresholdConfig. */
export function thresholdFaults({ config, given }: LintInput): readonly LintFinding[] {
  const renames = new Renames(given);
  return readThresholds(config).faults.map((fault) => {
    const [, field = "", name = ""] = /^(\w+)\["(.*)"\]$/.exec(fault.field) ?? [];
    const text = config[field as "evictionHard"]?.[name] ?? "";
    return advised(fault, { field, signal: name, text }, renames);
  });
}

interface Entry {
  readonly field: string;
  readonly signal: string;
  readonly text: string;
}
function advised(fault: SettingFault, { field, signal, text }: Entry, renames: Renames): LintFinding {
  const patch = (value: unknown): unknown => ({ [field]: value });
  if (fault.message.startsWith("unsupported eviction signal")) return unknownSignal(fault, signal, renames);
  if (fault.message.startsWith("grace period must be specified")) {
    const advice = "say in evictionSoftGracePeriod how long the threshold has to be met, such as 1m30s";
    return refusal("soft-without-grace", fault, advice);
  }
  if (field === "evictionSoftGracePeriod") {
    const meant = meantDuration(text);
    return refusal("cannot-parse", fault, "a duration such as 90s or 1m30s", meant && patch({ [signal]: meant }));
  }
  const meant = meantQuantity(text);
  const isRange = /must be|negative/.test(fault.message);
  const advice = "an amount such as 500Mi, or a share such as 10%; 0% is no threshold";
  return refusal(isRange ? "out-of-range" : "cannot-parse", fault, advice, meant && patch({ [signal]: meant }));
}

/** Without a signal that is meant there is no patch: with its entry gone nothing would take the threshold's place. */
function unknownSignal(fault: SettingFault, name: string, renames: Renames): LintFinding {
  const meant = renames.meantBy(name);
  const known = `there are ${NAMED_SIGNALS.join(", ")}`;
  if (meant === null) return refusal(UNKNOWN_SIGNAL, fault, `${known}: name the one that is meant`);
  const fix = renames.patchOf(name, meant);
  const advice = `${known}; was \`${meant}\` meant?`;
  return fix.ok
    ? refusal(UNKNOWN_SIGNAL, fault, advice, fix.value)
    : refusal(UNKNOWN_SIGNAL, fault, `${advice} ${fix.error}`);
}
