import type { InputIssue } from "../base/input-issue.ts";
import { ok, type Result } from "../base/result.ts";
import type { LintFinding } from "../decide/lint/finding.ts";
import { lintConfiguration } from "../decide/lint/lint.ts";
import { decodeSnapshot } from "../model/decode.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { type EffectiveSnapshot, effectiveSnapshot } from "../profiles/effective.ts";
import type { Profile } from "../profiles/profile.ts";
import { asReported } from "./replay/new-status.ts";
import { type Change, changed, profileOfChange } from "./replay/parsed.ts";

/** A node as it is, and as its kubelet reports it after a restart with a change. */
interface Sides {
  readonly before: EffectiveSnapshot;
  readonly after: EffectiveSnapshot;
}

/**
 * A snapshot with and without a change of its configuration; the rest stays. `profile`: that of the node. Errors: every issue of
 * the new configuration.
 */
export function sidesOf(snapshot: Snapshot, change: Change, profile: Profile): Result<Sides, readonly InputIssue[]> {
  const stored = JSON.parse(JSON.stringify({ kubeletConfiguration: snapshot.kubeletConfiguration }));
  const configured = decodeSnapshot(changed(stored, change, profile));
  if (!configured.ok) return configured;
  const before = effectiveSnapshot(snapshot, profile);
  const after = effectiveSnapshot({ ...snapshot, ...configured.value }, profileOfChange(change, profile));
  return ok({ before, after: asReported(before, after) });
}

/** A configuration from a file or /configz, with its node. */
interface Linted {
  readonly configuration: unknown;
  readonly snapshot: Snapshot;
  readonly profile: Profile;
}

/** The lint findings of a new configuration that the old one does not have. */
export function newFindings(before: Linted, after: Linted): readonly LintFinding[] {
  const known = new Set(findingsOf(before).map(keyOf));
  return findingsOf(after).filter((finding) => !known.has(keyOf(finding)));
}
const findingsOf = ({ configuration, snapshot, profile }: Linted): readonly LintFinding[] =>
  lintConfiguration(configuration, snapshot, profile);
const keyOf = ({ code, field, message }: LintFinding): string => JSON.stringify([code, field, message]);
