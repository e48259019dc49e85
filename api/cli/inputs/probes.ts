import type { Kind } from "../../model/decision.ts";
import { ok, type Result } from "../../model/result.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";

export interface ProbesOptions {
  /** Of probes of every type that has no list of its own; `@FILE`, until that is read. */
  readonly outcomes?: string | readonly string[] | undefined;
  readonly startup?: string | readonly string[];
  readonly liveness?: string | readonly string[];
  readonly readiness?: string | readonly string[];
  readonly container?: string;
  readonly seconds?: string;
  readonly strict?: boolean;
  readonly stopSeconds?: string;
  readonly kubeletRestart?: string;
  readonly jitter?: string;
  readonly backOff?: boolean;
}
type Fields = Readonly<Record<string, unknown>>;
const NUMBERS = {
  seconds: "seconds",
  stopSeconds: "stopSeconds",
  kubeletRestart: "kubeletRestartSeconds",
  jitter: "jitter",
};
const TYPES = ["startup", "liveness", "readiness"] as const;

/**
 * Builds the ask of `probes` from the options; undefined without any. Errors: options for another kind, or one that is no
 * number.
 */
export function probesFields(kind: Kind, options: ProbesOptions): Result<Fields | undefined, Fault> {
  const { outcomes, container, strict, backOff } = options;
  const fields: Record<string, unknown> = {};
  const scripts = TYPES.flatMap((type) => {
    const script = options[type] ?? outcomes;
    return script === undefined ? [] : [[type, script] as const];
  });
  if (scripts.length > 0) fields["outcomes"] = Object.fromEntries(scripts);
  if (container !== undefined) fields["container"] = container;
  if (strict === true) fields["strict"] = true;
  if (backOff === false) fields["backOff"] = false;
  for (const [option, field] of Object.entries(NUMBERS)) {
    const text = options[option as keyof typeof NUMBERS];
    if (text === undefined) continue;
    if (!/^\d{1,6}(?:\.\d{1,3})?$/.test(text))
      return fault(EXIT.badInput, `${OPTION[field]} ${text}: must be a number`);
    fields[field] = Number(text);
  }
  const [first] = Object.keys(fields);
  if (first === undefined) return ok(undefined);
  if (kind === "probes") return ok(fields);
  return fault(
    EXIT.badInput,
    `${optionAt(`ask.${first}`, options) ?? first}: ${kind} runs no probes: leave it out; probes does`,
  );
}

const OPTION: Readonly<Record<string, string>> = {
  container: "--container",
  strict: "--strict",
  backOff: "--no-back-off",
  seconds: "--seconds",
  stopSeconds: "--stop-seconds",
  kubeletRestartSeconds: "--kubelet-restart",
  jitter: "--jitter",
};
/** The option that gave a place of the ask; undefined: none did. */
export function optionAt(path: string, options: ProbesOptions): string | undefined {
  const [, field = "", type] = path.split(".");
  if (field !== "outcomes") return OPTION[field];
  const given = TYPES.find((name) => (type === undefined ? options[name] !== undefined : name === type));
  return given !== undefined && options[given] !== undefined ? `--${given}` : "--outcomes";
}
