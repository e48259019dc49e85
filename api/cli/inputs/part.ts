import { existsSync } from "node:fs";
import { unknownFieldLines } from "../../../actuator/daemon/configuration-file.ts";
import { POD_FIELDS } from "../../../actuator/lifecycle/spec/rules.ts";
import { hasForm } from "../../documents/document-form.ts";
import type { InputDocument, Path } from "../../documents/inputs/origin.ts";
import type { PartOption } from "../../documents/inputs/parts.ts";
import { misplaced, wrapperOf } from "../../documents/inputs/wanted.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { unknownFields } from "../../profiles/unknown-fields.ts";
import { libraryMachine } from "../machines/machine-library.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";
import { readDocument, readStateFile } from "./read.ts";

export interface ReadPart {
  /** As the snapshot takes it. */
  readonly posted: unknown;
  /** Null: the text of a state file that holds none, and machines of the library. */
  readonly document: InputDocument | null;
  /** Where the part stands in its document. */
  readonly base: Path;
  /** For a configuration: a line for each field that a kubelet leaves out. */
  readonly leftOut?: readonly string[];
}
type Option = Exclude<PartOption, "pods">;
const STATE_FILES: readonly Option[] = ["cpu-manager-state", "memory-manager-state", "device-checkpoint"];

/** Reads the file of one option. Errors: those of the file, and a document that the option does not take. */
export async function readPart(option: Option, path: string): Promise<Result<ReadPart, Fault>> {
  if (STATE_FILES.includes(option)) return readState(option, path);
  const known = option === "machine" ? libraryMachine(path) : undefined;
  if (known !== undefined) return ok({ posted: known.machine, document: null, base: [] });
  if (option === "machine" && isUnknownName(path)) return fault(EXIT.badInput, `--machine ${path}: ${NO_MACHINE}`);
  const source = await readDocument(path);
  if (!source.ok) return source;
  const document = source.value;
  const single = option === "node" ? singleNode(document.value) : ok({ value: document.value, base: [] });
  if (!single.ok) return fault(EXIT.badInput, `${document.file}: ${single.error}`);
  const { value, base } = single.value;
  const why = misplaced(value, option);
  if (why !== undefined) return fault(EXIT.badInput, `${document.file}: ${why}`);
  const wrapper = wrapperOf(option, value);
  const leftOut = option === "config" ? { leftOut: leftOutOf(document, base, value) } : {};
  return ok({ posted: value, document, base: [...base, ...wrapper], ...leftOut });
}

/** A line for each field of a configuration that a kubelet leaves out; what one tells of its own has the fields of its version. */
export const leftOutOf = (document: InputDocument, base: Path, configuration: unknown): readonly string[] =>
  wrapperOf("config", configuration).length > 0 || !document.hasPlaces
    ? []
    : unknownFieldLines(document, base, unknownFields(configuration));

/** The same of a pod that somebody wrote: one with a uid was stored by an API server, and has the fields of its version. */
export const leftOutOfPod = (document: InputDocument, base: Path, pod: unknown): readonly string[] =>
  hasUid(pod) || !document.hasPlaces ? [] : unknownFieldLines(document, base, unknownFields(pod, POD_FIELDS));

export function hasUid(pod: unknown): boolean {
  const { metadata } = (pod ?? {}) as { readonly metadata?: { readonly uid?: unknown } | null };
  return typeof metadata?.uid === "string" && metadata.uid !== "";
}

async function readState(option: Option, path: string): Promise<Result<ReadPart, Fault>> {
  const read = await readStateFile(path);
  if (!read.ok) return read;
  const { posted, document } = read.value;
  const why = document === null ? undefined : misplaced(document.value, option);
  return why === undefined ? ok({ posted, document, base: [] }) : fault(EXIT.badInput, `${document?.file}: ${why}`);
}

/** The library's names come first: a file of such a name is given as `./NAME`. */
const isUnknownName = (given: string): boolean => /^[\w-]+$/.test(given) && given !== "-" && !existsSync(given);
const NO_MACHINE = "is neither a file nor a machine of the library (`nodewise machines` lists them)";

/** `kubectl get nodes -o json` prints a list, also of one node. */
function singleNode(value: unknown): Result<{ value: unknown; base: Path }, string> {
  const { kind, items } = (value ?? {}) as { kind?: unknown; items?: unknown };
  if ((kind !== "List" && kind !== "NodeList") || !Array.isArray(items)) return ok({ value, base: [] });
  const isPods = items.length > 0 && items.every((item) => hasForm(item, "v1.Pod"));
  if (isPods) return err(`holds ${items.length} pods, and --node takes one node: give it with --pods`);
  if (items.length !== 1) return err(`holds ${items.length} nodes: give one (kubectl get node NAME -o json)`);
  return ok({ value: items[0] as unknown, base: ["items", 0] });
}
