import { decideProbes } from "../../../api/decide/kinds/probes.ts";
import { decodeProbesAsk } from "../../../api/model/probes.ts";
import type { ProbedContainer, ProbeRun, ProbesDecision } from "../../../api/model/probes-decision.ts";
import type { Snapshot } from "../../../api/model/snapshot.ts";
import { effectiveSnapshot } from "../../../api/profiles/effective.ts";
import { podOf } from "../../kit/pods.ts";

type Fields = Readonly<Record<string, unknown>>;
export const HTTP = { httpGet: { path: "/healthz", port: 8080 } };
/** A pod with one container that has these probes. */
export const probedPod = (probes: Fields, spec: Fields = {}): Fields =>
  podOf([{ name: "app", ...probes }], spec, { metadata: { name: "web", namespace: "shop" } });

/** The whole answer; a refusal or an invalid ask throws. */
export function answerOf(ask: Fields, snapshot: Snapshot = {}) {
  const decoded = decodeProbesAsk(ask);
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
  const decided = decideProbes({
    snapshot: effectiveSnapshot(snapshot),
    facts: {},
    ask: decoded.value,
    explain: "reasons",
  });
  if (!decided.ok) throw new Error(decided.error.message);
  return decided.value;
}
export const dryRun = (pod: Fields, ask: Fields = {}): ProbesDecision => answerOf({ pod, ...ask }).decision;
export const firstOf = (decision: ProbesDecision): ProbedContainer => decision.containers[0] as ProbedContainer;
export const probeOf = (decision: ProbesDecision, type: ProbeRun["type"]): ProbeRun =>
  decision.containers.flatMap(({ probes }) => probes).find((p) => p.type === type) as ProbeRun;
/** `3s fail` for each attempt, in order. */
export const attempts = (decision: ProbesDecision, type: ProbeRun["type"]): readonly string[] =>
  probeOf(decision, type).attempts.map(({ atMs, containerId, outcome }) => `${atMs / 1000}s ${containerId} ${outcome}`);

/** The issues of a refused ask, as `path: message`. */
export function issuesOf(ask: unknown): readonly string[] {
  const decoded = decodeProbesAsk(ask);
  return decoded.ok ? [] : decoded.error.map(({ path, message }) => `${path}: ${message}`);
}
