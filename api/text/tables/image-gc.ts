import type { ImageGcDecision } from "../../model/image-gc.ts";
import { many } from "../sentences/words.ts";
import { humanBytes } from "../size.ts";
import { type Color, printable } from "../style.ts";
import { durationText } from "../time-text.ts";
import { eventLines } from "./collection.ts";
import { fileSystemBar } from "./file-system-bar.ts";
import { goesTable, pulledAgainTable, staysTable } from "./image-lists.ts";
import { outcome } from "./outcome.ts";
import { type Shown, sections } from "./shown.ts";

/** How full the file system is, which images go for it in order, which stay and why, and what a person would hear of it. */
export function imageGcTable(shown: Shown<ImageGcDecision>): string {
  return sections(headOf(shown), goesTable(shown), staysTable(shown), pulledAgainTable(shown));
}

function headOf(shown: Shown<ImageGcDecision>): string {
  const { decision, paint, notesAt } = shown;
  const { events, error, remove } = decision;
  const [color, word, text] = endOf(shown);
  const freed = remove.length === 0 ? "" : `${freedText(decision)}\n`;
  // the first line says it already where nothing goes
  const failure = error === null || word === "FAILS" ? "" : paint("red", `error: ${printable(error)}\n`);
  return [
    outcome(paint, color, word, text),
    `${fileSystemText(decision)}\n`,
    fileSystemBar(shown),
    freed,
    failure,
    eventLines(events, paint, error),
    `${paint("dim", policyText(decision))}\n`,
    ...notesAt("image-gc").map((note) => `  ${note}\n`),
  ].join("");
}

function endOf({ decision, verdict }: Shown<ImageGcDecision>): [Color, string, string] {
  const { remove, error } = decision;
  const planned = remove.filter(({ end }) => end === "planned" || end === "removed");
  const size = planned.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const what = `${many(planned.length, "image")}, ${humanBytes(size)}`;
  if (verdict === "fails" || error !== null) return ["red", "FAILS", printable(error ?? what)];
  if (remove.length === 0) return ["green", "KEEPS", "no image goes"];
  // a pass that ended before the first was gone
  if (planned.length === 0) return ["yellow", "STOPPED", "no image was removed"];
  const removed = remove.filter(({ end }) => end === "removed").length;
  return ["yellow", removed === remove.length ? "REMOVED" : "REMOVES", what];
}

function fileSystemText({ fileSystem, policy, operation }: ImageGcDecision): string {
  if (fileSystem === null) {
    return operation === "delete-unused"
      ? "asked for by the eviction manager: all that is not used goes, however full the file system is"
      : "the image file system was not looked at";
  }
  return usageText(fileSystem, policy);
}

/** How full it is, and what of it is wanted back. */
export function usageText(
  { capacityBytes, usagePercent, wantedBytes }: NonNullable<ImageGcDecision["fileSystem"]>,
  { highThresholdPercent: high, lowThresholdPercent: low }: ImageGcDecision["policy"],
): string {
  const used = `${usagePercent} % of ${humanBytes(capacityBytes)} used`;
  if (wantedBytes === null) return `${used}: below the high threshold of ${high} %, nothing is wanted`;
  if (wantedBytes <= 0)
    return `${used}, high threshold ${high} %: the low one of ${low} % is reached, and still one goes`;
  return `${used}, high threshold ${high} %: ${humanBytes(wantedBytes)} wanted, down to the low one of ${low} %`;
}

function freedText({ remove, freedBytes, freedOnceBytes }: ImageGcDecision): string {
  const verb = remove.every(({ end }) => end !== "planned") ? "freed" : "would free";
  // the kubelet does not add those up
  const forSpace = remove.some(({ why }) => why === "too-old") ? " for space" : "";
  const once =
    freedOnceBytes === null
      ? "; what layers they share is not known"
      : `, ${humanBytes(freedOnceBytes)} with shared layers counted once`;
  return `${verb} ${humanBytes(freedBytes)}${forSpace} as the kubelet counts${once}`;
}

function policyText({ policy }: ImageGcDecision): string {
  const { minAgeMs, maxAgeMs, timer } = policy;
  const oldest = maxAgeMs === 0 ? "none is too old" : `unused for ${durationText(maxAgeMs)} is too old`;
  const runs = timer ? "" : "; the kubelet runs no timer for it (high threshold 100 %, no maximum age)";
  return `younger than ${durationText(minAgeMs)} stays, ${oldest}${runs}`;
}
