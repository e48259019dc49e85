import { formText, hasForm } from "../../../actuator/manifests/document-form.ts";
import { issueText, type Origin } from "../../inputs/origin.ts";
import { PARTS, type PartOption } from "../../inputs/parts.ts";
import { otherOption } from "../../inputs/wanted.ts";
import { decodeSnapshot } from "../../model/decode.ts";
import { ok, type Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { EXIT, type Fault, fault } from "../exit.ts";
import type { FileSystemSize } from "./file-system.ts";
import { readPart } from "./part.ts";
import { readPods } from "./pods.ts";
import { readDocument } from "./read.ts";

/** Files by option. What is given beside `snapshot` takes the place of that part of it. */
export interface SnapshotFiles extends Partial<Readonly<Record<PartOption, string>>> {
  readonly snapshot?: string;
  readonly cgroupVersion?: 1 | 2;
  readonly cgroupDriver?: "cgroupfs" | "systemd";
  /** When it was so. */
  readonly observedAt?: string;
  /** Of the image file system, in the place of what the stats say. */
  readonly imageFs?: FileSystemSize;
}
type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : {});
/** Of pods from a manifest when no node is given. */
const UNKNOWN_NODE = "node";

export const READ_ONCE = "standard input can be read once: give `-` to one option and files to the others";
export const readsOnce = (paths: readonly unknown[]): boolean => paths.filter((path) => path === "-").length <= 1;

/** Reads the files, puts them together and checks them. Errors name file, line and JSON path. */
export async function readSnapshot(files: SnapshotFiles): Promise<Result<Snapshot, Fault>> {
  const paths = [files.snapshot, ...PARTS.map(({ option }) => files[option])].filter((path) => path !== undefined);
  if (paths.length === 0)
    return fault(EXIT.badInput, "nothing to decide on: give --snapshot FILE, or --node FILE and the other parts");
  if (!readsOnce(paths)) return fault(EXIT.badInput, READ_ONCE);
  const origins: Origin[] = [];
  const base = await readBase(files.snapshot, origins);
  if (!base.ok) return base;
  const input: Record<string, unknown> = { ...base.value };
  const read = await readParts(files, input, origins);
  if (!read.ok) return read;
  const cgroup = { version: files.cgroupVersion, driver: files.cgroupDriver };
  const given = Object.entries(cgroup).filter(([, value]) => value !== undefined);
  if (given.length > 0) input["cgroup"] = { ...fieldsOf(input["cgroup"]), ...Object.fromEntries(given) };
  if (files.observedAt !== undefined) input["observedAt"] = files.observedAt;
  if (files.imageFs !== undefined) input["stats"] = withImageFs(input["stats"], files.imageFs);
  const decoded = decodeSnapshot(input);
  if (decoded.ok) return decoded;
  return fault(EXIT.badInput, ...decoded.error.map((issue) => issueText(issue, origins)));
}

function withImageFs(stats: unknown, imageFs: FileSystemSize): Fields {
  const { node, ...rest } = fieldsOf(stats);
  return { ...rest, node: { ...fieldsOf(node), runtime: { ...fieldsOf(fieldsOf(node)["runtime"]), imageFs } } };
}

async function readBase(path: string | undefined, origins: Origin[]): Promise<Result<Fields, Fault>> {
  if (path === undefined) return ok({});
  const source = await readDocument(path);
  if (!source.ok) return source;
  const { value, file } = source.value;
  if (!hasForm(value, "snapshot")) {
    const advice = otherOption(value) || ": `nodewise snapshot` makes one";
    return fault(EXIT.badInput, `${file}: is ${formText(value)}, and --snapshot takes a NodeSnapshot${advice}`);
  }
  origins.push({ at: [], source: source.value, base: [] });
  return ok(value as Fields);
}

async function readParts(
  files: SnapshotFiles,
  input: Record<string, unknown>,
  origins: Origin[],
): Promise<Result<null, Fault>> {
  for (const { option, path } of PARTS) {
    const file = files[option];
    if (file === undefined || option === "pods") continue;
    const part = await readPart(option, file);
    if (!part.ok) return part;
    const { posted, document, base } = part.value;
    const [field, inner] = path;
    input[field] = inner === undefined ? posted : { ...fieldsOf(input[field]), [inner]: posted };
    if (document !== null) origins.push({ at: path, source: document, base });
  }
  if (files.pods === undefined) return ok(null);
  const { name } = fieldsOf(fieldsOf(input["node"])["metadata"]);
  const pods = await readPods(files.pods, typeof name === "string" && name !== "" ? name : UNKNOWN_NODE);
  if (!pods.ok) return pods;
  input["pods"] = pods.value.pods;
  origins.push(...pods.value.origins);
  return ok(null);
}
