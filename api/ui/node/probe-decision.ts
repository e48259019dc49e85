import type { ProbesDecision } from "../../model/probes-decision.ts";

/** A recorded dry run; null where another version wrote what cannot be drawn. */
export function probesIn(body: string): ProbesDecision | null {
  const decision = decisionIn(body);
  if (typeof decision !== "object" || decision === null) return null;
  const { containers, endMs } = decision as Partial<ProbesDecision>;
  const isDrawn = Array.isArray(containers) && Number.isFinite(endMs) && containers.every(isContainer);
  return isDrawn ? (decision as ProbesDecision) : null;
}

const LISTS = ["runs", "started", "ready", "probes"] as const;
const isContainer = (container: unknown): boolean =>
  typeof container === "object" &&
  container !== null &&
  LISTS.every((name) => Array.isArray((container as Record<string, unknown>)[name]));

function decisionIn(body: string): unknown {
  try {
    return (JSON.parse(body) as { decision?: unknown } | null)?.decision;
  } catch {
    return null;
  }
}
