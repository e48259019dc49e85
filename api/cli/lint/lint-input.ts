import { readdirSync } from "node:fs";
import { join } from "node:path";
import { reasonOf } from "../../../actuator/core/read-text.ts";
import { byText } from "../../base/order.ts";
import type { Fields } from "../../base/own.ts";
import { ok, type Result } from "../../base/result.ts";
import type { DropIn } from "../../decide/lint/drop-ins.ts";
import { isOfCommandLine } from "../../decide/lint/finding.ts";
import { readFlags } from "../../decide/lint/flags.ts";
import { type FlagsAndDropIns, flagOf } from "../../decide/lint/start.ts";
import { podsOfAnother } from "../../decide/pods/pods-of-other-nodes.ts";
import { readCommandLine } from "../../documents/command-line.ts";
import { formText, hasForm } from "../../documents/document-form.ts";
import {
  hasAt,
  type InputDocument,
  issueText,
  type Origin,
  type Path,
  stepsOf,
} from "../../documents/inputs/origin.ts";
import { PARTS } from "../../documents/inputs/parts.ts";
import { problemText } from "../../documents/problem.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { NEWEST } from "../../profiles/index.ts";
import { configurationOfAnother } from "../../profiles/unknown-fields.ts";
import { partOf, type ReadPart, readDocuments, readInput, valueAt } from "../inputs/read.ts";
import { READ_ONCE, readSnapshot, readsOnce } from "../inputs/snapshot.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";

const OPTIONS = [
  ...["node", "pods", "stats", "machine", "cpu-manager-state", "memory-manager-state", "devices"],
  ...["resource-slices", "device-classes", "dra-drivers", "runtime-info"],
];
/** The parts of a node that lint reads. */
export const LINT_PARTS = PARTS.filter(({ option }) => OPTIONS.includes(option));

/** Files by option, as commander names them. */
export interface LintFiles {
  readonly config?: string;
  readonly configDir?: string;
  readonly snapshot?: string;
  readonly node?: string;
  readonly pods?: string;
  readonly stats?: string;
  readonly machine?: string;
  readonly cpuManagerState?: string;
  readonly memoryManagerState?: string;
  readonly devices?: string;
  readonly resourceSlices?: string;
  readonly deviceClasses?: string;
  readonly draDrivers?: string;
  readonly runtimeInfo?: string;
  /** The file that contains the kubelet's command line. */
  readonly kubeletArgs?: string;
}
/** The kubelet's command line. */
interface LintArgs {
  readonly args: readonly string[];
  /** `10-kubeadm.conf:4` of an argument, by its index. */
  readonly placeOf: (index: number) => string;
}
interface LintFile {
  /** Not validated: lint finds its faults. */
  readonly configuration: unknown;
  /** Null if no folder was given. */
  readonly dropIns: readonly DropIn[] | null;
  /** `kubelet.yaml:3`, in the last of several files that has the field; null if positions are not known. */
  readonly placeOf: (field: string) => string | null;
  /** The origins of `kubeletConfiguration`. */
  readonly origins: readonly Origin[];
  /** `kubelet.yaml:12`: its start in a file with other documents; null if the file has nothing else. */
  readonly name: string | null;
}
export interface LintNode {
  readonly file: LintFile | null;
  /** Null if not given. */
  readonly commandLine: LintArgs | null;
  /** Undefined if no file of a node is given. */
  readonly snapshot: Snapshot | undefined;
  /** The snapshot's configuration as written. */
  readonly configuration: unknown;
  /** Warnings about parts of the files that are ignored. With several configurations, only the first has them. */
  readonly warnings: readonly string[];
}

/** Reads the only configuration of a file. Errors: those of `readLintNodes`, and a file with several. */
export async function readLintFiles(files: LintFiles, live?: Fields): Promise<Result<LintNode, Fault>> {
  const read = await readLintNodes(files, live);
  if (!read.ok) return read;
  const [first, second] = read.value;
  if (first === undefined || second !== undefined)
    return fault(
      EXIT.badInput,
      `${first?.file?.origins[0]?.source.file}: holds ${read.value.length} KubeletConfigurations: give a file with one`,
    );
  return ok(first);
}

/**
 * Reads each configuration of a file, and the given parts of a node. `live`: a node of a live cluster, instead of --snapshot.
 * Errors: those of the files, and pods of another node.
 */
export async function readLintNodes(files: LintFiles, live?: Fields): Promise<Result<readonly LintNode[], Fault>> {
  const { config, configDir, kubeletArgs, ...rest } = pathsIn(files);
  if (!readsOnce(Object.values(files))) return fault(EXIT.badInput, READ_ONCE);
  if (config === undefined && configDir !== undefined) {
    return fault(EXIT.badInput, "--config-dir is merged over a configuration: give that with --config FILE");
  }
  const found = config === undefined ? ok(NO_FILE) : await readConfigurations(config, configDir);
  if (!found.ok) return found;
  const commandLine = kubeletArgs === undefined ? ok(null) : await readArgs(kubeletArgs);
  if (!commandLine.ok) return commandLine;
  const warnings = [...found.value.warnings, ...(commandLine.value?.warnings ?? [])];
  const nodesOf = (of: Pick<LintNode, "snapshot" | "configuration">) =>
    found.value.files.map((file, i) => ({
      ...{ file, commandLine: commandLine.value, ...of },
      warnings: i === 0 ? warnings : [],
    }));
  const parts = {
    ...Object.fromEntries(Object.entries(rest).map(([name, path]) => [optionName(name), path])),
    ...(live === undefined ? {} : { live }),
  };
  if (Object.keys(parts).length === 0) return ok(nodesOf({ snapshot: undefined, configuration: undefined }));
  const snapshot = await readSnapshot(parts);
  if (!snapshot.ok) return snapshot;
  const ofAnother = podsOfAnother(snapshot.value.snapshot);
  if (ofAnother !== undefined) return fault(EXIT.badInput, ofAnother.message);
  for (const file of found.value.files) {
    const refused = otherKubelet(snapshot.value.snapshot, file);
    if (refused !== null) return refused;
  }
  return ok(nodesOf({ snapshot: snapshot.value.snapshot, configuration: snapshot.value.configuration }));
}

/** `cpuManagerState` -> `cpu-manager-state`. */
const optionName = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** The fault of a /configz of another kubelet than the node's; null if it may be the node's own. `own`: the snapshot's configuration. */
export function otherKubelet(
  snapshot: Snapshot | undefined,
  file: LintFile | null,
  own?: unknown,
): Result<never, Fault> | null {
  const other = configurationOfAnother(snapshot, file === null ? own : file.configuration);
  return other === undefined ? null : fault(EXIT.badInput, issueText(other, file?.origins ?? []));
}

/** Everything that a kubelet is started with in addition to its file. */
export const flagsAndDropInsOf = ({ file, commandLine }: Pick<LintNode, "file" | "commandLine">): FlagsAndDropIns => ({
  dropIns: file?.dropIns ?? null,
  args: commandLine?.args ?? null,
});
/** The same, for the body of a request. */
export const flagsAndDropInsBody = ({ args, dropIns }: FlagsAndDropIns): object => ({
  ...(args === null ? {} : { kubeletArgs: args }),
  ...(dropIns === null ? {} : { kubeletDropIns: dropIns.map(({ file, document }) => ({ file, document })) }),
});

/** `FILE:LINE` of a finding's field: that of the flag that it names or that sets it, else the file's own. */
export function placesOf({ file, commandLine }: LintNode): (field: string) => string | null {
  const flags = commandLine === null ? null : readFlags(commandLine.args, NEWEST);
  return (field) => {
    const flag = flags === null ? null : isOfCommandLine({ field }) ? field : flagOf(field, flags);
    const index = flag === null ? undefined : flags?.places.get(flag);
    if (index !== undefined) return commandLine?.placeOf(index) ?? null;
    return file?.placeOf(field) ?? null;
  };
}

const NO_FLAGS =
  "has no flag in it: give the kubelet's command line (ps -o args= -C kubelet), its unit with the drop-ins (systemctl cat kubelet), or a file of variables such as kubeadm-flags.env";

async function readArgs(path: string): Promise<Result<LintArgs & Pick<LintNode, "warnings">, Fault>> {
  const input = await readInput(path);
  if (!input.ok) return input;
  const { text, file } = input.value;
  const { args, unset } = readCommandLine(text);
  if (args.length === 0) return fault(EXIT.badInput, `--kubelet-args ${file}: ${NO_FLAGS}`);
  const warnings = unset.map(
    (name) => `--kubelet-args ${file}: no text of $${name} is in it, so its flags are not checked`,
  );
  return ok({ args: args.map((word) => word.text), placeOf: (index) => `${file}:${args[index]?.line}`, warnings });
}

/** Only the options that name files for lint. */
function pathsIn({ config, configDir, kubeletArgs, snapshot, node, pods, stats, ...rest }: LintFiles): LintFiles {
  const { machine, cpuManagerState, memoryManagerState, devices } = rest;
  const { resourceSlices, deviceClasses, draDrivers, runtimeInfo } = rest;
  const managers = { machine, cpuManagerState, memoryManagerState, devices };
  const parts = { snapshot, node, pods, stats, ...managers, resourceSlices, deviceClasses, draDrivers, runtimeInfo };
  const all = { config, configDir, kubeletArgs, ...parts };
  return Object.fromEntries(Object.entries(all).filter(([, path]) => path !== undefined));
}

interface FoundFiles extends Pick<LintNode, "warnings"> {
  readonly files: readonly (LintFile | null)[];
}
const NO_FILE: FoundFiles = { files: [null], warnings: [] };
const ONE_BY_ONE =
  "each of its KubeletConfigurations is checked by itself; a kubelet reads only the first document of a file";

/**
 * The configurations in a file's documents and in Lists in them. Other documents, as in a kubeadm file, are skipped. Errors: those
 * of the file; a file without any.
 */
async function readConfigurations(path: string, configDir: string | undefined): Promise<Result<FoundFiles, Fault>> {
  const read = await readDocuments(path);
  if (!read.ok) return read;
  const dropIns = configDir === undefined ? ok(null) : await readDropIns(configDir);
  if (!dropIns.ok) return dropIns;
  const parts = read.value.flatMap((document) =>
    basesIn(document).map((base) => ({ document, base, part: partOf("config", document, base) })),
  );
  const files = parts.flatMap(({ document, part }) =>
    part.ok ? [lintFile(part.value, document, dropIns.value, parts.length > 1)] : [],
  );
  const passedOver = parts.flatMap(({ document, base, part }) =>
    part.ok
      ? []
      : [`${placeIn(document, base) ?? document.file}: is ${formText(valueAt(document, base))}, which lint skips`],
  );
  const [first] = parts;
  if (files.length > 0) {
    const several = files.length > 1 ? [`${first?.document.file}: ${ONE_BY_ONE}`] : [];
    return ok({ files, warnings: [...several, ...passedOver] });
  }
  if (parts.length === 1 && first?.part.ok === false) return first.part;
  return fault(
    EXIT.badInput,
    `${first?.document.file}: none of its ${parts.length} documents is a KubeletConfiguration`,
  );
}

/** Where configurations may be in a document: the whole, or the items of a List. */
function basesIn({ value }: InputDocument): readonly Path[] {
  const { kind, items } = value as Fields;
  const isList = kind === "List" && Array.isArray(items) && items.some((item) => hasForm(item, "KubeletConfiguration"));
  return isList ? items.map((_, i) => ["items", i]) : [[]];
}

function lintFile(
  { posted, base }: ReadPart,
  document: InputDocument,
  dropIns: readonly ReadDropIn[] | null,
  isOneOfSeveral: boolean,
): LintFile {
  const placeOf = (field: string): string | null => {
    const steps = stepsOf(field);
    // the message names the file
    if (dropIns !== null && steps.length === 0) return null;
    const own = dropIns?.findLast(({ document: value }) => hasAt(value, steps))?.source;
    return own === undefined ? placeIn(document, [...base, ...steps]) : placeIn(own, steps);
  };
  const origins = [{ at: ["kubeletConfiguration"], source: document, base }];
  const name = isOneOfSeveral ? placeIn(document, base) : null;
  return { configuration: posted, dropIns, placeOf, origins, name };
}

const placeIn = (document: InputDocument, steps: Path): string | null =>
  document.hasPlaces ? `${document.file}:${document.place(steps).line}` : null;

const SUFFIX = ".conf";

interface ReadDropIn extends DropIn {
  readonly source: InputDocument;
}

/** Reads a `--config-dir`: the first document of each file, as the kubelet does. Errors: those of the folder and its files. */
async function readDropIns(dir: string): Promise<Result<readonly ReadDropIn[], Fault>> {
  const files = dropInFiles(dir);
  if (!files.ok) return files;
  const read: ReadDropIn[] = [];
  for (const file of files.value) {
    const documents = await readDocuments(file);
    if (!documents.ok) return documents;
    const [source] = documents.value;
    if (source !== undefined) read.push({ file, document: source.value, source });
  }
  return ok(read);
}

/** The files of a folder and its subfolders, in order of name; links to folders are not followed. Go: filepath.WalkDir. */
function dropInFiles(dir: string): Result<readonly string[], Fault> {
  try {
    return ok(walked(dir));
  } catch (e) {
    const [code, message] = reasonOf(e as NodeJS.ErrnoException);
    const why = code === "not-found" ? "no such directory: check the path" : message;
    return fault(EXIT.badInput, problemText({ code, file: `--config-dir ${dir}`, message: why }));
  }
}
const walked = (dir: string): readonly string[] =>
  readdirSync(dir, { withFileTypes: true })
    .sort((a, b) => byText(a.name, b.name))
    .flatMap((entry) => {
      const path = join(dir, entry.name);
      if (entry.isDirectory()) return walked(path);
      return entry.name.endsWith(SUFFIX) ? [path] : [];
    });
