import { nearName } from "../../model/near-name.ts";
import type { Profile } from "../../profiles/profile.ts";
import { quote } from "../go/strconv.ts";
import { settingFault } from "../setting-fault.ts";
import { type LintFinding, type Members, refusal } from "./finding.ts";

const KIND = "KubeletConfiguration";
const VERSION = "kubelet.config.k8s.io/v1beta1";
/** The kinds of its group that a kubelet reads beside its configuration. kubelet 1.36: config/v1beta1, config/v1. */
const OTHER_KINDS: ReadonlyMap<string, readonly string[]> = new Map([
  [VERSION, ["SerializedNodeConfigSource", "CredentialProviderConfig", "ImagePullIntent", "ImagePulledRecord"]],
  ["kubelet.config.k8s.io/v1", ["CredentialProviderConfig"]],
]);
/** As a released kubelet names what it knows: after the place where that is made. kubelet 1.36: NewSchemeAndCodecs. */
const SCHEME = "pkg/kubelet/apis/config/scheme/scheme.go:33";

/**
 * An apiVersion or a kind by which a kubelet does not know its file as a configuration, in its own words. What has neither is
 * no file, such as the fields of a request; a recorded snapshot keeps the kind alone. kubelet 1.36: DecodeKubeletConfiguration.
 */
export function headFindings(document: Members, { version: ofKubelet }: Profile): readonly LintFinding[] {
  const wrong = wrongType(document);
  if (wrong !== null) return [wrong];
  const [version, kind] = [textOf(document, "apiVersion"), textOf(document, "kind")];
  if (version === "") return kind === "" || kind === KIND ? [] : [kindAlone(kind)];
  const slashes = version.split("/").length - 1;
  if (slashes > 1) return [wrongVersion(`unexpected GroupVersion string: ${version}`, kind, ofKubelet)];
  if (kind === "") return [versionAlone(version)];
  const registered = version.replace(/^\//, "");
  if (kind === KIND && (registered === VERSION || registered === "kubelet.config.k8s.io/__internal")) return [];
  if (OTHER_KINDS.get(registered)?.includes(kind) === true) {
    const fault = `failed to cast object to ${KIND}, unexpected type: ${registered}, Kind=${kind}`;
    return [
      refusal("wrong-kind", settingFault("kind", fault), "this is another file of the kubelet: give its configuration"),
    ];
  }
  const what = `no kind ${quote(kind)} is registered for version ${quote(registered)} in scheme ${quote(SCHEME)}`;
  return [registered === VERSION ? wrongKind(what, kind) : wrongVersion(what, kind, ofKubelet)];
}

/** Go reads a name in any case here, and of several the last; `/` and a group alone are no version. */
function textOf(document: Members, name: string): string {
  const [, value] = members(document, name).findLast(([, given]) => given !== null) ?? [];
  const text = typeof value === "string" ? value : "";
  return name === "apiVersion" && /^[^/]*\/$/.test(text) ? "" : text;
}
const members = (document: Members, name: string): readonly [string, unknown][] =>
  Object.entries(document).filter(([given]) => given.toLowerCase() === name.toLowerCase());

/** The first that is no text. Go: json.UnmarshalTypeError. */
function wrongType(document: Members): LintFinding | null {
  for (const [name, value] of Object.entries(document)) {
    const field = ["apiVersion", "kind"].find((known) => known.toLowerCase() === name.toLowerCase());
    if (field === undefined || value === null || typeof value === "string") continue;
    const type = Array.isArray(value) ? "array" : typeof value === "boolean" ? "bool" : typeof value;
    const why = `json: cannot unmarshal ${type} into Go struct field .${field} of type string`;
    const fault = settingFault(name, `failed to decode: couldn't get version/kind; json parse error: ${why}`);
    const meant = field === "kind" ? KIND : VERSION;
    return refusal("wrong-type", fault, `a text: \`${meant}\``, { [name]: meant });
  }
  return null;
}

function wrongVersion(why: string, kind: string, ofKubelet: string): LintFinding {
  const head = { apiVersion: VERSION, ...(kind === KIND ? {} : { kind: KIND }) };
  const advice = `a kubelet of ${ofKubelet} reads its configuration as \`${VERSION}\` alone`;
  const isMeant = isNear(kind) || kind === "";
  return refusal(
    "wrong-api-version",
    settingFault("apiVersion", `failed to decode: ${why}`),
    advice,
    isMeant ? head : null,
  );
}
function wrongKind(why: string, kind: string): LintFinding {
  const fix = isNear(kind) ? { kind: KIND } : null;
  return refusal("wrong-kind", settingFault("kind", `failed to decode: ${why}`), `a kubelet reads a \`${KIND}\``, fix);
}
const isNear = (kind: string): boolean => nearName(kind, [KIND]) !== null;

/** The kubelet's own words would have the whole file in them. */
function versionAlone(version: string): LintFinding {
  const message = `'Kind' is missing: a kubelet reads no file with the apiVersion ${quote(version)} alone`;
  const fault = settingFault("apiVersion", message);
  const fix = { apiVersion: VERSION, kind: KIND };
  return { ...refusal("kind-missing", fault, `add \`kind: ${KIND}\``, fix), kubelet: false };
}
function kindAlone(kind: string): LintFinding {
  const fault = settingFault(
    "kind",
    `'apiVersion' is missing, and the kind ${quote(kind)} is none that a kubelet reads`,
  );
  const fix = isNear(kind) ? { apiVersion: VERSION, kind: KIND } : null;
  return { ...refusal("wrong-kind", fault, `a kubelet reads a \`${KIND}\``, fix), kubelet: false };
}
