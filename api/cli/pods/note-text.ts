import type { PodRow } from "../../../actuator/status/node-status.ts";
import { many } from "../../text/sentences/words.ts";
import { printable } from "../../text/style.ts";
import { durationText } from "../../text/time-text.ts";

/** Why a pod waits, ends or is not as it should be, each cause once; printable. */
export function noteOf({ refusal, end, resize, reason, message, startedAt }: PodRow, at: string): readonly string[] {
  const since = (ms: number): string => durationText(Math.max(0, Date.parse(at) - ms));
  const isRefused = refusal !== null && startedAt === null;
  const notes = [
    ...(isRefused ? [refusalNote(refusal, since(refusal.sinceMs))] : []),
    ...(end === null
      ? []
      : [`${end.cause} ${since(end.sinceMs)} ago${after(end.message)}${byDecision(end.decisionId)}`]),
    ...(resize === null ? [] : [`resize ${resize.reason} for ${since(resize.sinceMs)}${after(resize.message)}`]),
  ];
  // the status wraps a refusal in words of its own
  const isTold = notes.some((note) => note.includes(message)) || (isRefused && message.includes(refusal.message));
  return [...notes, ...(message === "" || isTold ? [] : [reason === "" ? message : `${reason}: ${message}`])].map(
    printable,
  );
}

/** One that waits for something was not refused. */
function refusalNote({ reason, message, tries }: NonNullable<PodRow["refusal"]>, since: string): string {
  const what =
    tries === 0 ? `waits for ${since}` : `refused ${many(tries, "time")} in ${since}, tried again when it could fit`;
  return `${what}: ${reason}: ${message}`;
}
const after = (message: string): string => (message === "" ? "" : `: ${message}`);
const byDecision = (id: string | null): string => (id === null ? "" : ` (decision ${id})`);
