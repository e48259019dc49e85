import type { ContainerGcDecision } from "../../model/container-gc.ts";
import { CONTAINER_GOES } from "../sentences/garbage-collection.ts";
import { type Color, printable } from "../style.ts";
import { table } from "../table.ts";
import { durationText } from "../time-text.ts";
import { agoText } from "./age-text.ts";
import { eventLines, removalMarks, removalNotes, tieLine } from "./collection.ts";
import { containersThatStay } from "./container-stays.ts";
import { countsText, stateText, TARGET, whose } from "./gc-targets.ts";
import { shortId } from "./image-name.ts";
import { outcome } from "./outcome.ts";
import { shortened } from "./shortened.ts";
import { type Shown, sections, swallowNotes } from "./shown.ts";

const MOST_GO = 25;
/** Which dead containers, sandboxes and logs go and why, and what stays of each pod. */
export function containerGcTable(shown: Shown<ContainerGcDecision>): string {
  return sections(headOf(shown), goesTable(shown), containersThatStay(shown));
}

function headOf(shown: Shown<ContainerGcDecision>): string {
  const { decision, paint } = shown;
  const { events, error, operation, allSourcesReady } = decision;
  const lines = [
    ...(operation === "delete-unused"
      ? ["asked for by the eviction manager: what ended pods left goes, however little"]
      : []),
    ...(allSourcesReady ? [] : ["not all sources of pods have been heard: nothing of a pod that is not known goes"]),
  ];
  return [
    outcome(paint, ...endOf(shown)),
    ...lines.map((line) => `${line}\n`),
    eventLines(events, paint, error),
    `${paint("dim", policyText(decision))}\n`,
  ].join("");
}

function endOf({ decision, verdict }: Shown<ContainerGcDecision>): [Color, string, string] {
  const { remove, error } = decision;
  if (verdict === "fails" || error !== null) return ["red", "FAILS", printable(error ?? countsText(remove))];
  if (remove.length === 0) return ["green", "KEEPS", "nothing goes"];
  const goes = remove.filter(({ end }) => end === "planned" || end === "removed");
  if (goes.length === 0) return ["yellow", "STOPPED", "nothing was removed"];
  return ["yellow", remove.every(({ end }) => end === "removed") ? "REMOVED" : "REMOVES", countsText(goes)];
}

function policyText({ policy, operation }: ContainerGcDecision): string {
  const { minAgeMs, maxPerPodContainer, maxContainers } = policy;
  const each = maxPerPodContainer < 0 ? "any number" : `${maxPerPodContainer}`;
  const total = maxContainers < 0 ? "any number" : `${maxContainers}`;
  const young = minAgeMs === 0 ? "" : `, and those younger than ${durationText(minAgeMs)}`;
  const ended = operation === "delete-unused" ? "; of pods that have ended none" : "";
  return `dead ones that may stay: ${each} of each container of a pod, ${total} in all${young}${ended}`;
}

function goesTable(shown: Shown<ContainerGcDecision>): string {
  const { decision, columns, paint, notesAt, observedAtMs } = shown;
  const { remove } = decision;
  if (remove.length === 0) return "";
  const { first, more } = shortened(remove, MOST_GO, shown, ({ target }) => TARGET[target]);
  swallowNotes(
    shown,
    remove.slice(first.length).map(({ id }) => id),
  );
  const drawn = table(
    [
      { title: "", align: "right" },
      { title: "GOES" },
      { title: "OF", shrinkTo: 16 },
      { title: "ID", giveUp: 1 },
      { title: "MADE", align: "right", giveUp: 2 },
      { title: "STATE", giveUp: 3 },
      { title: "WHY", shrinkTo: 12 },
      { title: "" },
    ],
    first.map((removal) => ({
      cells: [
        `${removal.place}`,
        TARGET[removal.target],
        whose(removal),
        removal.target === "container" || removal.target === "sandbox" ? shortId(removal.id) : "",
        removal.createdAtMs === null ? "" : agoText(removal.createdAtMs, observedAtMs),
        stateText(removal.state),
        CONTAINER_GOES[removal.why],
        removalMarks(removal, ...(removal.stopFirst && removal.target === "container" ? ["killed first"] : [])),
      ],
      notes: [...removalNotes(removal), ...notesAt(removal.id).map((note) => `  ${note}`)],
    })),
    columns,
    paint,
  );
  return `${drawn}${more}${tieLine(first, paint)}`;
}
