import type { Reasons } from "../reasons.ts";
import type { GcInput } from "./input.ts";
import { isAfter } from "./unix-nanos.ts";

/** What of the runtime's lists cannot be, or is not whole: each by name, and none of it is a reason to remove more. */
export function doubts(
  { now, containers, sandboxes, sandboxIds, runtime }: GcInput,
  reasons: Reasons,
  needs: string[],
): void {
  const nowText = now < 0n ? "0" : now.toString();
  // those of a sandbox mostly follow each other
  let listed: string | undefined;
  for (const { id, podSandboxId, metadata, createdAt } of containers) {
    if (podSandboxId !== undefined && (podSandboxId === listed || sandboxIds.has(podSandboxId))) listed = podSandboxId;
    else reasons.add("sandbox_not_listed", id, "podSandboxId", { podSandboxId });
    if (metadata.attempt === undefined) reasons.add("attempt_missing", id, "attempt");
    if (isAfter(createdAt, nowText)) reasons.add("created_in_future", id, "createdAt", { createdAt });
  }
  for (const { id, metadata, createdAt } of sandboxes) {
    if (metadata.attempt === undefined) reasons.add("attempt_missing", id, "attempt");
    if (isAfter(createdAt, nowText)) reasons.add("created_in_future", id, "createdAt", { createdAt });
  }
  for (const list of ["podLogDirectories", "danglingLogLinks"] as const) {
    if (runtime[list] === undefined) needs.push(`runtime.${list}`);
  }
}
