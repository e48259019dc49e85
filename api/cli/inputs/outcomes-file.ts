import { PROBE_TYPES, type ProbeType } from "../../model/probe.ts";
import { ok, type Result } from "../../model/result.ts";
import { EXIT, type Fault, fault } from "../exit.ts";
import type { ProbesOptions } from "./probes.ts";
import { readDocument } from "./read.ts";

type Script = string | readonly string[];
const WANTED =
  'outcomes such as ok,fail*3, a list of them, or one by type: {"liveness": ["ok*5", "fail"]}, as `nodewise probes outcomes` prints it';

/** The options with what stands in the files that they name: `--outcomes @FILE`, `--liveness @FILE`. Errors: the file's. */
export async function withOutcomesFiles<O extends ProbesOptions>(options: O): Promise<Result<O, Fault>> {
  let all: O = options;
  for (const name of ["outcomes", ...PROBE_TYPES] as const) {
    const given = options[name];
    if (typeof given !== "string" || !given.startsWith("@")) continue;
    const read = await scriptsIn(given.slice(1));
    if (!read.ok) return read;
    const { own, byType } = read.value;
    if (own !== undefined) all = { ...all, [name]: own };
    else if (name !== "outcomes") {
      const script = byType[name];
      if (script === undefined) return fault(EXIT.badInput, `--${name} ${given}: the file has no ${name}`);
      all = { ...all, [name]: script };
    } else {
      const others = Object.entries(byType).filter(([type]) => options[type as ProbeType] === undefined);
      all = { ...all, ...Object.fromEntries(others), outcomes: undefined };
    }
  }
  return ok(all);
}

interface Scripts {
  /** Of whichever probe asks for it; undefined: it is by type. */
  readonly own: Script | undefined;
  readonly byType: Readonly<Partial<Record<string, Script>>>;
}
async function scriptsIn(path: string): Promise<Result<Scripts, Fault>> {
  const source = await readDocument(path);
  if (!source.ok) return source;
  const { value, file } = source.value;
  if (isScript(value)) return ok({ own: value, byType: {} });
  const types: readonly string[] = PROBE_TYPES;
  const fields = typeof value === "object" && value !== null ? Object.entries(value) : [];
  const wrong = fields.find(([name, script]) => !types.includes(name) || !isScript(script));
  if (fields.length > 0 && wrong === undefined) return ok({ own: undefined, byType: Object.fromEntries(fields) });
  const where = wrong === undefined || Array.isArray(value) ? "" : `: ${wrong[0]}`;
  return fault(EXIT.badInput, `${file}${where}: expected ${WANTED}`);
}
const isScript = (value: unknown): value is Script =>
  typeof value === "string" || (Array.isArray(value) && value.every((item) => typeof item === "string"));
