import { nearName } from "../../base/near-name.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { quote } from "../go/strconv.ts";
import { settingFault } from "../setting-fault.ts";
import { error, type LintFinding, refusal } from "./finding.ts";
import type { LintInput } from "./input.ts";

const NAME = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
const PATH = `${NAME}(?:/${NAME})*`;
const LABEL = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
const DOMAIN = `(?:${LABEL}(?:\\.${LABEL})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?`;
const TAG = "[0-9A-Za-z_][0-9A-Za-z_.-]{0,127}";
const DIGEST = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}";
const REFERENCE = new RegExp(`^((?:${DOMAIN}/)?${PATH})(?::(${TAG}))?(?:@(${DIGEST}))?$`);
const WITH_DOMAIN = new RegExp(`^${DOMAIN}/(${PATH})$`);
const LONGEST_PATH = 255;
/** No reference is longer; a longer text would slow the expressions down. */
const LONGEST = 4096;

/** Hex digits. */
const DIGEST_LENGTHS: Readonly<Record<string, number>> = { sha256: 64, sha384: 96, sha512: 128 };

/**
 * Why a text is no image without tag or digest, in Go's words; null: it is one. kubelet 1.37:
 * getAllowlistImagePattern. `inFull`: with registry and folder, as kubelet 1.35 requires.
 */
function imageFault(text: string, inFull: boolean): string | null {
  const read = inFull ? normalizedName(text) : nameOf(text);
  if (!read.ok) return `failed to parse as an image name: ${read.error}`;
  return read.value === text ? null : `neither tag nor digest is accepted in an image reference: ${text}`;
}

/** The name without tag and digest. github.com/distribution/reference v0.6.0: Parse. */
function nameOf(text: string): Result<string, string> {
  const match = text.length > LONGEST ? null : REFERENCE.exec(text);
  if (match === null) {
    const isLower = text.length <= LONGEST && REFERENCE.test(text.toLowerCase());
    return err(isLower ? "repository name must be lowercase" : "invalid reference format");
  }
  const [, name = "", , digest] = match;
  const path = WITH_DOMAIN.exec(name)?.[1] ?? name;
  if (path.length > LONGEST_PATH) return err(`repository name must not be more than ${LONGEST_PATH} characters`);
  const wrong = digest === undefined ? null : digestFault(digest);
  return wrong === null ? ok(name) : err(wrong);
}

const HUB = "docker.io";

/**
 * The name with the registry and folder that a short name implies. github.com/distribution/reference v0.6.0:
 * ParseNormalizedNamed.
 */
function normalizedName(text: string): Result<string, string> {
  if (/^[a-f0-9]{64}$/.test(text))
    return err(`invalid repository name (${text}), cannot specify 64-byte hexadecimal strings`);
  const [domain, rest] = splitDomain(text);
  const [remote = ""] = rest.split(":");
  if (remote.toLowerCase() !== remote)
    return err(`invalid reference format: repository name (${remote}) must be lowercase`);
  return nameOf(`${domain}/${rest}`);
}
function splitDomain(text: string): readonly [domain: string, rest: string] {
  const slash = text.indexOf("/");
  const first = text.slice(0, Math.max(slash, 0));
  const isDomain = first === "localhost" || /[.:]/.test(first) || first.toLowerCase() !== first;
  if (isDomain && first !== "index.docker.io" && first !== HUB) return [first, text.slice(slash + 1)];
  const rest = isDomain ? text.slice(slash + 1) : text;
  return [HUB, rest.includes("/") ? rest : `library/${rest}`];
}

/** github.com/opencontainers/go-digest: Digest.Validate. */
function digestFault(digest: string): string | null {
  const [algorithm = "", encoded = ""] = digest.split(":");
  const length = Object.hasOwn(DIGEST_LENGTHS, algorithm) ? DIGEST_LENGTHS[algorithm] : undefined;
  if (length === undefined) {
    const isWell = /^[a-z0-9]+(?:[.+_-][a-z0-9]+)*$/.test(algorithm);
    return isWell ? "unsupported digest algorithm" : "invalid checksum digest format";
  }
  if (encoded.length !== length) return "invalid checksum digest length";
  return /^[a-f0-9]+$/.test(encoded) ? null : "invalid checksum digest format";
}

const GATE = "KubeletEnsureSecretPulledImages";
const POLICY = "imagePullCredentialsVerificationPolicy";
const LIST = "preloadedImagesVerificationAllowlist";
const OF_LIST = "NeverVerifyAllowlistedImages";
const POLICIES = ["NeverVerify", "NeverVerifyPreloadedImages", OF_LIST, "AlwaysVerify"];
const invalid = (field: string, what: string) => settingFault(field, `invalid configuration: ${what}`);

/** Checks the settings for images that are used without asking again. kubelet 1.36: ValidateKubeletConfiguration. */
export function imageFindings(input: LintInput): readonly LintFinding[] {
  const { given, isOn, profile } = input;
  const policy = given.text(POLICY);
  const patterns = given.list(LIST).map((item) => String(item ?? ""));
  if (!isOn(GATE)) {
    const set = [policy === "" ? [] : [POLICY], patterns.length === 0 ? [] : [LIST]].flat();
    return set.map((field) => {
      const fault = invalid(field, `\`${field}\` must not be set if ${GATE} feature gate is not enabled`);
      return refusal("needs-feature-gate", fault, "take the field out, or switch the gate on", { [field]: null });
    });
  }
  const found = [...(policy === "" || POLICIES.includes(policy) ? [] : [unknownPolicy(policy)]), ...pastLocks(input)];
  if (patterns.length > 0 && policy !== OF_LIST) {
    // the kubelet's own letter too many
    const what = `can't set \`${LIST}\` if \`imagePullCredentialsVertificationPolicy\` is not "${OF_LIST}"`;
    const advice = `set ${POLICY} to ${OF_LIST}, or take the list out`;
    return [...found, refusal("allowlist-without-policy", invalid(LIST, what), advice)];
  }
  return [...found, ...wrongPattern(patterns, profile.behaviour.allowlistInFull)];
}

/** A pull is locked by its image, under a number that may lie past the last lock. kubelet 1.36: StripedLockSet. */
function pastLocks({ given, profile: { behaviour, version } }: LintInput): readonly LintFinding[] {
  const field = "maxParallelImagePulls";
  const most = behaviour.maxPullsChecked;
  if (most === null || given.number(field) <= most) return [];
  const message = `kubelet ${version} checks the credentials of at most ${most} pulls at a time: with ${given.number(field)} it panics when it pulls some images`;
  return [error({ code: "pulls-past-locks", field, message, advice: `at most ${most}`, fix: { [field]: most } })];
}

function unknownPolicy(policy: string): LintFinding {
  const known = POLICIES.map((word) => `"${word}"`).join(", ");
  const listed = known.replace(/, ("[^"]*")$/, " or $1");
  const near = nearName(policy, POLICIES);
  const meant = near === null ? "" : `; was \`${near}\` meant?`;
  const fault = invalid(POLICY, `option ${quote(policy)} specified for ${POLICY}. Valid options are ${listed}`);
  // no fix is guessed, since it decides which images are trusted
  return refusal("unknown-value", fault, `one of ${POLICIES.join(", ")}${meant}`);
}

/** The first wrong pattern, as the kubelet reports it. kubelet 1.36: ValidateAllowlistImagesPatterns. */
function wrongPattern(patterns: readonly string[], inFull: boolean): readonly LintFinding[] {
  for (const [i, pattern] of patterns.entries()) {
    const why = patternFault(pattern, inFull);
    if (why === null) continue;
    const fault = invalid(`${LIST}[${i}]`, `invalid image pattern in \`${LIST}\`: ${why}`);
    const advice = "an image without a tag, such as registry.example/a/b, or all below a path: registry.example/a/*";
    return [refusal("cannot-parse", fault, advice)];
  }
  return [];
}

/** Characters that Go trims: JavaScript trims U+FEFF too, and not U+0085. */
const OUTER_SPACE = /^[\t-\r \u0085\p{Z}]|[\t-\r \u0085\p{Z}]$/u;

function patternFault(pattern: string, inFull: boolean): string | null {
  if (OUTER_SPACE.test(pattern)) return `leading/trailing spaces are not allowed: ${pattern}`;
  const isWildcard = pattern.endsWith("/*");
  const trimmed = isWildcard ? pattern.slice(0, -1) : pattern;
  if (trimmed === "") return `the supplied pattern is too short: ${pattern}`;
  if (trimmed.includes("*"))
    return `not a valid wildcard pattern, only patterns ending with '/*' are allowed: ${pattern}`;
  if (!isWildcard) return imageFault(trimmed, inFull);
  return trimmed === "/" ? "at least registry hostname is required" : null;
}
