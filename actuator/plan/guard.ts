import { err, ok, type Result } from "../../api/base/result.ts";
import { ruleOf } from "./cgroup-files.ts";
import type { MkdirStep, RmdirStep, WriteStep } from "./step.ts";
import { sameValue } from "./values.ts";

const GUARD_CODES = [
  "boot_changed",
  "root_changed",
  "value_changed",
  "cgroup_vanished",
  "cgroup_replaced",
  "cgroup_appeared",
  "has_processes",
] as const;

/** The target of a step has changed since the plan was made: observe and plan again. */
export interface GuardRefusal {
  readonly code: (typeof GUARD_CODES)[number];
  readonly message: string;
}

type Verdict = Result<"go" | "unchanged", GuardRefusal>;
const refuse = (code: GuardRefusal["code"], message: string): Verdict => err({ code, message });

/** Refuses a plan from another boot, whose cgroups no longer exist even if paths are equal. */
export function guardPlan(
  plan: { readonly bootId: string; readonly root: string },
  now: { readonly bootId: string; readonly root: string },
): Verdict {
  if (plan.bootId !== now.bootId) {
    return refuse("boot_changed", `planned at boot ${plan.bootId}, this is boot ${now.bootId}: observe again`);
  }
  if (plan.root !== now.root) {
    return refuse("root_changed", `planned below ${plan.root}, the root here is ${now.root}: observe again`);
  }
  return ok("go");
}

/** A new cgroup may not be there yet; one that is completed still must be. */
export function guardMkdir(step: MkdirStep, exists: boolean): Verdict {
  if (step.fresh && exists) return refuse("cgroup_appeared", `${step.path} was created by another program meanwhile`);
  if (!step.fresh && !exists) return refuse("cgroup_vanished", `${step.path} is gone`);
  return ok("go");
}

interface WriteNow {
  /** The directory's identity; null: no such cgroup. */
  readonly identity: string | null;
  /** The file's text; null: no such file. */
  readonly text: string | null;
  readonly version: 1 | 2;
  readonly pageSize: number;
}

/** `unchanged`: the file already has the wanted value. */
export function guardWrite(step: WriteStep, now: WriteNow): Verdict {
  if (now.identity === null) return refuse("cgroup_vanished", `${step.path} is gone`);
  if (step.identity !== null && step.identity !== now.identity) {
    return refuse("cgroup_replaced", `${step.path} was removed and made again since it was observed`);
  }
  const rule = ruleOf(now.version, step.file);
  if (rule === null || now.text === null) return ok("go");
  if (sameValue(rule, step.to, now.text, now.pageSize)) return ok("unchanged");
  if (step.from === null || sameValue(rule, step.from, now.text, now.pageSize)) return ok("go");
  return refuse(
    "value_changed",
    `${step.path} ${step.file} was \`${step.from}\` when the plan was made and is \`${now.text}\` now`,
  );
}

/** Allows the removal of an empty cgroup, if it is the observed one. */
export function guardRmdir(
  step: RmdirStep,
  now: { readonly identities: Readonly<Record<string, string>>; readonly processes: number },
): Verdict {
  const seen = Object.entries(now.identities);
  if (seen.length === 0) return ok("unchanged");
  if (seen.some(([controller, id]) => (step.identities[controller] ?? id) !== id)) {
    return refuse("cgroup_replaced", `${step.path} was removed and made again since it was observed`);
  }
  if (now.processes > 0) return refuse("has_processes", `${step.path} holds ${now.processes} processes`);
  return ok("go");
}
