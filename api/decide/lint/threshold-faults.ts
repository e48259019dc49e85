import { EVICTION_SIGNALS } from "../../model/eviction.ts";
import { nearName } from "../../model/near-name.ts";
import { readThresholds } from "../eviction/configuration.ts";
import type { SettingFault } from "../setting-fault.ts";
import { type LintFinding, refusal } from "./finding.ts";
import type { LintInput } from "./input.ts";
import { meantDuration, meantQuantity } from "./units.ts";

/** Thresholds that cannot be read, and soft ones without a grace period. kubelet 1.36: ParseThresholdConfig. */
export function thresholdFaults({ config }: LintInput): readonly LintFinding[] {
  return readThresholds(config).faults.map((fault) => {
    const [, field = "", name = ""] = /^(\w+)\["(.*)"\]$/.exec(fault.field) ?? [];
    const text = config[field as "evictionHard"]?.[name] ?? "";
    return advised(fault, { field, signal: name, text }, config);
  });
}

interface Entry {
  readonly field: string;
  readonly signal: string;
  readonly text: string;
}
function advised(fault: SettingFault, { field, signal, text }: Entry, config: LintInput["config"]): LintFinding {
  const patch = (value: unknown): unknown => ({ [field]: value });
  if (fault.message.startsWith("unsupported eviction signal")) {
    const known = EVICTION_SIGNALS.filter((name) => name !== "allocatableMemory.available");
    const near = nearName(signal, known);
    const meant = near === null ? "" : `; was \`${near}\` meant?`;
    // what is there under the right name is not replaced
    const isThere = near === null || config[field as "evictionHard"]?.[near] !== undefined;
    const fix = patch({ [signal]: null, ...(isThere ? {} : { [near]: text }) });
    return refusal("unknown-signal", fault, `there are ${known.join(", ")}${meant}`, fix);
  }
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
