import { byKey, byText } from "../../base/order.ts";
import { type Fields, fieldsOf } from "../../base/own.ts";
import { goDuration } from "../eviction/threshold.ts";
import { goDurationText } from "../go/strconv.ts";
import type { SettingFault } from "../setting-fault.ts";

/**
 * A configuration as posted, read as Go reads it: an undecodable value counts as absent, and an absent value is Go's
 * zero.
 */
export class RawConfiguration {
  readonly raw: Fields;
  constructor(raw: Fields) {
    this.raw = raw;
  }
  has(name: string): boolean {
    return this.raw[name] !== undefined && this.raw[name] !== null;
  }
  number(name: string): number {
    const value = this.raw[name];
    return typeof value === "number" ? value : 0;
  }
  text(name: string): string {
    const value = this.raw[name];
    return typeof value === "string" ? value : "";
  }
  flag(name: string): boolean {
    return this.raw[name] === true;
  }
  list(name: string): readonly unknown[] {
    const value = this.raw[name];
    return Array.isArray(value) ? value : [];
  }
  inside(name: string): RawConfiguration {
    return new RawConfiguration(fieldsOf(this.raw[name]));
  }
  /** The entries of a map of texts. */
  texts(name: string): readonly (readonly [string, string])[] {
    return Object.entries(this.inside(name).raw)
      .filter((entry): entry is [string, string] => typeof entry[1] === "string")
      .sort(byKey);
  }
  /** A duration in nanoseconds. */
  nanos(name: string): number {
    const value = this.raw[name];
    const read = typeof value === "string" ? goDuration(value) : undefined;
    return read?.ok ? read.value.nanos : 0;
  }
}

/** A duration as Go prints it. */
export const spanText = (nanos: number): string => goDurationText(BigInt(Math.trunc(nanos)));
export const SECOND = 1e9;

/** The severities, the worst first. */
export const LINT_SEVERITIES = ["refuses-start", "error", "warning", "note"] as const;
export type LintSeverity = (typeof LINT_SEVERITIES)[number];

/** A fault, or likely fault, of one setting of a KubeletConfiguration. */
export interface LintFinding {
  /** Stable, in kebab-case. */
  readonly code: string;
  readonly severity: LintSeverity;
  /** JSON path in the KubeletConfiguration: `evictionHard["memory.available"]`; or a flag: `--max-pods`. */
  readonly field: string;
  /** The kubelet's own words where it has some, else ours. */
  readonly message: string;
  /** The message is the kubelet's, byte for byte. */
  readonly kubelet: boolean;
  /** The advice on what to do. */
  readonly advice: string;
  /** A merge patch (RFC 7396) that corrects the configuration; null: a person must choose. */
  readonly fix: unknown;
}

/** Creates a finding with the kubelet's words: the fault keeps it from starting. */
export const refusal = (
  code: string,
  { field, message }: SettingFault,
  advice: string,
  fix: unknown = null,
): LintFinding => ({ code, severity: "refuses-start", field, message, kubelet: true, advice, fix });

type FindingParts = Pick<LintFinding, "code" | "field" | "message" | "advice"> & { readonly fix?: unknown };
const findingOf =
  (severity: LintSeverity) =>
  ({ fix = null, ...rest }: FindingParts): LintFinding => ({ ...rest, severity, kubelet: false, fix });
/** Creates a finding for a setting that does not have the written effect. */
export const error = findingOf("error");
/** Creates a finding for a setting that works but causes harm. */
export const warning = findingOf("warning");
/** Creates a finding that is only good to know. */
export const note = findingOf("note");

/** Whether a finding is about the command line and not about a field of the configuration. */
export const isOfCommandLine = ({ field }: Pick<LintFinding, "field">): boolean => field.startsWith("-");

const rank = ({ severity }: LintFinding): number => LINT_SEVERITIES.indexOf(severity);

/** Sorts findings by severity, field and code, and removes duplicates. */
export function inOrder(findings: readonly LintFinding[]): readonly LintFinding[] {
  const byKey = new Map<string, LintFinding>();
  for (const finding of findings) {
    const key = `${finding.field}\n${finding.message}`;
    if (!byKey.has(key)) byKey.set(key, finding);
  }
  return [...byKey.values()].sort(
    (a, b) => rank(a) - rank(b) || byText(a.field, b.field) || byText(a.code, b.code) || byText(a.message, b.message),
  );
}

/** Keeps the first of the findings with the same code and field. */
export function oncePerField(findings: readonly LintFinding[]): readonly LintFinding[] {
  const first = new Map<string, LintFinding>();
  for (const finding of findings) {
    const key = `${finding.code}\n${finding.field}`;
    if (!first.has(key)) first.set(key, finding);
  }
  return [...first.values()];
}

/** `evictionHard["memory.available"]`. */
export const entryField = (field: string, name: string): string => `${field}[${JSON.stringify(name)}]`;

/** The quantity that was probably meant by `10MB`, `1 Gi` or `512mib`, as Kubernetes writes it; null: none. */
export function suggestQuantity(text: string): string | null {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([kmgt])(i?)b?\s*$/i.exec(text);
  if (match === null) return null;
  const [, digits = "", letter = "", binary] = match;
  const isBinary = binary !== "";
  const upper = letter.toUpperCase();
  const meant = `${digits}${isBinary ? `${upper}i` : upper === "K" ? "k" : upper}`;
  return meant === text ? null : meant;
}

/** The duration that was probably meant by `30`, `5 min` or `2d`; null: none. */
export function suggestDuration(text: string): string | null {
  const match = /^\s*(\d+)\s*(|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)\s*$/i.exec(text);
  if (match === null) return null;
  const [, digits = "", unit = ""] = match;
  const letter = unit.charAt(0).toLowerCase();
  if (letter === "d") return `${Number(digits) * 24}h`;
  return `${Number(digits)}${letter === "" ? "s" : letter}`;
}
