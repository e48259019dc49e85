import { nearName } from "../../model/near-name.ts";
import { quote } from "../go/strconv.ts";
import { settingFault } from "../setting-fault.ts";
import { type LintFinding, refusal } from "./finding.ts";
import { imageFault } from "./image-reference.ts";
import type { LintInput } from "./input.ts";

const GATE = "KubeletEnsureSecretPulledImages";
const POLICY = "imagePullCredentialsVerificationPolicy";
const LIST = "preloadedImagesVerificationAllowlist";
const OF_LIST = "NeverVerifyAllowlistedImages";
const POLICIES = ["NeverVerify", "NeverVerifyPreloadedImages", OF_LIST, "AlwaysVerify"];
const invalid = (field: string, what: string) => settingFault(field, `invalid configuration: ${what}`);

/** Whose images are taken without asking again. kubelet 1.36: ValidateKubeletConfiguration. */
export function imageFindings(input: LintInput): readonly LintFinding[] {
  const { given, isOn } = input;
  const policy = given.text(POLICY);
  const patterns = given.list(LIST).map((item) => String(item ?? ""));
  if (!isOn(GATE)) {
    const set = [policy === "" ? [] : [POLICY], patterns.length === 0 ? [] : [LIST]].flat();
    return set.map((field) => {
      const fault = invalid(field, `\`${field}\` must not be set if ${GATE} feature gate is not enabled`);
      return refusal("needs-feature-gate", fault, "take the field out, or switch the gate on", { [field]: null });
    });
  }
  const found = policy === "" || POLICIES.includes(policy) ? [] : [unknownPolicy(policy)];
  if (patterns.length > 0 && policy !== OF_LIST) {
    // the kubelet's own letter too many
    const what = `can't set \`${LIST}\` if \`imagePullCredentialsVertificationPolicy\` is not "${OF_LIST}"`;
    const advice = `set ${POLICY} to ${OF_LIST}, or take the list out`;
    return [...found, refusal("allowlist-without-policy", invalid(LIST, what), advice)];
  }
  return [...found, ...wrongPattern(patterns)];
}

function unknownPolicy(policy: string): LintFinding {
  const known = POLICIES.map((word) => `"${word}"`).join(", ");
  const listed = known.replace(/, ("[^"]*")$/, " or $1");
  const near = nearName(policy, POLICIES);
  const meant = near === null ? "" : `; was \`${near}\` meant?`;
  const fault = invalid(POLICY, `option ${quote(policy)} specified for ${POLICY}. Valid options are ${listed}`);
  // which images are trusted is not guessed
  return refusal("unknown-value", fault, `one of ${POLICIES.join(", ")}${meant}`);
}

/** The first, as the kubelet tells it. kubelet 1.36: ValidateAllowlistImagesPatterns. */
function wrongPattern(patterns: readonly string[]): readonly LintFinding[] {
  for (const [i, pattern] of patterns.entries()) {
    const why = patternFault(pattern);
    if (why === null) continue;
    const fault = invalid(`${LIST}[${i}]`, `invalid image pattern in \`${LIST}\`: ${why}`);
    const advice = "an image without a tag, such as registry.example/a/b, or all below a path: registry.example/a/*";
    return [refusal("cannot-parse", fault, advice)];
  }
  return [];
}

/** What Go trims: JavaScript trims U+FEFF too, and not U+0085. */
const OUTER_SPACE = /^[\t-\r \u0085\p{Z}]|[\t-\r \u0085\p{Z}]$/u;

function patternFault(pattern: string): string | null {
  if (OUTER_SPACE.test(pattern)) return `leading/trailing spaces are not allowed: ${pattern}`;
  const isWildcard = pattern.endsWith("/*");
  const trimmed = isWildcard ? pattern.slice(0, -1) : pattern;
  if (trimmed === "") return `the supplied pattern is too short: ${pattern}`;
  if (trimmed.includes("*"))
    return `not a valid wildcard pattern, only patterns ending with '/*' are allowed: ${pattern}`;
  if (!isWildcard) return imageFault(trimmed);
  return trimmed === "/" ? "at least registry hostname is required" : null;
}
