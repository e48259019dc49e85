import type { Result } from "../../api/base/result.ts";
import {
  curveWeight,
  linearWeight,
  quotaToMilliCpu,
  sharesToMilliCpu,
  weightToMilliCpu,
} from "../../api/decide/resources/cpu-convert.ts";
import type { AllocatableDecision } from "../../api/model/allocatable.ts";
import type { CgroupsDecision } from "../../api/model/cgroups.ts";
import { profileOf } from "../../api/profiles/index.ts";
import { type ApplyReport, applyPlan } from "../apply/apply.ts";
import type { Journal } from "../apply/journal.ts";
import { stepNotices } from "../apply/steps.ts";
import type { Hierarchy } from "../cgroupfs/hierarchy.ts";
import { observeAgain, observeCgroups } from "../cgroupfs/observe.ts";
import type { ActuatorConfig } from "../core/config.ts";
import type { ActivePods, DecisionAnswer, DecisionClient, PodsRead, Problem } from "../core/interfaces.ts";
import type { MachineFacts } from "../machine/facts.ts";
import type { StateFiles } from "../machine/files.ts";
import { type Difference, type Drift, differencesOf, findDrift, leftToRuntime } from "../plan/drift.ts";
import { planWrites, withholdValues } from "../plan/plan.ts";
import { type CgroupState, type LastPassCgroups, lastPassCgroupsOf } from "../plan/state.ts";
import type { Skip } from "../plan/step.ts";
import type { CpuRules } from "../plan/values.ts";
import { driverOf, type SnapshotParts, snapshotOf } from "./snapshot.ts";

/** The policy's own conversions of CPU values, for the causes of drift. */
export const CPU_RULES: CpuRules = {
  linear: linearWeight,
  curve: curveWeight,
  sharesToMilliCpu,
  weightToMilliCpu,
  quotaToMilliCpu,
};

/** Observations, decisions and actions of one pass. */
export interface PassReport {
  readonly at: string;
  readonly snapshot: unknown;
  readonly allocatable: AllocatableDecision | null;
  readonly cgroups: CgroupsDecision | null;
  readonly decisionId: string | null;
  readonly decidedBy: "api" | "here" | null;
  readonly needs: readonly string[];
  /** The drift as it was found, including what the pass corrected. */
  readonly drift: readonly Drift[];
  /** Differences between the files after the pass and the decision; null: the files were not read. */
  readonly differs: readonly Difference[] | null;
  readonly skipped: readonly Skip[];
  readonly applied: ApplyReport | null;
  readonly problems: readonly Problem[];
  readonly notices: readonly Problem[];
}

type Settings = Pick<
  ActuatorConfig,
  "mode" | "nodeName" | "cgroupMount" | "containers" | "removeOrphans" | "kubeletVersion"
>;

/** Observes, decides, plans, checks, applies and reports once. Never throws because of external failures, which are in the report. */
export async function runPass(deps: LoopDeps, settings: Settings, sequence: number): Promise<PassReport> {
  const machine = deps.observeMachine();
  const problems: Problem[] = [];
  const configuration = await deps.readConfiguration();
  const read = await deps.readPods();
  const { assignments, missing } = deps.readStateFiles();
  const nothing: PassReport = {
    at: machine.observedAt,
    snapshot: null,
    allocatable: null,
    cgroups: null,
    decisionId: null,
    decidedBy: null,
    needs: [],
    drift: [],
    differs: null,
    skipped: [],
    applied: null,
    problems,
    notices: [
      ...read.notices,
      ...(deps.configurationNotices?.() ?? []),
      ...missing.map(({ path, why }) => ({ from: "state-files" as const, message: `${path}: ${why}` })),
    ],
  };
  problems.push(...read.problems);
  // INVARIANT: a pod that could not be read never looks like an orphan
  if (!configuration.ok || read.pods === null) {
    if (!configuration.ok) problems.push(configuration.error);
    return nothing;
  }
  const profile = profileOf(settings.kubeletVersion);
  const snapshot = snapshotOf({
    machine,
    profile,
    kubeletConfiguration: configuration.value,
    pods: read.pods,
    cgroup: { driver: driverOf(configuration.value, profile), root: settings.cgroupMount },
    nodeName: settings.nodeName,
    sequence,
    ...deps.readDevices?.(),
    ...(assignments === undefined ? {} : { assignments }),
  });
  const allocatable = await deps.client.decide("allocatable", snapshot);
  const answer = await deps.client.decide("cgroups", snapshot);
  if (!allocatable.ok) problems.push(allocatable.error);
  const partial = {
    ...nothing,
    snapshot,
    allocatable: allocatable.ok ? (allocatable.value.decision as AllocatableDecision) : null,
  };
  if (!answer.ok) {
    problems.push(answer.error);
    return partial;
  }
  const decided = { ...partial, ...seen(answer.value) };
  if (deps.hierarchy === null || deps.journal === null) return decided;
  const { notices, ...outcome } = await applyDecision(
    answer.value,
    deps.hierarchy,
    deps.journal,
    machine,
    { ...settings, whole: read.whole, lastPassCgroups: deps.lastPassCgroups ?? { current: null } },
    problems,
  );
  await reportBack(deps, answer.value, machine.observedAt, outcome.applied);
  return { ...decided, ...outcome, notices: [...decided.notices, ...notices] };
}

const seen = (answer: DecisionAnswer) => ({
  cgroups: answer.decision as CgroupsDecision,
  decisionId: answer.id,
  decidedBy: answer.decidedBy,
  needs: answer.needs,
});

interface AppliedDecision extends Pick<PassReport, "drift" | "differs" | "skipped" | "applied"> {
  readonly notices: readonly Problem[];
}
const postponedNotice = (held: readonly string[]): readonly Problem[] =>
  held.length === 0
    ? []
    : [{ from: "pods", message: `not all pods could be read, left as they are: ${held.join(", ")}` }];

async function applyDecision(
  answer: DecisionAnswer,
  hierarchy: Hierarchy,
  journal: Journal,
  machine: MachineFacts,
  settings: Settings & { readonly whole: boolean } & Required<Pick<LoopDeps, "lastPassCgroups">>,
  problems: Problem[],
): Promise<AppliedDecision> {
  const decided = answer.decision as CgroupsDecision;
  const bootId = machine.system.bootID ?? "";
  const stays = new Set(decided.cgroups.map(({ path }) => path));
  const state = observeCgroups(hierarchy, { bootId, pageSize: machine.memory.pageSizeBytes ?? 4096, stays });
  // INVARIANT: an unreadable pod list takes nothing from a living pod
  const { decision, held } = settings.whole ? { decision: decided, held: [] } : withholdValues(decided, state);
  const removeOrphans = settings.removeOrphans && settings.whole;
  const written = (path: string, file: string): string | null => journal.written(path, file)?.value ?? null;
  const { lastPassCgroups } = settings;
  const last = lastPassCgroups.current;
  const drift = findDrift(decision, state, written, CPU_RULES, last);
  const leave = (now: CgroupState): readonly Difference[] => {
    lastPassCgroups.current = lastPassCgroupsOf(decided, now);
    const isSame = now === state && decision === decided;
    return differencesOf(decided, now, isSame ? drift : findDrift(decided, now, written, CPU_RULES, last));
  };
  const plan = planWrites(decision, state, { ...settings, removeOrphans, leave: leftToRuntime(decision, drift) });
  if (!plan.ok) {
    problems.push({ from: "cgroupfs", message: plan.error.message });
    return { drift, differs: leave(state), notices: postponedNotice(held), skipped: [], applied: null };
  }
  const applied = await applyPlan({
    plan: plan.value,
    hierarchy,
    journal,
    decisionId: answer.id ?? "decided-here",
    bootId,
    dryRun: settings.mode === "observe",
  });
  if (applied.journalError !== null) problems.push({ from: "journal", message: applied.journalError.message });
  if (removeOrphans && !applied.dryRun) await hierarchy.sweep();
  const touched = applied.dryRun ? [] : applied.results.map(({ step }) => step.path);
  const differs = leave(observeAgain(hierarchy, state, new Set(touched)));
  const notices = [...postponedNotice(held), ...stepNotices(applied.results, hierarchy)];
  return { drift, differs, notices, skipped: plan.value.skipped, applied };
}

/** Reports the results; a pass that did nothing reports nothing. */
async function reportBack(
  deps: LoopDeps,
  answer: DecisionAnswer,
  at: string,
  applied: ApplyReport | null,
): Promise<void> {
  if (applied === null || applied.results.length === 0) return;
  const results = applied.results.map(({ step, ...result }) => ({ ...step, ...result }));
  await deps.client.report({ at, dryRun: applied.dryRun, complete: applied.complete, results }, answer);
}

/** Everything of the world that one pass touches. */
export interface LoopDeps {
  readonly observeMachine: () => MachineFacts;
  /** Reads the pods. `inForce`: which of two pods with one name counts; absent: as last given. */
  readonly readPods: (inForce?: ActivePods) => Promise<PodsRead>;
  readonly readConfiguration: () => Promise<Result<unknown, Problem>>;
  /** Omissions of the configuration that was read last; absent: they are not reported. */
  readonly configurationNotices?: () => readonly Problem[];
  readonly readStateFiles: () => StateFiles;
  /** `devices`, `devicePlugins` and `kubelet` of a snapshot; absent: no plugins are served here. */
  readonly readDevices?: () => Pick<SnapshotParts, "devices" | "devicePlugins" | "kubelet">;
  readonly client: DecisionClient;
  /** The hierarchy; null: this machine has no usable cgroup hierarchy. */
  readonly hierarchy: Hierarchy | null;
  readonly journal: Journal | null;
  /** The cgroups that the last pass left behind, for the next one; absent: each is the first. */
  readonly lastPassCgroups?: { current: LastPassCgroups | null };
}
