import type { PodAsk } from "../../model/ask.ts";
import type { Asked, Decided, Refusal } from "../../model/decision.ts";
import type { CpuAssignment, CpusDecision } from "../../model/managers.ts";
import { containersOf, podUid } from "../../model/pod.ts";
import { ok, type Result } from "../../model/result.ts";
import { configurationOf } from "../config.ts";
import { type Answered, decideWith } from "../managers/desk.ts";
import { podNames } from "../managers/pods.ts";
import type { Reasons } from "../reasons.ts";
import { explainCpus } from "./explain.ts";
import { parseCpus } from "./go-cpu-set.ts";
import { type CurrentCpus, reconcile } from "./reconcile.ts";
import { cpuText, NO_CPUS } from "./sets.ts";
import { sharedCpus, sorted } from "./state.ts";

/** Who has which CPUs, what the asked pod would get or why not, and which cpusets must change now. */
export function decideCpus(asked: Asked<PodAsk>): Result<Decided<CpusDecision>, Refusal> {
  const config = configurationOf(asked.snapshot);
  const head = {
    policy: config.cpuManagerPolicy === "static" ? "static" : "none",
    options: config.cpuManagerPolicyOptions ?? {},
  } as const;
  return decideWith<CpusDecision>(asked, {
    decided: (answered, reasons) => ok({ ...head, ...decided(answered, reasons) }),
    notStarted: (startErrors, warnings) => ({ ...head, ...NOTHING, startErrors, warnings }),
  });
}

const NOTHING = {
  refusal: null,
  reserved: "",
  sharedPool: "",
  assigned: [],
  assignments: [],
  placements: [],
  reconcile: [],
  overlaps: [],
} as const;

function decided(answered: Answered, reasons: Reasons): Omit<CpusDecision, "policy" | "options"> {
  const { node, pod, before, after, placements, refusal } = answered;
  const { defaultCpus, assignments } = after.cpus.state();
  const uid = pod === null ? "" : (podUid(pod) ?? "");
  const shared = cpuText(defaultCpus);
  const names = podNames(pod === null ? node.active : [...node.active, pod]);
  explainCpus(answered, reasons);
  return {
    startErrors: [],
    warnings: answered.warnings,
    refusal,
    reserved: cpuText(node.cpuPolicy.name === "static" ? node.cpuPolicy.reserved : NO_CPUS),
    sharedPool: shared,
    assigned:
      refusal === null && pod !== null
        ? containersOf(pod).map(({ name }) => {
            const own = after.cpus.cpusOf(uid, name);
            return { container: name, cpus: own === undefined ? shared : cpuText(own), exclusive: own !== undefined };
          })
        : [],
    assignments: sorted(assignments).flatMap(([of, containers]) =>
      sorted(containers).map(
        ([container, cpus]): CpuAssignment => ({ pod: names(of), container, cpus: cpuText(cpus) }),
      ),
    ),
    placements,
    reconcile: reconcile(after.cpus, node.active, currentOf(answered, before)).changes,
    overlaps: sharedCpus(assignments).map(({ cpus, holders }) => ({
      cpus: cpuText(cpus),
      holders: holders.map((holder) => ({ pod: names(holder.uid), container: holder.container })),
    })),
  };
}

/** What containers have: as observed, else as the state before the asked pod has it; after a start nobody knows. */
function currentOf({ node, pod }: Answered, before: Answered["before"]): CurrentCpus {
  const observed = node.snapshot.cgroup?.cpusets ?? {};
  const { defaultCpus } = before.cpus.state();
  return (uid, container, containerId) => {
    const text = observed[containerId];
    const seen = text === undefined ? undefined : parseCpus(text);
    if (seen?.ok) return seen.value;
    return pod === null ? undefined : (before.cpus.cpusOf(uid, container) ?? defaultCpus);
  };
}
