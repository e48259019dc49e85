import { nearName } from "../../model/near-name.ts";
import { quote } from "../go/strconv.ts";
import { settingFault } from "../setting-fault.ts";
import { TOPOLOGY_POLICIES, TOPOLOGY_SCOPES } from "../topology/policy.ts";
import { type LintFinding, refusal } from "./finding.ts";
import type { LintInput } from "./input.ts";

interface Rule {
  readonly path: readonly [string, string?];
  readonly words: readonly string[];
  readonly says: (given: string) => string;
}
const INVALID = "invalid configuration: ";
const either = (words: readonly string[]): string =>
  words
    .map((word) => `"${word}"`)
    .join(", ")
    .replace(/, ("[^"]*")$/, " or $1");

/** kubelet 1.36: ValidateKubeletConfiguration; of the managers their NewManager, BuildAuthz, NewMainKubelet. */
const RULES: readonly Rule[] = [
  {
    path: ["topologyManagerPolicy"],
    words: TOPOLOGY_POLICIES,
    says: (g) =>
      `${INVALID}topologyManagerPolicy (--topology-manager-policy) ${quote(g)} must be one of: [${TOPOLOGY_POLICIES.map((word) => `"${word}"`).join(" ")}]`,
  },
  {
    path: ["topologyManagerScope"],
    words: TOPOLOGY_SCOPES,
    says: (g) =>
      `${INVALID}topologyManagerScope (--topology-manager-scope) ${quote(g)} must be one of: "container", or "pod"`,
  },
  {
    path: ["memorySwap", "swapBehavior"],
    words: ["LimitedSwap", "NoSwap"],
    says: (g) => `${INVALID}memorySwap.swapBehavior ${quote(g)} must be one of: "", "LimitedSwap" or "NoSwap"`,
  },
  option("hairpinMode", ["none", "hairpin-veth", "promiscuous-bridge"], " (--hairpin-mode)"),
  option("memoryReservationPolicy", ["None", "TieredReservation"]),
  { path: ["cpuManagerPolicy"], words: ["none", "static"], says: (g) => `unknown policy: ${quote(g)}` },
  {
    path: ["memoryManagerPolicy"],
    words: ["None", "Static"],
    says: (g) =>
      g === "BestEffort" ? `policy "BestEffort" is not available for platform "linux"` : `unknown policy: ${quote(g)}`,
  },
  {
    path: ["logging", "format"],
    words: ["text", "json"],
    says: (g) => `logging.format: Invalid value: ${quote(g)}: Unsupported log format`,
  },
  {
    path: ["authorization", "mode"],
    words: ["AlwaysAllow", "Webhook"],
    says: (g) => `unknown authorization mode ${g}`,
  },
  {
    path: ["configMapAndSecretChangeDetectionStrategy"],
    words: ["Get", "Cache", "Watch"],
    says: (g) => `unknown configmap and secret manager mode: ${g}`,
  },
];

function option(field: string, words: readonly string[], flag = ""): Rule {
  const says = (g: string) =>
    `${INVALID}option ${quote(g)} specified for ${field}${flag}. Valid options are ${either(words)}`;
  return { path: [field], words, says };
}

/** Words that a field does not know. */
export function wordFindings({ given }: LintInput): readonly LintFinding[] {
  return RULES.flatMap(({ path: [name, inner], words, says }) => {
    const text = inner === undefined ? given.text(name) : given.inside(name).text(inner);
    if (text === "" || words.includes(text)) return [];
    const patched = (value: string | null): unknown => ({ [name]: inner === undefined ? value : { [inner]: value } });
    const near = nearName(text, words) ?? begunBy(text, words);
    const meant = near === null ? "" : `; was \`${near}\` meant?`;
    const fault = settingFault(inner === undefined ? name : `${name}.${inner}`, says(text));
    // a static policy wants reserves too, which nobody but a person can choose
    const fix = near?.toLowerCase() === "static" ? null : patched(near);
    return [refusal("unknown-value", fault, `one of ${words.join(", ")}${meant}`, fix)];
  });
}

/** The one word that begins so, as `single-numa-node` does with `single-numa`; null: none, or several. */
function begunBy(text: string, words: readonly string[]): string | null {
  const begun = words.filter((word) => word.toLowerCase().startsWith(text.toLowerCase()));
  return begun.length === 1 ? (begun[0] ?? null) : null;
}
