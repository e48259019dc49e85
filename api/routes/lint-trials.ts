import type { StoreFailure } from "../../db/failure.ts";
import type { DecisionRow, Store } from "../../db/store.ts";
import { type LintFinding, lintConfiguration } from "../decide/lint/lint.ts";
import { type Path, stepsOf } from "../inputs/origin.ts";
import { decodeSnapshot } from "../model/decode.ts";
import { ok, type Result } from "../model/result.ts";
import { isObject } from "../replay/change.ts";
import { postedSnapshot } from "../replay/parsed.ts";
import { type Replayed, type Replayer, replayer } from "../replay/replay-one.ts";

type Snapshots = Pick<Store, "getSnapshot">;
/** Whether a finding touched a recorded decision. `before`: as it would be decided today. Errors: the history's. */
export type Trial = (row: DecisionRow, before: Replayed) => Promise<Result<boolean, StoreFailure>>;

/** With the finding's patch it would have been another. */
export function fixTrial(store: Snapshots, fix: unknown): Trial {
  const replay = replayer(store, { kubeletConfigurationPatch: fix });
  return async (row, before) => {
    const after = await replay(row);
    return after.ok ? ok(isOther(before, after.value)) : after;
  };
}

/**
 * Its own configuration has the finding too, by code and field, and its answer either has the finding's message, such as a
 * start error, or would be another without the field.
 */
export function findingTrial(store: Snapshots, { code, field }: LintFinding, recordedOf: RecordedFindings): Trial {
  const path = namesIn(field);
  const replay: Replayer = replayer(store, { kubeletConfigurationPatch: withoutAt(path) });
  return async (row, before) => {
    const recorded = await recordedOf(row);
    if (!recorded.ok) return recorded;
    const { configuration, findings } = recorded.value;
    const same = findings.find((finding) => finding.code === code && finding.field === field);
    if (same === undefined) return ok(false);
    if (says(before, same.message)) return ok(true);
    if (!isThere(configuration, path)) return ok(false);
    const after = await replay(row);
    return after.ok ? ok(isOther(before, after.value)) : after;
  };
}

/** The configuration that a decision was made with, and what is found in it on its node. Errors: the history's. */
export type RecordedFindings = (row: DecisionRow) => Promise<Result<Recorded, StoreFailure>>;
interface Recorded {
  readonly configuration: unknown;
  readonly findings: readonly LintFinding[];
}
const NOTHING: Recorded = { configuration: undefined, findings: [] };

/** Keeps the last: several kinds are decided on one snapshot. */
export function recordedFindings(store: Snapshots): RecordedFindings {
  let last: { readonly id: string | null; readonly recorded: Recorded } = { id: null, recorded: NOTHING };
  return async ({ snapshotId: id }) => {
    if (id === last.id || id === null) return ok(id === null ? NOTHING : last.recorded);
    const stored = await store.getSnapshot(id);
    if (!stored.ok) return stored;
    const body = stored.value === null ? ok({}) : postedSnapshot(stored.value);
    if (!body.ok) return body;
    last = { id, recorded: findingsIn(body.value) };
    return ok(last.recorded);
  };
}

function findingsIn({ kubeletConfiguration: configuration, ...rest }: Readonly<Record<string, unknown>>): Recorded {
  if (!isObject(configuration)) return NOTHING;
  const snapshot = decodeSnapshot(rest);
  return { configuration, findings: lintConfiguration(configuration, snapshot.ok ? snapshot.value : undefined) };
}

/** Compared with what would be decided today, so that a decision of an older version counts for itself. */
function isOther(before: Replayed, after: Replayed): boolean {
  if (before.state === "same" && after.state === "same") return false;
  if (before.answer === null || after.answer === null) return before.answer !== after.answer;
  return JSON.stringify(before.answer.decision) !== JSON.stringify(after.answer.decision);
}
const says = ({ answer, problem }: Replayed, message: string): boolean =>
  JSON.stringify(answer?.decision ?? problem).includes(JSON.stringify(message).slice(1, -1));

/** A list is taken away as a whole: a merge patch does not reach into one. */
function namesIn(field: string): readonly string[] {
  const steps: Path = stepsOf(field);
  const end = steps.findIndex((step) => typeof step === "number");
  return (end === -1 ? steps : steps.slice(0, end)).map(String);
}
const withoutAt = (path: readonly string[]): unknown =>
  path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), null);
function isThere(configuration: unknown, path: readonly string[]): boolean {
  let at = configuration;
  for (const name of path) {
    if (!isObject(at) || !Object.hasOwn(at, name)) return false;
    at = at[name];
  }
  return true;
}
