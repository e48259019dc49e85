import { type Fields, fieldsOf } from "../../base/own.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { decideKind } from "../../decide/kinds/index.ts";
import type { Decided, DecisionOf, Kind } from "../../model/decision.ts";
import { decodeSnapshot } from "../../model/decode.ts";
import { decodeAsk } from "../../model/decode-ask.ts";
import { PRESSURE_CONDITIONS } from "../../model/eviction.ts";
import type { PodRef } from "../../model/forms.ts";
import { traitsOf } from "../../model/kinds.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import type { PodExplanationDecision } from "../../model/why.ts";
import { type ChosenProfile, chooseProfileFor } from "../../profiles/index.ts";
import { rfc3339 } from "../timestamp.ts";
import {
  type Evidence,
  issueText,
  type LocatedSnapshot,
  type ObservedPodAt,
  observed,
  observedNode,
} from "./evidence.ts";
import { podsIn, timeOf } from "./find-pod.ts";

/** A node as it was at some time, as far as the documents show. */
export interface NodeAt {
  readonly node: string;
  readonly snapshot: Snapshot;
  readonly chosen: ChosenProfile;
  readonly basis: PodExplanationDecision["basis"];
  /** Epoch ms; null for the documents as they are. */
  readonly atMs: number | null;
  readonly assumed: readonly string[];
  /** Members of a snapshot that no document has. */
  readonly lacks: ReadonlySet<string>;
}

/** The node and time to put together, and how to treat the pod. */
interface NodeQuery {
  readonly node: string;
  /** Epoch ms; null for the documents as they are. */
  readonly atMs: number | null;
  /** The snapshot to use; if absent, one that is recent enough at that time, or else the documents. */
  readonly stored?: LocatedSnapshot | null;
  /** A pod that counts as running (`with`), or that is left out (`without`), whatever its status. */
  readonly with?: PodRef;
  readonly without?: PodRef;
  /** A pod that is decided on as it is. */
  readonly about?: PodRef;
}

/** A snapshot that is older than this at the requested time is not used: the node may have changed since. Ms. */
const OLDEST_MS = 10 * 60_000;

/** Puts a node together from the documents. Errors: why they do not make a snapshot. */
export function nodeAt(evidence: Evidence, query: NodeQuery): Result<NodeAt, string> {
  const { node, atMs } = query;
  const stored = query.stored ?? lastBefore(evidence, node, atMs);
  const isRecent = stored !== null && (stored === query.stored || Number(atMs) - Number(stored.atMs) <= OLDEST_MS);
  const { input, assumed, pods } = isRecent
    ? { input: stored.value, assumed: [], pods: [] }
    : assembled(evidence, query);
  const own = isRecent
    ? { ...input, pods: withAsked(podsOf(stored.value), query) }
    : { ...input, pods: withAsked(pods, query) };
  const decoded = decodeSnapshot(own);
  if (!decoded.ok) return err(issueText(decoded.error.slice(0, 3)));
  const snapshot = decoded.value;
  return ok({
    node,
    snapshot,
    chosen: chooseProfileFor(snapshot),
    basis: isRecent ? "snapshot" : "documents",
    atMs: isRecent ? stored.atMs : atMs,
    assumed,
    lacks: new Set(missingPieces(evidence, snapshot, query)),
  });
}

function lastBefore({ snapshots }: Evidence, node: string, atMs: number | null): LocatedSnapshot | null {
  const before = snapshots.filter((one) => one.node === node && one.atMs !== null && atMs !== null && one.atMs <= atMs);
  return before.reduce<LocatedSnapshot | null>((a, b) => (a === null || Number(b.atMs) > Number(a.atMs) ? b : a), null);
}

const podsOf = (snapshot: Fields): readonly Fields[] => {
  const { pods } = snapshot;
  const list = Array.isArray(pods) ? pods : fieldsOf(pods)["items"];
  return Array.isArray(list) ? list.map(fieldsOf) : [];
};

/** The pieces that are missing. A single pod, as `kubectl get pod NAME` prints it, says nothing about the other pods. */
function missingPieces(
  evidence: Evidence,
  snapshot: Snapshot,
  { node, with: asked, without, about }: NodeQuery,
): readonly string[] {
  const subject = asked ?? without ?? about;
  const others = evidence.pods.filter((held) => held.node === node && held.ref.uid !== subject?.uid);
  return [
    ...(snapshot.node === undefined ? ["node"] : []),
    ...(others.length === 0 && !isWhole(evidence, node) ? ["pods"] : []),
    ...(snapshot.kubeletConfiguration === undefined ? ["kubeletConfiguration"] : []),
    ...(snapshot.stats === undefined ? ["stats"] : []),
    ...(snapshot.dra?.resourceClaims === undefined ? ["resourceClaims"] : []),
  ];
}

const isWhole = ({ whole, snapshots }: Evidence, node: string): boolean =>
  whole.has(node) || snapshots.some((one) => one.node === node);

/** The pods with the requested pod as running, or without it. */
function withAsked(pods: readonly Fields[], { with: running, without }: NodeQuery): readonly Fields[] {
  const isOf = (pod: Fields, ref: PodRef | undefined): boolean => {
    const { name, namespace = "default", uid } = fieldsOf(pod["metadata"]);
    return (
      ref !== undefined &&
      name === ref.name &&
      namespace === ref.namespace &&
      (ref.uid === "" || uid === undefined || uid === ref.uid)
    );
  };
  return pods.filter((pod) => !isOf(pod, without)).map((pod) => (isOf(pod, running) ? asRunning(pod) : pod));
}

interface Assembled {
  readonly input: Readonly<Record<string, unknown>>;
  readonly pods: readonly Fields[];
  readonly assumed: readonly string[];
}

/** The node's documents as one snapshot, set back to the requested time as far as the documents show what changed since. */
function assembled(evidence: Evidence, { node, atMs }: NodeQuery): Assembled {
  const own = evidence.parts.get(node) ?? {};
  const loose = node === "" ? {} : (evidence.parts.get("") ?? {});
  const merged: Record<string, unknown> = { ...own, ...loose };
  for (const name of ["runtime", "assignments", "dra"]) {
    if (own[name] !== undefined && loose[name] !== undefined)
      merged[name] = { ...fieldsOf(own[name]), ...fieldsOf(loose[name]) };
  }
  const assumed: string[] = [];
  const held = evidence.nodes.get(node);
  const set = held === undefined ? undefined : conditionsAtTime(held.value, atMs, assumed);
  return {
    input: { ...merged, ...(set === undefined ? {} : { node: set }) },
    pods: podsAtTime(evidence, node, atMs, assumed),
    assumed,
  };
}

/** A condition that changed after the time had the opposite status then; several changes cannot be seen. */
function conditionsAtTime(node: Fields, atMs: number | null, assumed: string[]): Fields {
  const status = fieldsOf(node["status"]);
  const { conditions } = status;
  if (atMs === null || !Array.isArray(conditions)) return node;
  const changed = conditions.map((condition: unknown) => {
    const { type, status: is, lastTransitionTime } = fieldsOf(condition);
    const changedMs = timeOf(String(lastTransitionTime ?? ""));
    const known = PRESSURE_CONDITIONS.find((one) => one === type);
    if (known === undefined || changedMs <= atMs || (is !== "True" && is !== "False")) return condition;
    const was = is === "True" ? "False" : "True";
    assumed.push(`${known} ${was}, as it was before ${rfc3339(changedMs)}`);
    return { ...fieldsOf(condition), status: was };
  });
  return { ...node, status: { ...status, conditions: changed } };
}

/** The pods at a time. Times of pods have whole seconds, so one that started in the same second may have been there. */
function podsAtTime(evidence: Evidence, node: string, atMs: number | null, assumed: string[]): readonly Fields[] {
  const here = podsIn(evidence)
    .flatMap(({ held }) => (held !== null && held.node === node ? [held] : []))
    .toSorted(inOrder);
  const full = here.filter(({ snapshot }) => snapshot === null);
  const newest = evidence.snapshots.findLast((one) => one.node === node);
  const counted = full.length > 0 ? full : here.filter(({ snapshot }) => snapshot === newest);
  if (atMs === null) return counted.map(({ value }) => value);
  const states = counted.map((held) => podStateAt(held, atMs));
  const [later, ended] = [states.filter((one) => one === "later"), states.filter((one) => one === "ended since")].map(
    ({ length }) => length,
  );
  if (Number(later) > 0) assumed.push(`${later} that came later left out`);
  if (Number(ended) > 0) assumed.push(`${ended} that ended since counted as running`);
  return counted.flatMap(({ value }, i) => {
    if (states[i] === "later") return [];
    return [states[i] === "ended since" ? asRunning(value) : value];
  });
}

/** A fixed order. The order of the documents is arbitrary, as is that of the kubelet's list. */
function inOrder(a: ObservedPodAt, b: ObservedPodAt): number {
  const [x, y] = [a, b].map(({ createdAt, ref }) => `${createdAt} ${ref.namespace}/${ref.name} ${ref.uid}`);
  return (x as string) < (y as string) ? -1 : 1;
}

/** The pod as the kubelet had it before it ended. */
function asRunning(pod: Fields): Fields {
  const { qosClass } = fieldsOf(pod["status"]);
  return { ...pod, status: { phase: "Running", ...(qosClass === undefined ? {} : { qosClass }) } };
}

function podStateAt(held: ObservedPodAt, atMs: number): "as it is" | "later" | "ended since" {
  const read = observed(held);
  if (!read.ok) return "as it is";
  const { metadata, status } = read.value;
  const began = timeOf(status?.startTime) || timeOf(metadata.creationTimestamp);
  if (began > atMs) return "later";
  if (status?.phase !== "Succeeded" && status?.phase !== "Failed") return "as it is";
  const states = [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])];
  // a pod that was never admitted had no resources allocated
  const endedMs = Math.max(0, ...states.map(({ state }) => timeOf(state?.terminated?.finishedAt)));
  return endedMs > atMs ? "ended since" : "as it is";
}

/** The node without its pods, for decisions that need only its version and configuration. */
export function nodeAlone(evidence: Evidence, node: string | null): NodeAt {
  const { input } = assembled(evidence, { node: node ?? "", atMs: null });
  const decoded = decodeSnapshot({ node: input["node"], kubeletConfiguration: input["kubeletConfiguration"] });
  const snapshot = decoded.ok ? decoded.value : {};
  const lacks = new Set([
    "pods",
    "stats",
    ...(snapshot.kubeletConfiguration === undefined ? ["kubeletConfiguration"] : []),
  ]);
  return {
    node: node ?? "",
    snapshot,
    chosen: chooseProfileFor(snapshot),
    basis: "documents",
    atMs: null,
    assumed: [],
    lacks,
  };
}

/** The target of a decision, as `ask` of the API. */
type DecisionAsk = Readonly<Record<string, unknown>> | undefined;
interface NodeDecision<K extends Kind> {
  readonly decided: Decided<DecisionOf[K]>;
  /** The fields of an explanation's decision except its kind, its excerpt and whether it agrees. */
  readonly head: Pick<PodExplanationDecision, "node" | "policyVersion" | "verdict" | "basis" | "at" | "assumed">;
}

/** Makes a decision of one kind about a node. Errors: why there is no decision, with the missing inputs. */
export function ask<K extends Kind>(
  kind: K,
  then: NodeAt,
  asking: DecisionAsk,
): Result<NodeDecision<K>, { readonly message: string; readonly needs: readonly string[] }> {
  const decoded = decodeAsk(kind, asking ?? null);
  if (!decoded.ok) return err({ message: issueText(decoded.error), needs: [] });
  const { profile, note } = then.chosen;
  const decided = decideKind(kind, { snapshot: then.snapshot, facts: {}, ask: decoded.value, explain: "off" }, profile);
  if (!decided.ok) return err(decided.error);
  const defaults =
    then.lacks.has("kubeletConfiguration") && traitsOf(kind).defaultsConfiguration
      ? ["the kubelet's default configuration"]
      : [];
  return ok({
    decided: decided.value as Decided<DecisionOf[K]>,
    head: {
      node: then.node === "" ? null : then.node,
      policyVersion: profile.policyVersion,
      verdict: decided.value.verdict,
      basis: then.basis,
      at: then.atMs === null ? null : rfc3339(then.atMs),
      assumed: [...then.assumed, ...defaults, ...(note.why === null ? [] : [note.why])],
    },
  });
}

/** The node's condition Ready if it is not true; null if the node is ready or its condition is unknown. */
export function readyOf(
  evidence: Evidence,
  node: string | null,
): {
  readonly status: string;
  readonly since: string | null;
  readonly reason: string;
  readonly message: string;
} | null {
  const held = node === null ? undefined : evidence.nodes.get(node);
  const read = held === undefined ? undefined : observedNode(held);
  const ready = read?.ok === true ? read.value.status?.conditions?.find(({ type }) => type === "Ready") : undefined;
  if (ready === undefined || ready.status === "True") return null;
  const { status = "Unknown", reason = "", message = "", lastTransitionTime } = ready;
  return { status, reason, message, since: lastTransitionTime ?? null };
}
