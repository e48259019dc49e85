import type { DropIn } from "../../decide/lint/drop-ins.ts";
import { isOfCommandLine } from "../../decide/lint/finding.ts";
import { readFlags } from "../../decide/lint/flags.ts";
import { type BesideFile, flagOf } from "../../decide/lint/start.ts";
import { podsOfAnother } from "../../decide/pods/whose-pods.ts";
import { readCommandLine } from "../../documents/command-line.ts";
import {
  hasAt,
  type InputDocument,
  issueText,
  type Origin,
  type Path,
  stepsOf,
} from "../../documents/inputs/origin.ts";
import { PARTS } from "../../documents/inputs/parts.ts";
import type { Fields } from "../../model/own.ts";
import { ok, type Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { NEWEST } from "../../profiles/index.ts";
import { configurationOfAnother } from "../../profiles/unknown-fields.ts";
import { readInput, readPart } from "../inputs/read.ts";
import { READ_ONCE, readSnapshot, readsOnce } from "../inputs/snapshot.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";
import { readDropIns } from "./drop-ins.ts";

const OPTIONS = [
  ...["node", "pods", "stats", "machine", "cpu-manager-state", "memory-manager-state", "devices"],
  ...["resource-slices", "device-classes", "dra-drivers", "runtime-info"],
];
/** The parts of a node that the lint looks at. */
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
  /** The file that has the kubelet's command line in it. */
  readonly kubeletArgs?: string;
}
/** The kubelet's command line. */
export interface LintArgs {
  readonly args: readonly string[];
  /** `10-kubeadm.conf:4` of an argument, by its index. */
  readonly placeOf: (index: number) => string;
  /** For a person: what is not in the text. */
  readonly warnings: readonly string[];
}
export interface LintFile {
  /** Not checked: what is wrong with it is what is asked. */
  readonly configuration: unknown;
  /** Null: no folder of them was given. */
  readonly dropIns: readonly DropIn[] | null;
  /** `kubelet.yaml:3`, of several files the last that has the field; null: the file's places are not known. */
  readonly placeOf: (field: string) => string | null;
  /** Where `kubeletConfiguration` is. */
  readonly origins: readonly Origin[];
}
export interface LintNode {
  readonly file: LintFile | null;
  /** Null: it was not given. */
  readonly commandLine: LintArgs | null;
  /** Undefined: no file of a node was given. */
  readonly snapshot: Snapshot | undefined;
  /** That of the snapshot, as it is written. */
  readonly configuration: unknown;
}

/**
 * Reads the configuration, and what is given of a node. `live`: a node of a live cluster, in the place of --snapshot. Errors:
 * those of the files, and pods of another node.
 */
export async function readLintFiles(files: LintFiles, live?: Fields): Promise<Result<LintNode, Fault>> {
  const { config, configDir, kubeletArgs, ...rest } = pathsIn(files);
  if (!readsOnce(Object.values(files))) return fault(EXIT.badInput, READ_ONCE);
  if (config === undefined && configDir !== undefined) {
    return fault(EXIT.badInput, "--config-dir is merged over a configuration: give that with --config FILE");
  }
  const file = config === undefined ? ok(null) : await readConfiguration(config, configDir);
  if (!file.ok) return file;
  const commandLine = kubeletArgs === undefined ? ok(null) : await readArgs(kubeletArgs);
  if (!commandLine.ok) return commandLine;
  const read = { file: file.value, commandLine: commandLine.value };
  const parts = {
    ...Object.fromEntries(Object.entries(rest).map(([name, path]) => [optionName(name), path])),
    ...(live === undefined ? {} : { live }),
  };
  if (Object.keys(parts).length === 0) return ok({ ...read, snapshot: undefined, configuration: undefined });
  const snapshot = await readSnapshot(parts);
  if (!snapshot.ok) return snapshot;
  const ofAnother = podsOfAnother(snapshot.value.snapshot);
  if (ofAnother !== undefined) return fault(EXIT.badInput, ofAnother.message);
  const refused = otherKubelet(snapshot.value.snapshot, file.value);
  if (refused !== null) return refused;
  return ok({ ...read, snapshot: snapshot.value.snapshot, configuration: snapshot.value.configuration });
}

/** `cpuManagerState` -> `cpu-manager-state`. */
const optionName = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** The fault of a /configz that another kubelet printed than that of the node; null: it may be its own. `own`: that of the snapshot. */
export function otherKubelet(
  snapshot: Snapshot | undefined,
  file: LintFile | null,
  own?: unknown,
): Result<never, Fault> | null {
  const other = configurationOfAnother(snapshot, file === null ? own : file.configuration);
  return other === undefined ? null : fault(EXIT.badInput, issueText(other, file?.origins ?? []));
}

/** Everything that a kubelet is started with beside its file. */
export const besideOf = ({ file, commandLine }: Pick<LintNode, "file" | "commandLine">): BesideFile => ({
  dropIns: file?.dropIns ?? null,
  args: commandLine?.args ?? null,
});
/** The same in the body of a request. */
export const besideBody = ({ args, dropIns }: BesideFile): object => ({
  ...(args === null ? {} : { kubeletArgs: args }),
  ...(dropIns === null ? {} : { kubeletDropIns: dropIns.map(({ file, document }) => ({ file, document })) }),
});

/** `FILE:LINE` of a finding's field: of the flag that it names, or that sets it, else of the file's own. */
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

async function readArgs(path: string): Promise<Result<LintArgs, Fault>> {
  const input = await readInput(path);
  if (!input.ok) return input;
  const { text, file } = input.value;
  const { args, unset } = readCommandLine(text);
  if (args.length === 0) return fault(EXIT.badInput, `--kubelet-args ${file}: ${NO_FLAGS}`);
  const warnings = unset.map(
    (name) => `--kubelet-args ${file}: no text of $${name} is in it, so that its flags are not looked at`,
  );
  return ok({ args: args.map((word) => word.text), placeOf: (index) => `${file}:${args[index]?.line}`, warnings });
}

/** Picks the options that name such a file. */
function pathsIn({ config, configDir, kubeletArgs, snapshot, node, pods, stats, ...rest }: LintFiles): LintFiles {
  const { machine, cpuManagerState, memoryManagerState, devices } = rest;
  const { resourceSlices, deviceClasses, draDrivers, runtimeInfo } = rest;
  const managers = { machine, cpuManagerState, memoryManagerState, devices };
  const parts = { snapshot, node, pods, stats, ...managers, resourceSlices, deviceClasses, draDrivers, runtimeInfo };
  const all = { config, configDir, kubeletArgs, ...parts };
  return Object.fromEntries(Object.entries(all).filter(([, path]) => path !== undefined));
}

async function readConfiguration(path: string, configDir: string | undefined): Promise<Result<LintFile, Fault>> {
  const part = await readPart("config", path);
  if (!part.ok) return part;
  const { posted, document, base } = part.value;
  const dropIns = configDir === undefined ? ok(null) : await readDropIns(configDir);
  if (!dropIns.ok) return dropIns;
  const placeOf = (field: string): string | null => {
    const steps = stepsOf(field);
    // the message names the file
    if (dropIns.value !== null && steps.length === 0) return null;
    const own = dropIns.value?.findLast(({ document: value }) => hasAt(value, steps))?.source;
    if (own !== undefined) return placeIn(own, steps);
    return document === null ? null : placeIn(document, [...base, ...steps]);
  };
  const origins = document === null ? [] : [{ at: ["kubeletConfiguration"], source: document, base }];
  return ok({ configuration: posted, dropIns: dropIns.value, placeOf, origins });
}

const placeIn = (document: InputDocument, steps: Path): string | null =>
  document.hasPlaces ? `${document.file}:${document.place(steps).line}` : null;
