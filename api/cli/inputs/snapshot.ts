import { decodeSnapshot } from "../../model/decode.ts";
import { err, ok, type Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { EXIT, type Fault, fault } from "../exit.ts";
import { issueText, type Origin } from "./origin.ts";
import { PARTS, type PartOption } from "./parts.ts";
import { readPods } from "./pods.ts";
import { readDocument } from "./read.ts";

/** Files by option. What is given beside `snapshot` takes the place of that part of it. */
export interface SnapshotFiles extends Partial<Readonly<Record<PartOption, string>>> {
  readonly snapshot?: string;
  readonly cgroupVersion?: 1 | 2;
  readonly cgroupDriver?: "cgroupfs" | "systemd";
}
type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : {});
/** Of pods from a manifest when no node is given. */
const UNKNOWN_NODE = "node";

/** Reads the files, puts them together and checks them. Errors name file, line and JSON path. */
export async function readSnapshot(files: SnapshotFiles): Promise<Result<Snapshot, Fault>> {
  const paths = [files.snapshot, ...PARTS.map(({ option }) => files[option])].filter((path) => path !== undefined);
  if (paths.length === 0)
    return fault(EXIT.badInput, "nothing to decide on: give --snapshot FILE, or --node FILE and the other parts");
  if (paths.filter((path) => path === "-").length > 1)
    return fault(EXIT.badInput, "standard input can be read once: give `-` to one option and files to the others");
  const origins: Origin[] = [];
  const base = await readBase(files.snapshot, origins);
  if (!base.ok) return base;
  const input: Record<string, unknown> = { ...base.value };
  const read = await readParts(files, input, origins);
  if (!read.ok) return read;
  const cgroup = { version: files.cgroupVersion, driver: files.cgroupDriver };
  const given = Object.entries(cgroup).filter(([, value]) => value !== undefined);
  if (given.length > 0) input["cgroup"] = { ...fieldsOf(input["cgroup"]), ...Object.fromEntries(given) };
  const decoded = decodeSnapshot(input);
  if (decoded.ok) return decoded;
  return fault(EXIT.badInput, ...decoded.error.map((issue) => issueText(issue, origins)));
}

async function readBase(path: string | undefined, origins: Origin[]): Promise<Result<Fields, Fault>> {
  if (path === undefined) return ok({});
  const source = await readDocument(path);
  if (!source.ok) return source;
  const { value } = source.value;
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return fault(
      EXIT.badInput,
      `${source.value.file}: expected a snapshot, an object (\`nodewise snapshot\` makes one)`,
    );
  if (!SNAPSHOT_FIELDS.some((field) => field in value))
    return fault(
      EXIT.badInput,
      `${source.value.file}: is no snapshot (no ${SNAPSHOT_FIELDS.join(", ")}): ${advice(value)}`,
    );
  origins.push({ at: [], source: source.value, base: [] });
  return ok(value as Fields);
}
const SNAPSHOT_FIELDS = ["node", "kubeletConfiguration", "pods", "stats", "machine", "cgroup"];
function advice(value: object): string {
  const { kind } = value as Fields;
  if (kind === "Node") return "give it with --node";
  if (kind === "Pod" || kind === "PodList" || kind === "List") return "give it with --pods";
  return "`nodewise snapshot` makes one";
}

async function readParts(
  files: SnapshotFiles,
  input: Record<string, unknown>,
  origins: Origin[],
): Promise<Result<null, Fault>> {
  for (const { option, path } of PARTS) {
    const file = files[option];
    if (file === undefined || option === "pods") continue;
    const source = await readDocument(file);
    if (!source.ok) return source;
    const [field, inner] = path;
    const single = option === "node" ? singleNode(source.value.value) : ok({ value: source.value.value, base: [] });
    if (!single.ok) return fault(EXIT.badInput, `${source.value.file}: ${single.error}`);
    const { value, base } = single.value;
    input[field] = inner === undefined ? value : { ...fieldsOf(input[field]), [inner]: value };
    origins.push({ at: path, source: source.value, base });
  }
  if (files.pods === undefined) return ok(null);
  const { name } = fieldsOf(fieldsOf(input["node"])["metadata"]);
  const pods = await readPods(files.pods, typeof name === "string" && name !== "" ? name : UNKNOWN_NODE);
  if (!pods.ok) return pods;
  input["pods"] = pods.value.pods;
  origins.push(...pods.value.origins);
  return ok(null);
}

/** `kubectl get nodes -o json` prints a list, also of one node. */
function singleNode(value: unknown): Result<{ value: unknown; base: readonly (string | number)[] }, string> {
  const { kind, items } = fieldsOf(value);
  if ((kind !== "List" && kind !== "NodeList") || !Array.isArray(items)) return ok({ value, base: [] });
  if (items.length !== 1) return err(`holds ${items.length} nodes: give one (kubectl get node NAME -o json)`);
  return ok({ value: items[0] as unknown, base: ["items", 0] });
}
