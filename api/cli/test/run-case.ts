import { existsSync } from "node:fs";
import { type Fields, isObject } from "../../base/own.ts";
import { PARTS } from "../../documents/inputs/parts.ts";
import { plainPaint } from "../../text/style.ts";
import { addDecide } from "../decide/command.ts";
import { runCommandLine } from "../program.ts";
import { type Case, fileBeside } from "./case-file.ts";
import { type DecideOutput, type Mismatch, mismatches, reasonCodes } from "./expectation.ts";

/** A case that was run. */
export interface CaseResult {
  readonly case: Case;
  /** Empty if everything is as expected. */
  readonly mismatches: readonly Mismatch[];
  /** The codes of the reasons in the answer. */
  readonly codes: ReadonlySet<string>;
  readonly seconds: number;
}

/** Decides like `nodewise decide`, in this process, and compares. */
export async function tryCase(of: Case): Promise<CaseResult> {
  const began = performance.now();
  const came = await decided(argumentsOf(of));
  const seconds = (performance.now() - began) / 1000;
  const codes = came.output === null ? new Set<string>() : reasonCodes(came.output);
  return { case: of, mismatches: mismatches(of.expect, came), codes, seconds };
}

async function decided(args: readonly string[]): Promise<DecideOutput> {
  let printed = "";
  const lines: string[] = [];
  let exit = 0;
  await runCommandLine(["decide", ...args], [addDecide], {
    terminal: {
      write: (text) => {
        printed += text;
      },
      warn: (line) => void lines.push(line.replace(/^nodewise: /, "")),
      columns: Number.POSITIVE_INFINITY,
      paint: plainPaint,
    },
    isPlugin: false,
    env: {},
    isPiped: () => false,
    exitWith: (code) => {
      exit = code;
    },
  });
  const output: unknown = printed.startsWith("{") ? JSON.parse(printed) : null;
  return isObject(output) ? { output, lines } : { output: null, lines: [...lines, ...(exit === 0 ? [printed] : [])] };
}

/** Options whose value is a file. */
const FILES: ReadonlySet<string> = new Set([
  ...PARTS.map(({ option }) => option),
  ...["snapshot", "pod", "ask", "facts", "patch"],
]);
/** The command line after `decide`. */
function argumentsOf({ kind, kubelet, now, given, file }: Case): readonly string[] {
  const args: string[] = [kind, "--output", "json"];
  if (!given.has("explain")) args.push("--explain", "reasons");
  if (kubelet !== undefined) args.push("--kubelet", kubelet);
  if (now !== undefined) args.push("--observed-at", now);
  for (const [option, { value, path }] of given) {
    if (FILES.has(option)) args.push(`--${option}`, fileOf(option, value, path, file));
    else args.push(...valuesOf(option, value));
  }
  return args;
}

/** A file relative to the case's folder; for a value in the case itself, that part of the case's file. */
function fileOf(option: string, value: unknown, path: readonly (string | number)[], file: string): string {
  if (typeof value === "object")
    return `${file}#/${path.map((step) => String(step).replaceAll("~", "~0").replaceAll("/", "~1")).join("/")}`;
  const name = String(value);
  const here = fileBeside(file, name);
  // NAMESPACE/NAME of a pod of the snapshot, and a machine of the library, are not files
  return (option === "pod" || option === "machine") && !existsSync(here) ? name : here;
}

function valuesOf(option: string, value: unknown): readonly string[] {
  if (value === true) return [`--${option}`];
  if (value === false) return [`--no-${option}`];
  if (option === "set" && isObject(value)) return setOf(value).flatMap((one) => ["--set", one]);
  if (option === "set" && Array.isArray(value)) return value.flatMap((one) => ["--set", String(one)]);
  if (Array.isArray(value)) return [`--${option}`, value.map(String).join(",")];
  if (isObject(value)) return [`--${option}`, setOf(value).join(",")];
  return [`--${option}`, String(value)];
}
const setOf = (values: Fields): readonly string[] =>
  Object.entries(values).map(
    ([name, value]) => `${name}=${typeof value === "object" ? JSON.stringify(value) : String(value)}`,
  );
