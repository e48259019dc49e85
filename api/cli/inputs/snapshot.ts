import { type Fields, fieldsOf } from "../../base/own.ts";
import { ok, type Result } from "../../base/result.ts";
import { formText, hasForm } from "../../documents/document-form.ts";
import { issueText, type Origin } from "../../documents/inputs/origin.ts";
import { isAlone, otherOption, PARTS, type PartOption } from "../../documents/inputs/parts.ts";
import { decodeSnapshot } from "../../model/decode.ts";
import { type KubeletConfiguration, kubeletConfiguration } from "../../model/kubelet-configuration.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type ChosenProfile, chooseProfileFor } from "../../profiles/index.ts";
import { configurationOfAnother } from "../../profiles/unknown-fields.ts";
import { listed } from "../../text/sentences/words.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";
import type { FileSystemSize, ResourceTexts } from "./capacity.ts";
import { type MadeStatic, readPods } from "./pods.ts";
import { leftOutOf, leftOutOfPods, readDocument, readPart } from "./read.ts";

/** Files by option. Other options replace their part of `snapshot`. */
export interface SnapshotFiles extends Partial<Readonly<Record<PartOption, string>>> {
  readonly snapshot?: string;
  /** A node of a live cluster as a posted NodeSnapshot, instead of that file. */
  readonly live?: Fields;
  readonly cgroupVersion?: 1 | 2;
  readonly cgroupDriver?: "cgroupfs" | "systemd";
  /** The kubelet version if the node has none. */
  readonly kubelet?: string;
  /** The time of the snapshot. */
  readonly observedAt?: string;
  /** Size of the image file system, instead of the stats'. */
  readonly imageFs?: FileSystemSize;
  /** Resources of the node, instead of its `status.capacity`; without a node, those of a hypothetical one. */
  readonly nodeCapacity?: ResourceTexts;
}
const FIELD = "kubeletConfiguration";
/** Node name of pods from a manifest if no node is given. */
const UNKNOWN_NODE = "node";

export const READ_ONCE = "standard input can be read once: give `-` to one option and files to the others";
export const readsOnce = (paths: readonly unknown[]): boolean => paths.filter((path) => path === "-").length <= 1;

interface ReadSnapshot {
  readonly snapshot: Snapshot;
  readonly chosen: ChosenProfile;
  /** Fields of the configuration in `--snapshot` that the separately given one does not set. */
  readonly dropped: readonly string[];
  /** Manifests in `--pods`. */
  readonly madeStatic: readonly MadeStatic[];
  /**
   * A line for each field of the configuration that the kubelet does not know, and each field of manifests in `--pods` that its
   * v1.Pod does not have.
   */
  readonly leftOut: readonly string[];
  /** As written, including fields that a kubelet does not know. */
  readonly configuration: unknown;
}

/** Reads the files, combines them and validates the result. Errors name file, line and JSON path. */
export async function readSnapshot(files: SnapshotFiles): Promise<Result<ReadSnapshot, Fault>> {
  const paths = [files.snapshot, ...PARTS.map(({ option }) => files[option])].filter((path) => path !== undefined);
  if (paths.length === 0 && files.live === undefined && files.nodeCapacity === undefined)
    return fault(
      EXIT.badInput,
      "nothing to decide on: give --snapshot FILE, --node FILE and the other parts, or --context NAME and --node NAME of a live cluster",
    );
  if (!readsOnce(paths)) return fault(EXIT.badInput, READ_ONCE);
  const origins: Origin[] = [];
  const base = files.live === undefined ? await readBase(files.snapshot, origins) : ok(files.live);
  if (!base.ok) return base;
  const input: Record<string, unknown> = { ...base.value };
  const { config } = files;
  const read = await readParts(files, input, origins);
  if (!read.ok) return read;
  const cgroup = { version: files.cgroupVersion, driver: files.cgroupDriver };
  const given = Object.entries(cgroup).filter(([, value]) => value !== undefined);
  if (given.length > 0) input["cgroup"] = { ...fieldsOf(input["cgroup"]), ...Object.fromEntries(given) };
  if (files.observedAt !== undefined) input["observedAt"] = files.observedAt;
  if (files.imageFs !== undefined) input["stats"] = withImageFs(input["stats"], files.imageFs);
  const uncounted = files.nodeCapacity === undefined ? [] : replacedCapacity(input["node"], files.nodeCapacity);
  if (files.nodeCapacity !== undefined) input["node"] = withCapacity(input["node"], files.nodeCapacity);
  const decoded = decodeSnapshot(input);
  if (decoded.ok) {
    const was = config === undefined ? undefined : base.value[FIELD];
    const dropped = droppedFields(was, decoded.value.kubeletConfiguration);
    const chosen = chooseProfileFor(decoded.value, files.kubelet);
    const ofOther = configurationOfAnother(decoded.value, input[FIELD], FIELD);
    if (ofOther !== undefined) return fault(EXIT.badInput, issueText(ofOther, origins));
    const ofConfiguration = configurationIn(origins).flatMap(({ source, base: at }) =>
      leftOutOf(source, at, input[FIELD], chosen.profile),
    );
    const ofPods = origins.filter(({ at }) => at[0] === "pods");
    const { madeStatic, leftOut: ofOthers } = read.value;
    const leftOut = [...uncounted, ...ofOthers, ...ofConfiguration, ...leftOutOfPods(ofPods, chosen.profile)];
    const configuration = input[FIELD];
    return ok({ snapshot: decoded.value, chosen, dropped, madeStatic, leftOut, configuration });
  }
  return fault(EXIT.badInput, ...decoded.error.map((issue) => issueText(issue, origins)));
}

/** Where the configuration is: in a file of its own, or in the snapshot's. */
function configurationIn(origins: readonly Origin[]): readonly Pick<Origin, "source" | "base">[] {
  const own = origins.find(({ at }) => at[0] === FIELD);
  if (own !== undefined) return [own];
  return origins.filter(({ at }) => at.length === 0).map(({ source }) => ({ source, base: [FIELD] }));
}

/** The dropped fields that decisions read. */
function droppedFields(was: unknown, is: KubeletConfiguration = {}): readonly string[] {
  const before = kubeletConfiguration.safeParse(was);
  return before.success ? Object.keys(before.data).filter((field) => field !== "kind" && !(field in is)) : [];
}

function withImageFs(stats: unknown, imageFs: FileSystemSize): Fields {
  const { node, ...rest } = fieldsOf(stats);
  return { ...rest, node: { ...fieldsOf(node), runtime: { ...fieldsOf(fieldsOf(node)["runtime"]), imageFs } } };
}

/** A line about the node's resources that `--capacity` replaces. */
function replacedCapacity(node: unknown, given: ResourceTexts): readonly string[] {
  const had = Object.keys(fieldsOf(fieldsOf(fieldsOf(node)["status"])["capacity"]));
  const names = had.filter((name) => !Object.hasOwn(given, name));
  if (names.length === 0) return [];
  return [
    `--capacity replaces the node's whole capacity: ${listed(names)} ${names.length === 1 ? "does" : "do"} not count; name what is to remain`,
  ];
}

function withCapacity(node: unknown, capacity: ResourceTexts): Fields {
  const { status, ...rest } = fieldsOf(node);
  return { metadata: {}, ...rest, status: { ...fieldsOf(status), capacity } };
}

async function readBase(path: string | undefined, origins: Origin[]): Promise<Result<Fields, Fault>> {
  if (path === undefined) return ok({});
  const source = await readDocument(path);
  if (!source.ok) return source;
  const { value, file } = source.value;
  if (!hasForm(value, "snapshot")) {
    const advice = otherOption(value) || ": `nodewise snapshot` makes one";
    return fault(EXIT.badInput, `${file}: is ${formText(value)}, and --snapshot needs a NodeSnapshot${advice}`);
  }
  origins.push({ at: [], source: source.value, base: [] });
  return ok(value as Fields);
}

/** Fills `input` and `origins`; returns the manifests among the pods, and what was ignored. */
async function readParts(
  files: SnapshotFiles,
  input: Record<string, unknown>,
  origins: Origin[],
): Promise<Result<Pick<ReadSnapshot, "madeStatic" | "leftOut">, Fault>> {
  for (const { option, path } of PARTS) {
    const file = files[option];
    if (file === undefined || option === "pods") continue;
    const part = await readPart(option, file);
    if (!part.ok) return part;
    const { posted, document, base } = part.value;
    const [field, inner] = path;
    input[field] = inner === undefined ? posted : { ...fieldsOf(input[field]), [inner]: posted };
    const at = isAlone(posted, option) ? [...path, 0] : path;
    if (document !== null) origins.push({ at, source: document, base });
  }
  if (files.pods === undefined) return ok({ madeStatic: [], leftOut: [] });
  const { name } = fieldsOf(fieldsOf(input["node"])["metadata"]);
  const pods = await readPods(files.pods, typeof name === "string" && name !== "" ? name : UNKNOWN_NODE);
  if (!pods.ok) return pods;
  input["pods"] = pods.value.pods;
  origins.push(...pods.value.origins);
  return pods;
}
