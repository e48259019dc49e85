import type { SettingFault } from "../setting-fault.ts";

/** The worst first. */
export const LINT_SEVERITIES = ["refuses-start", "error", "warning", "note"] as const;
export type LintSeverity = (typeof LINT_SEVERITIES)[number];

/** What is wrong with one setting of a KubeletConfiguration, or likely to be. */
export interface LintFinding {
  /** Stable, in kebab-case. */
  readonly code: string;
  readonly severity: LintSeverity;
  /** JSON path in the KubeletConfiguration: `evictionHard["memory.available"]`. */
  readonly field: string;
  /** The kubelet's own words where it has some, else ours. */
  readonly message: string;
  /** The message is the kubelet's, byte for byte. */
  readonly kubelet: boolean;
  /** What to do. */
  readonly advice: string;
  /** A merge patch (RFC 7396) of the configuration that mends it; null: a person must choose. */
  readonly fix: unknown;
}

/** With the kubelet's words a fault keeps it from starting. */
export const refusal = (
  code: string,
  { field, message }: SettingFault,
  advice: string,
  fix: unknown = null,
): LintFinding => ({ code, severity: "refuses-start", field, message, kubelet: true, advice, fix });

type Own = Pick<LintFinding, "code" | "field" | "message" | "advice"> & { readonly fix?: unknown };
const own =
  (severity: LintSeverity) =>
  ({ fix = null, ...rest }: Own): LintFinding => ({ ...rest, severity, kubelet: false, fix });
/** It does not do what is written. */
export const error = own("error");
/** It does, and harms. */
export const warning = own("warning");
/** Good to know. */
export const note = own("note");

const rank = ({ severity }: LintFinding): number => LINT_SEVERITIES.indexOf(severity);
const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** By severity, then field, then code; what was found twice is told once. */
export function inOrder(findings: readonly LintFinding[]): readonly LintFinding[] {
  const told = new Map<string, LintFinding>();
  for (const finding of findings) {
    const key = `${finding.field}\n${finding.message}`;
    if (!told.has(key)) told.set(key, finding);
  }
  return [...told.values()].sort(
    (a, b) => rank(a) - rank(b) || byText(a.field, b.field) || byText(a.code, b.code) || byText(a.message, b.message),
  );
}

/** Of those with the same code and field the first. */
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
