import { similarName } from "../../base/near-name.ts";
import { quote } from "../go/strconv.ts";
import { settingFault } from "../setting-fault.ts";
import { TOPOLOGY_POLICIES, TOPOLOGY_SCOPES } from "../topology/policy.ts";
import { type LintFinding, refusal } from "./finding.ts";
import type { LintInput } from "./input.ts";

/** The server's TLS settings, each in the kubelet's words. kubelet 1.36: InitializeTLS of cmd/kubelet/app. */
export function tlsFindings(input: LintInput): readonly LintFinding[] {
  return [...suites(input), ...version(input), ...curves(input)];
}

const SUITES = "tlsCipherSuites";
/**
 * Cipher suites of Go 1.26, with which kubelet 1.36.3 is built, and two old names, without TLS_.
 * k8s.io/component-base: TLSCipherPossibleValues.
 */
const KNOWN_SUITES: ReadonlySet<string> = new Set(
  `
  AES_128_GCM_SHA256 AES_256_GCM_SHA384 CHACHA20_POLY1305_SHA256 ECDHE_ECDSA_WITH_AES_128_CBC_SHA
  ECDHE_ECDSA_WITH_AES_128_CBC_SHA256 ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 ECDHE_ECDSA_WITH_AES_256_CBC_SHA
  ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 ECDHE_ECDSA_WITH_CHACHA20_POLY1305 ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
  ECDHE_ECDSA_WITH_RC4_128_SHA ECDHE_RSA_WITH_3DES_EDE_CBC_SHA ECDHE_RSA_WITH_AES_128_CBC_SHA
  ECDHE_RSA_WITH_AES_128_CBC_SHA256 ECDHE_RSA_WITH_AES_128_GCM_SHA256 ECDHE_RSA_WITH_AES_256_CBC_SHA
  ECDHE_RSA_WITH_AES_256_GCM_SHA384 ECDHE_RSA_WITH_CHACHA20_POLY1305 ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
  ECDHE_RSA_WITH_RC4_128_SHA RSA_WITH_3DES_EDE_CBC_SHA RSA_WITH_AES_128_CBC_SHA RSA_WITH_AES_128_CBC_SHA256
  RSA_WITH_AES_128_GCM_SHA256 RSA_WITH_AES_256_CBC_SHA RSA_WITH_AES_256_GCM_SHA384 RSA_WITH_RC4_128_SHA
`
    .trim()
    .split(/\s+/)
    .map((name) => `TLS_${name}`),
);

/** A merge patch cannot edit one list item, so no fix is offered. */
function suites({ given }: LintInput): readonly LintFinding[] {
  return given.list(SUITES).flatMap((item, i) => {
    const name = item ?? "";
    if (typeof name !== "string" || KNOWN_SUITES.has(name)) return [];
    const fault = settingFault(`${SUITES}[${i}]`, `Cipher suite ${name} not supported or doesn't exist`);
    const meant = name.toUpperCase().replaceAll("-", "_");
    const advice = KNOWN_SUITES.has(meant)
      ? `was \`${meant}\` meant?`
      : "a name of Go's crypto/tls, such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
    return [refusal("unknown-value", fault, advice)];
  });
}

const VERSION = "tlsMinVersion";
const VERSIONS = ["VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"];

function version({ given }: LintInput): readonly LintFinding[] {
  const text = given.text(VERSION);
  if (text === "" || VERSIONS.includes(text)) return [];
  // matches `1.2`, `TLSv1.2`, `versiontls12`; for any other text the intended version is not guessed
  const [, minor] = /^(?:version)?(?:tls)?v?1[._]?([0-3])$/i.exec(text) ?? [];
  const meant = minor === undefined ? null : `VersionTLS1${minor}`;
  const advice = `one of ${VERSIONS.join(", ")}${meant === null ? "" : `; was \`${meant}\` meant?`}`;
  const fault = settingFault(VERSION, `unknown tls version ${quote(text)}`);
  return [refusal("unknown-value", fault, advice, meant === null ? null : { [VERSION]: meant })];
}

const CURVES = "tlsCurvePreferences";
const MAX_CURVE_ID = 65_535;
/** P-256, P-384, P-521, X25519, and three with ML-KEM: those of Go 1.26. */
const KNOWN_CURVES: ReadonlySet<unknown> = new Set([23, 24, 25, 29, 4587, 4588, 4589]);

/** Reports the first faulty curve, as the kubelet does. k8s.io/component-base: TLSCurvePreferences. */
function curves({ given }: LintInput): readonly LintFinding[] {
  const ids = given.list(CURVES).map((id) => id ?? 0);
  for (const [i, id] of ids.entries()) {
    const why =
      typeof id !== "number" || id <= 0 || id > MAX_CURVE_ID
        ? [`curve preference ${id} is out of range (must be 1-${MAX_CURVE_ID})`]
        : ids.indexOf(id) < i
          ? [`duplicate curve preference ${id}`]
          : KNOWN_CURVES.has(id)
            ? []
            : [`curve preference ${id} is not supported by the current Go version`];
    const [first] = why;
    if (first === undefined) continue;
    const advice = `each once, of ${[...KNOWN_CURVES].join(", ")}`;
    return [refusal("unknown-value", settingFault(`${CURVES}[${i}]`, first), advice)];
  }
  return [];
}

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
    const near = similarName(text, words);
    const meant = near === null ? "" : `; was \`${near}\` meant?`;
    const fault = settingFault(inner === undefined ? name : `${name}.${inner}`, says(text));
    // a static policy also needs reserves, which only a person can choose
    const fix = near?.toLowerCase() === "static" ? null : patched(near);
    return [refusal("unknown-value", fault, `one of ${words.join(", ")}${meant}`, fix)];
  });
}
