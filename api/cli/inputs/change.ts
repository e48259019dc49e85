import { unknownFieldLines } from "../../../actuator/daemon/configuration-file.ts";
import type { InputIssue } from "../../base/input-issue.ts";
import { joinedPatch, mergePatch } from "../../base/merge-patch.ts";
import { withoutNulls } from "../../base/nulls.ts";
import type { Fields } from "../../base/own.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { configurationSet } from "../../documents/configuration-set.ts";
import { formText, isConfiguration } from "../../documents/document-form.ts";
import { issueText, type Origin } from "../../documents/inputs/origin.ts";
import { decodeSnapshot } from "../../model/decode.ts";
import { configurationPath, kubeletConfiguration } from "../../model/kubelet-configuration.ts";
import { knownVersion, profileOf } from "../../profiles/index.ts";
import type { Profile } from "../../profiles/profile.ts";
import { unknownFields } from "../../profiles/unknown-fields.ts";
import { type Change, changed } from "../../service/replay/parsed.ts";
import { listed } from "../../text/sentences/words.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";
import { leftOutOf, readDocument, readPart } from "./read.ts";

/** Changes to single fields of a configuration, in this order. */
export interface PatchFlags {
  /** A file with a JSON merge patch. */
  readonly patch?: string;
  /** Each `PATH=VALUE`. */
  readonly set?: readonly string[];
}
export interface ChangeFlags extends PatchFlags {
  readonly kubelet?: string;
  readonly config?: string;
}

interface GivenChange {
  readonly change: Change;
  /** Notices for the user, one line each. */
  readonly notices: readonly string[];
}
/** The changes as one merge patch; undefined if there are none. */
interface GivenPatch extends Pick<GivenChange, "notices"> {
  readonly patch: Fields | undefined;
}

/**
 * `--config` replaces the recorded configuration, `--patch` and `--set` change it or `--config`, and `--kubelet` sets the version.
 * Errors: file, line and path.
 */
export async function readChange(flags: ChangeFlags): Promise<Result<GivenChange, Fault>> {
  const { kubelet: kubeletVersion } = flags;
  const known = kubeletVersion === undefined ? null : knownVersion("--kubelet", kubeletVersion);
  if (known?.ok === false) return fault(EXIT.badInput, `--kubelet: ${known.error.message}`);
  const read = await readConfigurations(flags, profileOf(kubeletVersion));
  if (!read.ok || kubeletVersion === undefined) return read;
  return ok({ ...read.value, change: { ...read.value.change, kubeletVersion } });
}

async function readConfigurations(flags: ChangeFlags, profile: Profile): Promise<Result<GivenChange, Fault>> {
  const { config } = flags;
  const nothing: GivenChange = { change: {}, notices: [] };
  const whole = config === undefined ? ok(nothing) : await readConfiguration(config, profile);
  if (!whole.ok) return whole;
  const read = await readPatches(flags, profile);
  if (!read.ok) return read;
  const { patch } = read.value;
  if (patch === undefined) return whole;
  if (config === undefined) return ok({ change: { kubeletConfigurationPatch: patch }, notices: read.value.notices });
  const { kubeletConfiguration } = whole.value.change;
  const change = { kubeletConfiguration: mergePatch(kubeletConfiguration, patch) };
  return ok({ change, notices: [...whole.value.notices, ...read.value.notices] });
}

const REPLACED =
  "--config replaces the whole recorded kubeletConfiguration: what it leaves out has the kubelet's default now; --patch and --set change only the fields that they name";

async function readConfiguration(path: string, profile: Profile): Promise<Result<GivenChange, Fault>> {
  const part = await readPart("config", path);
  if (!part.ok) return part;
  const { posted, document, base } = part.value;
  const leftOut = document === null ? [] : leftOutOf(document, base, posted, profile);
  const origins = document === null ? [] : [{ at: [FIELD], source: document, base }];
  const issues = issuesOf({ kubeletConfiguration: posted });
  if (issues.length > 0) return fault(EXIT.badInput, ...issues.map((issue) => issueText(issue, origins)));
  return ok({ change: { kubeletConfiguration: unwrapped(posted) }, notices: [REPLACED, ...leftOut] });
}

/** `--patch`, then each `--set`, as one patch. Errors: file, line and path, or the option's text. */
export async function readPatches(
  { patch, set = [] }: PatchFlags,
  profile: Profile,
): Promise<Result<GivenPatch, Fault>> {
  const read = patch === undefined ? ok({ patch: undefined, notices: [] }) : await readPatch(patch, profile);
  if (!read.ok) return read;
  let all: Fields | undefined = read.value.patch;
  for (const text of set) {
    const one = setIn(text, profile);
    if (!one.ok) return fault(EXIT.badInput, `--set ${text}: ${one.error}`);
    const joined = joinedPatch(all ?? {}, one.value);
    if (!joined.ok)
      return fault(
        EXIT.badInput,
        `--set ${text}: an earlier option removes ${joined.error}, or sets it to something that is no object`,
      );
    all = joined.value;
  }
  const known = profile.fieldNames.get("") ?? [];
  const unread = Object.keys(all ?? {}).filter((name) => known.includes(name) && !READ.has(name));
  if (unread.length === 0) return ok({ ...read.value, patch: all });
  const [are, change] = unread.length === 1 ? ["is", "changes"] : ["are", "change"];
  const line = `${listed(unread)} ${are} read by no decision, and ${change} nothing here; \`nodewise lint\` checks all fields`;
  return ok({ patch: all, notices: [...read.value.notices, line] });
}
/** The fields that decisions read. */
const READ: ReadonlySet<string> = new Set(["apiVersion", ...Object.keys(kubeletConfiguration.out.shape)]);

/** Parses one `--set`. Errors: the fault of the path or of the value. */
function setIn(text: string, profile: Profile): Result<Fields, string> {
  const read = configurationSet(text, profile);
  if (!read.ok) return read;
  const { patch, path } = read.value;
  const [issue] = issuesOf({ kubeletConfigurationPatch: patch });
  return issue === undefined ? ok(patch) : err(`${path}: ${issue.message}`);
}

async function readPatch(path: string, { fieldNames }: Profile): Promise<Result<GivenPatch, Fault>> {
  const read = await readDocument(path);
  if (!read.ok) return read;
  const source = read.value;
  if (!isConfiguration(source.value)) {
    const wanted = "fields of a KubeletConfiguration, such as `kubeReserved: {cpu: 500m}`";
    return fault(EXIT.badInput, `${source.file}: is ${formText(source.value)}, and --patch needs ${wanted}`);
  }
  const patch = unwrapped(source.value) as Fields;
  const base = configurationPath(source.value);
  const origins: readonly Origin[] = [{ at: [FIELD], source, base }];
  const issues = issuesOf({ kubeletConfigurationPatch: patch });
  if (issues.length > 0) return fault(EXIT.badInput, ...issues.map((issue) => issueText(issue, origins)));
  // null removes a field, which may be one that the kubelet does not know
  const unknown = source.hasPlaces ? unknownFields(withoutNulls(patch), fieldNames) : [];
  return ok({ patch, notices: unknownFieldLines(source, base, unknown) });
}

const FIELD = "kubeletConfiguration";
const unwrapped = (document: unknown): unknown =>
  configurationPath(document).reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], document);

/** The faults of a change, independent of what it is applied to. */
function issuesOf(change: Change): readonly InputIssue[] {
  const snapshot = decodeSnapshot(changed({}, change));
  return snapshot.ok ? [] : snapshot.error;
}
