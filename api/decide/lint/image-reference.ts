const NAME = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
const PATH = `${NAME}(?:/${NAME})*`;
const LABEL = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
const DOMAIN = `(?:${LABEL}(?:\\.${LABEL})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?`;
const TAG = "[0-9A-Za-z_][0-9A-Za-z_.-]{0,127}";
const DIGEST = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}";
const REFERENCE = new RegExp(`^((?:${DOMAIN}/)?${PATH})(?::(${TAG}))?(?:@(${DIGEST}))?$`);
const WITH_DOMAIN = new RegExp(`^${DOMAIN}/(${PATH})$`);
const LONGEST_PATH = 255;
/** No reference is so long, and what is longer takes the expressions long. */
const LONGEST = 4096;

/** Hex digits. */
const DIGEST_LENGTHS: Readonly<Record<string, number>> = { sha256: 64, sha384: 96, sha512: 128 };

/**
 * Why a text is no image without a tag or a digest, in Go's words; null: it is one. github.com/distribution/reference v0.6.0:
 * Parse; kubelet 1.36: getAllowlistImagePattern.
 */
export function imageFault(text: string): string | null {
  const parse = (why: string): string => `failed to parse as an image name: ${why}`;
  const match = text.length > LONGEST ? null : REFERENCE.exec(text);
  if (match === null) {
    const isLower = text.length <= LONGEST && REFERENCE.test(text.toLowerCase());
    return parse(isLower ? "repository name must be lowercase" : "invalid reference format");
  }
  const [, name = "", tag, digest] = match;
  const path = WITH_DOMAIN.exec(name)?.[1] ?? name;
  if (path.length > LONGEST_PATH) return parse(`repository name must not be more than ${LONGEST_PATH} characters`);
  const wrong = digest === undefined ? null : digestFault(digest);
  if (wrong !== null) return parse(wrong);
  const isBare = tag === undefined && digest === undefined;
  return isBare ? null : `neither tag nor digest is accepted in an image reference: ${text}`;
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
