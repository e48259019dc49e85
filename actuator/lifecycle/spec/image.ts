const HOST = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?";
const domain = new RegExp(`^(?:${HOST}(?:\\.${HOST})*|\\[[0-9A-Fa-f:]+\\])(?::\\d+)?$`);
const COMPONENT = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*$/;
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,}$/;
/** An image's id, which is no name. */
const ID = /^[0-9a-f]{64}$/;
const MOST_LENGTH = 255;

/**
 * The tag of an image's name: `latest` where it says neither tag nor digest, empty where it says only a digest, or is no
 * name at all. kubernetes 1.36: parsers.ParseImageName.
 */
export function tagOf(image: string): string {
  const [name = "", digest, ...more] = image.split("@");
  if (more.length > 0 || (digest !== undefined && !DIGEST.test(digest))) return "";
  const colon = name.indexOf(":", name.lastIndexOf("/") + 1);
  const tag = colon < 0 ? undefined : name.slice(colon + 1);
  if (!isRepository(colon < 0 ? name : name.slice(0, colon)) || (tag !== undefined && !TAG.test(tag))) return "";
  return tag ?? (digest === undefined ? "latest" : "");
}

/** kubernetes 1.36: SetDefaults_Container. */
export const pullPolicyOf = (image: string): "Always" | "IfNotPresent" =>
  tagOf(image) === "latest" ? "Always" : "IfNotPresent";

function isRepository(name: string): boolean {
  if (ID.test(name)) return false;
  const parts = name.split("/");
  const first = parts[0] as string;
  const hasDomain = parts.length > 1 && (first === "localhost" || /[.:A-Z]/.test(first));
  const full = hasDomain ? name : `docker.io/${parts.length > 1 ? "" : "library/"}${name}`;
  // The grammar has another try at what looks like a domain and is none.
  const path = hasDomain && domain.test(first) ? parts.slice(1) : parts;
  return full.length <= MOST_LENGTH && path.every((part) => COMPONENT.test(part));
}
