import type * as z from "zod";
import { nearName } from "../../api/model/near-name.ts";

/** A fault of one setting, in one line. */
export interface SettingFault {
  readonly setting: string;
  readonly message: string;
}
const LONGEST_VALUE = 60;

/** The setting, the allowed values and the given value of each issue. `names`: the settings that exist. */
export const faultsOf = (
  issues: readonly z.core.$ZodIssue[],
  settings: Readonly<Record<string, unknown>>,
  names: readonly string[],
): readonly SettingFault[] =>
  issues.flatMap((issue) => {
    if (issue.code === "unrecognized_keys")
      return issue.keys.map((key) => ({ setting: key, message: unknown(key, names) }));
    const setting = String(issue.path[0] ?? "settings");
    const value = settings[setting];
    if (value === undefined) return [{ setting, message: "must be set" }];
    return [{ setting, message: `${allowed(issue)}, not ${shown(value)}${hintOf(value)}` }];
  });

function unknown(name: string, names: readonly string[]): string {
  const near = nearName(name, names);
  return near === null ? "no such setting" : `no such setting; ${near}?`;
}

function allowed(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_value":
      return `must be ${issue.values.map(String).join(" or ")}`;
    case "invalid_type":
      return `must be ${KIND_OF[issue.expected] ?? issue.expected}`;
    case "too_small":
      return issue.origin === "string" ? "must not be empty" : `must be at least ${issue.minimum}`;
    case "too_big":
      return issue.origin === "string" ? `may have ${issue.maximum} characters` : `must be at most ${issue.maximum}`;
    case "invalid_format":
      return issue.format === "url" ? "must be an address such as https://node-1:10250/pods" : issue.message;
    default:
      return issue.message;
  }
}
const KIND_OF: Readonly<Record<string, string>> = {
  number: "a number",
  int: "a whole number",
  string: "a text",
  boolean: "true or false",
};

/** A hint for a setting that is no switch. */
const hintOf = (value: unknown): string =>
  typeof value === "boolean" ? " (which YAML makes of yes, no, y, n, on and off: quote a text)" : "";

function shown(value: unknown): string {
  if (value === null) return "empty";
  const text = redacted(typeof value === "string" ? value : JSON.stringify(value));
  const cut = text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text;
  // a text that looks like a number was quoted
  return typeof value === "string" ? `the text \`${cut}\`` : `\`${cut}\``;
}

/** Passwords in addresses, bearer tokens and the API's own: errors of other parties may repeat them. */
export const redacted = (text: string): string =>
  text
    .replace(/(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@"'`]+@/gi, "$1***@")
    .replace(/\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]+/gi, "$1 ***")
    .replace(/\bnw_[0-9a-f]+_[0-9a-f]+\b/gi, "nw_***");
