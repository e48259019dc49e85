import { parseDocuments } from "../../api/documents/parse.ts";
import type { SourceDocument } from "../../api/documents/problem.ts";
import { problemText } from "../../api/documents/problem.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import { readText } from "./read-text.ts";
import type { SettingFault } from "./setting-fault.ts";

/** The content of a settings file. */
export interface SettingsFile {
  readonly settings: Readonly<Record<string, unknown>>;
  /** The fault with the place of its setting in the file: `actuator.yaml:3:7: mode: ...`. */
  faultText(fault: SettingFault): string;
}
const MAX_BYTES = 1024 * 1024;

/** Reads YAML or JSON; a file in which everything is a comment sets nothing. Errors: all that is wrong, with file and line. */
export async function readSettingsFile(file: string): Promise<Result<SettingsFile, readonly string[]>> {
  const text = await readText(file === "-" ? process.stdin : file, named(file), MAX_BYTES);
  if (!text.ok) return err([problemText(text.error)]);
  const { documents, problems } = parseDocuments(text.value, named(file));
  if (problems.length > 0) return err(problems.map(({ document: _one, ...problem }) => problemText(problem)));
  const [only, second] = documents;
  if (second !== undefined) return err([`${placeText(second, [])}: a second document: settings are one`]);
  if (only === undefined) return ok({ settings: {}, faultText: ({ setting, message }) => `${setting}: ${message}` });
  if (!isObject(only.value)) return err([`${placeText(only, [])}: must be settings such as \`mode: observe\``]);
  const faultText = ({ setting, message }: SettingFault): string =>
    `${placeText(only, [setting])}: ${setting}: ${message}`;
  return ok({ settings: withOff(only.value), faultText });
}

/** YAML 1.1, which is what Kubernetes reads, takes `off` without quotes for false. */
const OFF = ["pods", "devicePlugins", "garbageCollection", "statusListen"];
const withOff = (settings: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [name, value === false && OFF.includes(name) ? "off" : value]),
  );

const named = (file: string): string => (file === "-" ? "standard input" : file);
const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function placeText({ file, place }: SourceDocument, path: readonly string[]): string {
  const { line, column } = place(path);
  return `${file}:${line}:${column}`;
}
