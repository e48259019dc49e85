import { failure, type StoreFailure } from "../../../db/failure.ts";
import type { Place } from "../../../db/rows.ts";
import type { DecisionFilter, Store } from "../../../db/store.ts";
import { decodeToken, encodeToken } from "../../model/page-token.ts";
import { ok, type Result } from "../../model/result.ts";
import { rfc3339 } from "../timestamp.ts";
import type { Change } from "./parsed.ts";
import type { Compared, Replayer } from "./replay-one.ts";
import { replayPage } from "./replay-page.ts";
import type { ChangedDecision, Tally, UnreadableDecision } from "./tally.ts";

/** Where a replay continues, and what it replays. */
interface Resume extends Place {
  /** When its first decision was made, for the progress. */
  readonly fromMs: number;
  /** The end that was set when it began: what is recorded meanwhile does not make it endless. */
  readonly untilMs: number;
  /** Fingerprint of node, kind and change. */
  readonly print: string;
}
type Sha256 = (text: string) => string | Promise<string>;

/** Tells replays apart that ask for different things; their times may have been meant relative to now. */
async function printOf(
  { node, kind }: Pick<DecisionFilter, "node" | "kind">,
  { kubeletConfiguration, kubeletConfigurationPatch, kubeletVersion, isUpgrade }: Change,
  sha256: Sha256,
): Promise<string> {
  const parts = [node, kind, kubeletConfiguration, kubeletConfigurationPatch, kubeletVersion];
  const asked = [...parts, ...(isUpgrade === true ? ["upgrade"] : [])].map((part) => part ?? null);
  return (await sha256(JSON.stringify(asked))).slice(0, 16);
}

export const encodeResume = ({ fromMs, untilMs, atMs, seq, print }: Resume): string =>
  encodeToken(`${fromMs}.${untilMs}.${atMs}.${seq}.${print}`);

/** The last moment that a Date can represent. */
const LAST_MS = 8.64e15;
const TEXT = /^(-?\d{1,16})\.(-?\d{1,16})\.(-?\d{1,16})\.(\d{1,16})\.([0-9a-f]{16})$/;

/** The place in a page token; null: no replay issued it. */
function decodeResume(token: string): Resume | null {
  const parts = TEXT.exec(decodeToken(token) ?? "");
  if (parts === null) return null;
  const [fromMs, untilMs, atMs, seq] = parts.slice(1, 5).map(Number) as [number, number, number, number];
  if ([fromMs, untilMs, atMs].some((ms) => Math.abs(ms) > LAST_MS)) return null;
  const resume = { fromMs, untilMs, atMs, seq, print: parts[5] as string };
  return encodeResume(resume) === token ? resume : null;
}

export interface HistoryRequest {
  /** The filter; without an end, until now. With a page token, the times of the first page count instead. */
  readonly filter: Pick<DecisionFilter, "node" | "kind" | "sinceMs" | "untilMs">;
  readonly change: Change;
  /** 1 to `MAX_REPLAYED`. */
  readonly limit: number;
  readonly pageToken?: string;
}

/** The answer of POST /v1/replay. */
export interface ReplayAnswer extends Tally {
  /** All changed decisions of this page. */
  readonly changed: readonly ChangedDecision[];
  /** Decisions of this page that were skipped because they cannot be read. */
  readonly unreadable: readonly UnreadableDecision[];
  /** Times in RFC 3339; the end is the same for all pages. */
  readonly until: string;
  /** When the last replayed decision was made; null: there was none. */
  readonly reachedAt: string | null;
  /** 0 to 1, by the time between the oldest decision and the newest. */
  readonly progress: number;
  readonly nextPageToken: string | null;
}

interface ReplayContext {
  readonly store: Pick<Store, "streamDecisions" | "listDecisions">;
  readonly replay: Replayer<Compared>;
  readonly nowMs: number;
  readonly sha256: (text: string) => string | Promise<string>;
  /** Aborted when the client no longer waits. */
  readonly signal?: AbortSignal;
}

/** A page of a replay, and the token with which it goes on. Errors: those of the history, and a token of another replay. */
export async function replayAnswer(
  { store, replay, nowMs, sha256, signal }: ReplayContext,
  { filter, change, limit, pageToken }: HistoryRequest,
): Promise<Result<ReplayAnswer, StoreFailure>> {
  const print = await printOf(filter, change, sha256);
  const resumed = pageToken === undefined ? ok(null) : resumeOf(pageToken, print);
  if (!resumed.ok) return resumed;
  const after = resumed.value;
  // decisions of this very millisecond are history too
  const untilMs = after?.untilMs ?? filter.untilMs ?? nowMs + 1;
  const found = await replayPage(store, replay, {
    filter: { ...filter, untilMs },
    limit,
    ...(after === null ? {} : { after }),
    ...(signal === undefined ? {} : { signal }),
  });
  if (!found.ok) return found;
  const { next, reachedMs, ...page } = found.value;
  return ok({
    ...page,
    until: rfc3339(untilMs),
    reachedAt: reachedMs === null ? null : rfc3339(reachedMs),
    nextPageToken: next === null ? null : encodeResume({ ...next, untilMs, print }),
  });
}

function resumeOf(token: string, print: string): Result<Resume, StoreFailure> {
  const resume = decodeResume(token);
  if (resume === null) {
    return failure("bad_page_token", "the page token is not one that a replay gave out; start again without it");
  }
  if (resume.print !== print) {
    const advice = "ask for the same node, kind, configuration and kubeletVersion, or start again without it";
    return failure("bad_page_token", `the page token belongs to another replay; ${advice}`);
  }
  return ok(resume);
}
