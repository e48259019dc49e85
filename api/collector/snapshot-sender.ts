import { hash } from "node:crypto";
import * as z from "zod";
import { type Fields, fieldsOf } from "../base/own.ts";
import { ok, type Result } from "../base/result.ts";
import type { Kind } from "../model/decision.ts";
import { decodeSnapshot } from "../model/decode.ts";
import { digestingDifference, type SnapshotDigests } from "../model/snapshot-difference.ts";
import { RETRY_TURNS_MS, turnRefusal } from "../model/turn.ts";
import { type ApiClient, type ApiFault, objectIn } from "./api-client.ts";

/** The API accepted a node's snapshot. */
interface SnapshotAccepted {
  readonly decisions: number;
  /** Why the API made no decision. */
  readonly refused?: ApiFault;
}

/** What is remembered of a node between two turns: digests and ids, some 24 kB for a node with 110 pods. */
interface SentSnapshot {
  readonly snapshotId: string;
  readonly digests: SnapshotDigests;
  /** The ids of its last decisions, which the API need not send again: their content is not used here. */
  readonly holds: ReadonlyMap<Kind, string>;
}

const turnAnswer = z.looseObject({ snapshotId: z.string(), decisions: z.array(z.looseObject({})) });
// 22 characters of base64url are 132 bits
const { digestsOf, changesSince } = digestingDifference((text) => hash("sha256", text, "base64url").slice(0, 22));

/**
 * The stats without what decisions do not read, which is two thirds of what a kubelet prints, and differs each time. Stats that are
 * not valid stay whole: the API answers what is wrong.
 */
export function neededStats(printed: unknown): unknown {
  const decoded = decodeSnapshot({ stats: printed });
  const stats = decoded.ok ? decoded.value.stats : undefined;
  if (stats?.node === undefined) return printed;
  // not stored, but compared with the node that they are posted for
  const { nodeName } = fieldsOf(fieldsOf(printed)["node"]);
  return { ...stats, node: { nodeName, ...stats.node } };
}

/** Sends snapshots of nodes to an API for decisions: by turns, or as whole snapshots if the API has no turns or does not know the base. */
export class SnapshotSender {
  readonly #send: ApiClient["send"];
  readonly #known = new Map<string, SentSnapshot>();
  #noTurnsUntilMs = Number.NEGATIVE_INFINITY;

  constructor(send: ApiClient["send"]) {
    this.#send = send;
  }

  /** A node's snapshots are sent one after the other. Errors: the API is unreachable, or refuses the snapshot. */
  async send(node: string, read: Fields, kinds: readonly Kind[]): Promise<Result<SnapshotAccepted, ApiFault>> {
    const snapshot = "stats" in read ? { ...read, stats: neededStats(read["stats"]) } : read;
    if (performance.now() >= this.#noTurnsUntilMs) {
      const first = await this.#turn(node, snapshot, kinds);
      if (typeof first === "object") return first;
      this.#known.delete(node);
      const second = first === "send whole" ? await this.#turn(node, snapshot, kinds) : first;
      if (typeof second === "object") return second;
      this.#noTurnsUntilMs = performance.now() + RETRY_TURNS_MS;
    }
    return this.#sendWhole(node, snapshot, kinds);
  }

  forget(node: string): void {
    this.#known.delete(node);
  }

  async #turn(
    node: string,
    snapshot: Fields,
    kinds: readonly Kind[],
  ): Promise<Result<SnapshotAccepted, ApiFault> | "send whole" | "no turns"> {
    const known = this.#known.get(node);
    const changes = known === undefined ? null : changesSince(known.digests, snapshot);
    const decisions = kinds.map((kind) => ({ kind, explain: "off", holds: known?.holds.get(kind) }));
    const begin = known === undefined || changes === null ? { snapshot } : { base: known.snapshotId, changes };
    const path = `v1/nodes/${encodeURIComponent(node)}/turns`;
    const sent = await this.#send("POST", path, JSON.stringify({ ...begin, decisions }));
    if (!sent.ok) {
      const refusal = turnRefusal(sent.error.status, known !== undefined);
      return refusal === "refused" ? sent : refusal;
    }
    const turn = turnAnswer.safeParse(objectIn(sent.value));
    if (!turn.success) return "no turns";
    const answers = turn.data.decisions.filter((one) => "decision" in one || "holds" in one);
    const holds = new Map(answers.map(({ kind, id }) => [kind as Kind, String(id)] as const));
    const digests = digestsOf(snapshot);
    if (digests === null) this.#known.delete(node);
    else this.#known.set(node, { snapshotId: turn.data.snapshotId, digests, holds });
    return ok({ decisions: answers.length });
  }

  async #sendWhole(
    node: string,
    snapshot: Fields,
    kinds: readonly Kind[],
  ): Promise<Result<SnapshotAccepted, ApiFault>> {
    const path = `v1/nodes/${encodeURIComponent(node)}/snapshot`;
    const stored = await this.#send("PUT", path, JSON.stringify(snapshot));
    if (!stored.ok) {
      // when the API responds again, it may be a different one
      if (stored.error.status === undefined) this.#noTurnsUntilMs = Number.NEGATIVE_INFINITY;
      return stored;
    }
    const { id } = objectIn(stored.value);
    const lines = kinds.map((kind) => JSON.stringify({ kind, snapshotId: id, explain: "off" }));
    if (lines.length === 0) return ok({ decisions: 0 });
    const answered = await this.#send("POST", "v1/batch", lines.join("\n"), "application/x-ndjson");
    if (!answered.ok)
      return ok({ decisions: 0, ...(answered.error.code === "refused" && { refused: answered.error }) });
    return ok({ decisions: answered.value.split("\n").filter((line) => "decision" in objectIn(line)).length });
  }
}
