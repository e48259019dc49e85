import type { AllocatableDecision, CgroupsDecision, Kind } from "../../model/decision.ts";
import { humanBytes, isBytes, magnitude } from "../../text/size.ts";
import { plural } from "../node/section.ts";

/** The verdict in a sentence, of the kinds whose text begins with a table; null: the text says it itself. */
export function verdictSentence(kind: Kind, decision: unknown): string | null {
  if (kind === "cgroups") return ofCgroups(decision as CgroupsDecision);
  return kind === "allocatable" ? ofAllocatable(decision as AllocatableDecision) : null;
}

function ofCgroups({ cgroups, version, driver }: CgroupsDecision): string {
  const pods = new Set(cgroups.flatMap(({ pod }) => (pod === null ? [] : [pod.uid]))).size;
  return `${plural(cgroups.length, "cgroup")} for ${plural(pods, "pod")}: cgroup v${version}, ${driver} driver.`;
}

/** What one asks for first. */
const NAMES = ["cpu", "memory", "pods"] as const;

function ofAllocatable({ capacity, allocatable, errors }: AllocatableDecision): string {
  if (errors.length > 0) return "The kubelet does not start with this configuration.";
  const told = NAMES.filter((name) => allocatable[name] !== undefined && capacity[name] !== undefined).map(
    (name) => `${name} ${amount(name, allocatable[name])} of ${amount(name, capacity[name])}`,
  );
  return told.length === 0 ? "No capacity is known, so nothing is allocatable." : `Allocatable: ${told.join(", ")}.`;
}

const amount = (name: string, quantity = ""): string => (isBytes(name) ? humanBytes(magnitude(quantity)) : quantity);
