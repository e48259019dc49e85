import {
  CONTAINER_GC_TARGETS,
  type CONTAINER_KEEP_WHY,
  type ContainerGcDecision,
  type ContainerKept,
} from "../../model/container-gc.ts";
import { CONTAINER_GOES, CONTAINER_STAYS } from "../sentences/garbage-collection.ts";
import { type Color, printable } from "../style.ts";
import { table } from "../table.ts";
import { agoText, durationText, mayGoText } from "../time-text.ts";
import {
  countsText,
  eventLines,
  ownerText,
  removalMarks,
  removalNotes,
  stateText,
  TARGET,
  tieLine,
} from "./gc-targets.ts";
import { shortId } from "./image-gc.ts";
import { dropNotes, outcome, type Shown, sections, shortened } from "./shown.ts";

const MAX_STAY = 10;
/** The order of rows: containers that may go soonest stand first. */
const ORDER: readonly (typeof CONTAINER_KEEP_WHY)[number][] = [
  "too-young",
  "within-limits",
  "sources-not-ready",
  "newest-sandbox",
  "sandbox-has-containers",
  "pod-exists",
  "sandbox-ready",
  "running",
];

/** Lists the containers that stay: one row for all of a pod's container that stay for the same reason. */
function containersThatStay(shown: Shown<ContainerGcDecision>): string {
  const { decision, columns, paint, notesAt, observedAtMs } = shown;
  if (decision.keep.length === 0) return "";
  const units = [...Map.groupBy(decision.keep, unitOf).values()].sort(
    (a, b) => rankOf(a) - rankOf(b) || soonest(a) - soonest(b),
  );
  const { first, more } = shortened(units, MAX_STAY, shown, ([one]) => CONTAINER_STAYS[(one as ContainerKept).why]);
  dropNotes(
    shown,
    units.slice(first.length).flatMap((unit) => unit.map(({ id }) => id)),
  );
  const drawn = table(
    [
      { title: "KEPT" },
      { title: "OF", shrinkTo: 16 },
      { title: "COUNT", align: "right", giveUp: 2 },
      { title: "MADE", align: "right", giveUp: 1 },
      { title: "WHY", shrinkTo: 20 },
    ],
    first.map((unit) => {
      const [one] = unit as [ContainerKept];
      return {
        cells: [
          TARGET[one.target],
          ownerText(unit.length === 1 ? one : { ...one, attempt: null }),
          unit.length === 1 ? "" : `${unit.length}`,
          madeText(unit, observedAtMs),
          whyText(unit, observedAtMs),
        ],
        notes: unit.flatMap(({ id }) => notesAt(id)).map((note) => `  ${note}`),
      };
    }),
    columns,
    paint,
  );
  return `${drawn}${more}`;
}

const unitOf = ({ target, id, pod, name, why }: ContainerKept): string =>
  JSON.stringify([target, pod === null ? id : pod.uid, name, why]);
const rankOf = ([one]: readonly ContainerKept[]): number =>
  one === undefined
    ? 0
    : ORDER.indexOf(one.why) * CONTAINER_GC_TARGETS.length + CONTAINER_GC_TARGETS.indexOf(one.target);
const soonest = (unit: readonly ContainerKept[]): number =>
  Math.min(...unit.map(({ oldEnoughAtMs, createdAtMs }) => oldEnoughAtMs ?? createdAtMs ?? 0));

/** The age of the newest container. */
function madeText(unit: readonly ContainerKept[], nowMs: number | undefined): string {
  const times = unit.flatMap(({ createdAtMs }) => (createdAtMs === null ? [] : [createdAtMs]));
  return times.length === 0 ? "" : agoText(Math.max(...times), nowMs);
}
function whyText(unit: readonly ContainerKept[], nowMs: number | undefined): string {
  const [{ why }] = unit as [ContainerKept];
  const times = unit.flatMap(({ oldEnoughAtMs }) => (oldEnoughAtMs === null ? [] : [oldEnoughAtMs]));
  return times.length === 0 ? CONTAINER_STAYS[why] : `${CONTAINER_STAYS[why]}, ${mayGoText(Math.min(...times), nowMs)}`;
}

const MAX_GO = 25;
/** Which dead containers, sandboxes and logs go and why, and what stays of each pod. */
export function containerGcTable(shown: Shown<ContainerGcDecision>): string {
  return sections(headOf(shown), goesTable(shown), containersThatStay(shown));
}

function headOf(shown: Shown<ContainerGcDecision>): string {
  const { decision, paint } = shown;
  const { events, error, operation, allSourcesReady } = decision;
  const lines = [
    ...(operation === "delete-unused"
      ? ["requested by the eviction manager: everything that ended pods left is removed, however little"]
      : []),
    ...(allSourcesReady ? [] : ["not all sources of pods have reported: nothing of an unknown pod is removed"]),
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
  if (remove.length === 0) return ["green", "KEEPS", "nothing is removed"];
  const goes = remove.filter(({ end }) => end === "planned" || end === "removed");
  if (goes.length === 0) return ["yellow", "STOPPED", "nothing was removed"];
  return ["yellow", remove.every(({ end }) => end === "removed") ? "REMOVED" : "REMOVES", countsText(goes)];
}

function policyText({ policy, operation }: ContainerGcDecision): string {
  const { minAgeMs, maxPerPodContainer, maxContainers } = policy;
  const each = maxPerPodContainer < 0 ? "any number" : `${maxPerPodContainer}`;
  const total = maxContainers < 0 ? "any number" : `${maxContainers}`;
  const young = minAgeMs === 0 ? "" : `, and those younger than ${durationText(minAgeMs)}`;
  const ended = operation === "delete-unused" ? "; none of pods that have ended" : "";
  return `dead containers that may stay: ${each} of each container of a pod, ${total} in all${young}${ended}`;
}

function goesTable(shown: Shown<ContainerGcDecision>): string {
  const { decision, columns, paint, notesAt, observedAtMs } = shown;
  const { remove } = decision;
  if (remove.length === 0) return "";
  const { first, more } = shortened(remove, MAX_GO, shown, ({ target }) => TARGET[target]);
  dropNotes(
    shown,
    remove.slice(first.length).map(({ id }) => id),
  );
  const drawn = table(
    [
      { title: "", align: "right" },
      { title: "REMOVED" },
      { title: "OF", shrinkTo: 16 },
      { title: "ID", giveUp: 1, giveUpTo: "nothing" },
      { title: "MADE", align: "right", giveUp: 2 },
      { title: "STATE", giveUp: 3 },
      { title: "WHY", shrinkTo: 12 },
      { title: "" },
    ],
    first.map((removal) => ({
      cells: [
        `${removal.place}`,
        TARGET[removal.target],
        ownerText(removal),
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
