import {
  CONTAINER_GC_TARGETS,
  type CONTAINER_KEEP_WHY,
  type ContainerGcDecision,
  type ContainerKept,
} from "../../model/container-gc.ts";
import { CONTAINER_STAYS } from "../sentences/garbage-collection.ts";
import { table } from "../table.ts";
import { agoText, mayGoText } from "./age-text.ts";
import { TARGET, whose } from "./gc-targets.ts";
import { shortened } from "./shortened.ts";
import { type Shown, swallowNotes } from "./shown.ts";

const MOST_STAY = 10;
/** What may go soonest stands first. */
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

/** What stays: one row for all of a pod's container that stay for the same reason. */
export function containersThatStay(shown: Shown<ContainerGcDecision>): string {
  const { decision, columns, paint, notesAt, observedAtMs } = shown;
  if (decision.keep.length === 0) return "";
  const units = [...Map.groupBy(decision.keep, unitOf).values()].sort(
    (a, b) => rankOf(a) - rankOf(b) || soonest(a) - soonest(b),
  );
  const { first, more } = shortened(units, MOST_STAY, shown, ([one]) => CONTAINER_STAYS[(one as ContainerKept).why]);
  swallowNotes(
    shown,
    units.slice(first.length).flatMap((unit) => unit.map(({ id }) => id)),
  );
  const drawn = table(
    [
      { title: "STAYS" },
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
          whose(unit.length === 1 ? one : { ...one, attempt: null }),
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

/** Of the newest. */
function madeText(unit: readonly ContainerKept[], nowMs: number | undefined): string {
  const times = unit.flatMap(({ createdAtMs }) => (createdAtMs === null ? [] : [createdAtMs]));
  return times.length === 0 ? "" : agoText(Math.max(...times), nowMs);
}
function whyText(unit: readonly ContainerKept[], nowMs: number | undefined): string {
  const [{ why }] = unit as [ContainerKept];
  const times = unit.flatMap(({ oldEnoughAtMs }) => (oldEnoughAtMs === null ? [] : [oldEnoughAtMs]));
  return times.length === 0 ? CONTAINER_STAYS[why] : `${CONTAINER_STAYS[why]}, ${mayGoText(Math.min(...times), nowMs)}`;
}
