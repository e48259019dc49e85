import type { Profile } from "../../profiles/profile.ts";
import type { SettingFault } from "../setting-fault.ts";
import { inOrder, type LintFinding, type Members, refusal } from "./finding.ts";
import { meantDuration } from "./units.ts";

/** The value that was meant: of a field, or of an entry of a map. */
interface Meant {
  readonly name: string;
  readonly key: string | undefined;
  readonly value: unknown;
}

/**
 * Lists the values that Go cannot read, each with the value that was meant where only the quotes or the unit of a duration are
 * wrong. `findingsOf`: checks a whole configuration. A value that has a fault of its own once it can be read is no fix: both
 * faults are told then.
 */
export function typeFindings(
  unread: readonly SettingFault[],
  document: Members,
  profile: Profile,
  findingsOf: (mended: Members) => readonly LintFinding[],
): readonly LintFinding[] {
  const meant = unread.map((fault) => meantBy(fault, document, profile));
  const known = meant.filter((one) => one !== null);
  const after = known.length === 0 ? [] : findingsOf(mended(document, known));
  // of several at a field the worst
  const next = new Map([...inOrder(after)].reverse().map((finding) => [finding.field, finding]));
  return unread.map((fault, i) => {
    const advice = typeAdvice(fault.message);
    const one = meant[i] ?? null;
    if (one === null) return refusal("wrong-type", fault, advice);
    const then = next.get(fault.field);
    if (then === undefined || then.severity === "note") return refusal("wrong-type", fault, advice, patchOf(one));
    return refusal("wrong-type", fault, `${advice}; and then: ${then.message} (${then.advice})`);
  });
}

function typeAdvice(message: string): string {
  if (message.includes("of type string")) return "put it in quotes: Go reads a text here";
  if (/of type u?int/.test(message)) return "a whole number, without quotes";
  if (message.includes("of type bool")) return "true or false, without quotes";
  if (message.includes("time: ")) return "a duration such as 90s or 1m30s";
  return "give it the form that the kubelet reads";
}

function meantBy({ field, message }: SettingFault, document: Members, profile: Profile): Meant | null {
  const [, name = "", entry] = /^(\w+)(?:\[("(?:[^"\\]|\\.)*")\])?$/.exec(field) ?? [];
  if (name === "") return null;
  const key = entry === undefined ? undefined : (JSON.parse(entry) as string);
  const value = corrected(key === undefined ? document[name] : (document[name] as Members)[key], message, profile);
  return value === null ? null : { name, key, value };
}
function corrected(value: unknown, message: string, { fields }: Profile): unknown {
  const type = / of type (\w+)$/.exec(message)?.[1];
  // of a duration the kubelet says that it wants a text, and a number has no unit
  if (typeof value === "number")
    return type === "string" && fields.get(fieldIn(message)) === "map[string]string" ? String(value) : null;
  if (typeof value !== "string") return null;
  if (type === "int32" || type === "int64") return /^-?\d{1,9}$/.test(value) ? Number(value) : null;
  if (type === "bool") return value === "true" || value === "false" ? value === "true" : null;
  return type === undefined ? meantDuration(value) : null;
}
const fieldIn = (message: string): string => /KubeletConfiguration\.(\w+)/.exec(message)?.[1] ?? "";

const patchOf = ({ name, key, value }: Meant): unknown => ({ [name]: key === undefined ? value : { [key]: value } });

function mended(document: Members, meant: readonly Meant[]): Members {
  const whole = new Map(Object.entries(document));
  const maps = new Map<string, Map<string, unknown>>();
  for (const { name, key, value } of meant) {
    if (key === undefined) {
      whole.set(name, value);
      continue;
    }
    const entries = maps.get(name) ?? new Map(Object.entries(document[name] as Members));
    maps.set(name, entries.set(key, value));
  }
  for (const [name, entries] of maps) whole.set(name, Object.fromEntries(entries));
  return Object.fromEntries(whole);
}
