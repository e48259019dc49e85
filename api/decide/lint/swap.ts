import { settingFault } from "../setting-fault.ts";
import { type LintFinding, refusal } from "./finding.ts";
import type { LintInput } from "./input.ts";

/** kubelet 1.36: NewContainerManager. */
export function swapFindings({ config, snapshot }: LintInput): readonly LintFinding[] {
  if (config.failSwapOn === false || (snapshot?.machine?.swapBytes ?? 0) === 0) return [];
  const message = "running with swap on is not supported, please disable swap or set --fail-swap-on flag to false";
  const advice = "switch swap off on this node, or let the kubelet run with it";
  return [refusal("swap-on", settingFault("failSwapOn", message), advice, { failSwapOn: false })];
}
