import * as z from "zod";
import { failure, type StoreFailure } from "../../../db/failure.ts";
import type { Cursor } from "../../../db/rows.ts";
import type { DecisionFilter, Store } from "../../../db/store.ts";
import { decodeToken, encodeToken } from "../../base/page-token.ts";
import { ok, type Result } from "../../base/result.ts";
import type { Form } from "../../model/forms.ts";
import { rfc3339 } from "../timestamp.ts";
import type { Change } from "./parsed.ts";
import type { Compared, Replayer } from "./replay-one.ts";
import { replayPage } from "./replay-page.ts";
import { changedDecision, tallyForm, unreadableDecision } from "./tally.ts";

/** Where a replay continues, and what it is about. */
interface Resume extends Cursor {
  /** When its first decision was made; used for the progress. */
  readonly fromMs: number;
  /** The end that was set when the replay began: decisions recorded meanwhile do not extend it. */
  readonly untilMs: number;
  /** A fingerprint of node, kind and change. */
  readonly print: string;
}
type Sha256 = (text: string) => string | Promise<string>;

/** Identifies replays by their question; times are left out, as they may be relative to now. */
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

/** The position in a page token; null if the token is not from a replay. */
function decodeResume(token: string): Resume | null {
  const parts = TEXT.exec(decodeToken(token) ?? "");
  if (parts === null) return null;
  const [fromMs, untilMs, atMs, seq] = parts.slice(1, 5).map(Number) as [number, number, number, number];
  if ([fromMs, untilMs, atMs].some((ms) => Math.abs(ms) > LAST_MS)) return null;
  const resume = { fromMs, untilMs, atMs, seq, print: parts[5] as string };
  return encodeResume(resume) === token ? resume : null;
}

/** The decisions to decide again, and the change. */
export interface ReplayQuestion {
  /** The filter; without an end, until now. With a page token, the times of the first page apply. */
  readonly filter: Pick<DecisionFilter, "node" | "kind" | "sinceMs" | "untilMs">;
  readonly change: Change;
}
export interface HistoryRequest extends ReplayQuestion {
  /** 1 to `MAX_REPLAYED`. */
  readonly limit: number;
  readonly pageToken?: string;
}

const time = z.iso.datetime();
/** The response of POST /v1/replay. */
export const historyReplay = z.strictObject({
  ...tallyForm.shape,
  changed: z.array(changedDecision).describe("all decisions that differ or are refused, oldest first"),
  unreadable: z
    .array(unreadableDecision)
    .describe("all decisions that were skipped because they are damaged, oldest first"),
  until: time.describe("the end of the replayed time range, the same on every page"),
  reachedAt: time.nullable().describe("the time of the last decision of the page; null: the page has none"),
  progress: z
    .number()
    .describe(
      "the progress from 0 to 1: the part of the time between the oldest and the newest decision that has been replayed",
    ),
  nextPageToken: z.string().nullable().describe("the token of the next page; null: this is the last page"),
});
export type ReplayAnswer = Form<typeof historyReplay>;

interface ReplayContext {
  readonly store: Pick<Store, "streamDecisions" | "listDecisions">;
  readonly replay: Replayer<Compared>;
  readonly nowMs: number;
  readonly sha256: (text: string) => string | Promise<string>;
  /** Aborted when the client disconnects. */
  readonly signal?: AbortSignal;
}

/** A page of a replay, and the token for the next one. Errors: of the history, and a token of another replay. */
export async function replayAnswer(
  { store, replay, nowMs, sha256, signal }: ReplayContext,
  { filter, change, limit, pageToken }: HistoryRequest,
): Promise<Result<ReplayAnswer, StoreFailure>> {
  const print = await printOf(filter, change, sha256);
  const resumed = pageToken === undefined ? ok(null) : resumeOf(pageToken, print);
  if (!resumed.ok) return resumed;
  const after = resumed.value;
  // decisions of the current millisecond are included
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
