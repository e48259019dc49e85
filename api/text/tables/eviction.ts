import {
  type Eviction,
  type EvictionDecision,
  type FileSystems,
  NODE_RECLAIM,
  type Reclaim,
} from "../../model/eviction.ts";
import type { PodRef } from "../../model/managers.ts";
import { listed, many } from "../sentences/words.ts";
import type { Color } from "../style.ts";
import { printable } from "../style.ts";
import { table } from "../table.ts";
import { timeText } from "../time-text.ts";
import { forecastTable } from "./forecast.ts";
import { nodeReclaimText } from "./node-reclaim.ts";
import { outcome } from "./outcome.ts";
import { listText } from "./placements.ts";
import { rankingTables } from "./rankings.ts";
import { type Shown, sections } from "./shown.ts";
import { signalText, thresholdsTable, thresholdText } from "./thresholds.ts";
import { podName } from "./verdict.ts";

/** One pass of the eviction manager: how far off each threshold is, who goes and why, who would be next, and when. */
export function evictionTable(shown: Shown<EvictionDecision>): string {
  return sections(
    headOf(shown),
    evictedTable(shown),
    thresholdsTable(shown),
    conditionsTable(shown),
    ...rankingTables(shown),
    forecastTable(shown),
  );
}

const FILE_SYSTEMS: Readonly<Record<FileSystems, string>> = {
  one: "nodefs, imagefs and containerfs are one file system",
  dedicated: "images and containers are on a file system of their own",
  split: "images are on a file system of their own, containers on nodefs",
};

function headOf({ decision, verdict, paint, notesAt }: Shown<EvictionDecision>): string {
  const { reclaim, spared, warnings, fileSystems } = decision;
  const lines = [
    ...(reclaim === null ? [] : reclaimLines(reclaim)),
    ...(isTied(decision)
      ? ["tied with others in the ranking: a kubelet may take any of them, for its order is chance"]
      : []),
    ...(spared.length === 0 ? [] : [`spared, being critical: ${listText(spared.map(nameOf))}`]),
    ...warnings,
  ];
  return [
    outcome(paint, ...verdictOf({ decision, verdict })),
    ...lines.map((line) => `${printable(line)}\n`),
    `${paint("dim", FILE_SYSTEMS[fileSystems])}\n`,
    ...["facts.eviction", "containerfs", ...NODE_RECLAIM].flatMap(notesAt).map((note) => `  ${note}\n`),
  ].join("");
}

/** Whether the pod that goes is only the first of equals. */
function isTied({ evicted, rankings, reclaim }: EvictionDecision): boolean {
  const driving = rankings.find(({ signals }) => reclaim !== null && signals.includes(reclaim.threshold.signal));
  return evicted.some((one) => driving?.pods.some(({ pod, tie }) => tie && pod.uid === one.pod.uid) === true);
}

function verdictOf({
  decision,
  verdict,
}: Pick<Shown<EvictionDecision>, "decision" | "verdict">): [Color, string, string] {
  const { evicted, conditions, reclaim } = decision;
  const types = conditions.map(({ type }) => type);
  const under = types.length === 0 ? "" : ` under ${listed(types)}`;
  if (verdict === "evicts") {
    const [first] = evicted;
    const who = evicted.length === 1 && first !== undefined ? podName(first.pod) : many(evicted.length, "pod");
    const unsure = reclaim?.afterNodeLevel === "unknown" ? ", if the node-level reclaim is not enough" : "";
    return ["red", "EVICTS", `${who}${under}${unsure}`];
  }
  if (verdict === "reclaims") return ["yellow", "RECLAIMS", `${reclaim?.resource ?? ""}${under}; no pod goes`];
  if (verdict === "under-pressure") return ["yellow", "UNDER PRESSURE", `${listed(types)}: no pod goes in this pass`];
  return ["green", "CALM", "no condition holds, no pod goes"];
}

const AFTER: Readonly<Record<Reclaim["afterNodeLevel"], string>> = {
  enough: "enough: no pod goes",
  "not-enough": "not enough",
  unknown: "whether that is enough is not known: a pod goes only if it is not",
  "nothing-run": "",
};
function reclaimLines(reclaim: Reclaim): readonly string[] {
  const { threshold, orElse, event, nodeLevel, afterNodeLevel, mustReach, takes } = reclaim;
  const thrownAway = nodeReclaimText(takes);
  const others =
    orElse.length === 0 ? "" : ` (a kubelet may as well take ${listText(orElse.map(thresholdText), ", ")})`;
  const reach = mustReach.map(({ signal, available }) => `${signal} ${signalText(signal, available)}`);
  return [
    `for ${thresholdText(threshold)}${others}: ${event.reason}: ${event.message}`,
    ...(nodeLevel.length === 0 ? [] : [`before any pod goes: ${nodeLevel.join(", ")}; ${AFTER[afterNodeLevel]}`]),
    ...(thrownAway === "" ? [] : [thrownAway]),
    ...(reach.length === 0 ? [] : [`must be reached: ${reach.join(", ")}`]),
  ];
}
const nameOf = ({ namespace, name }: PodRef): string => `${namespace}/${name}`;

function evictedTable({ decision, columns, paint, notesAt }: Shown<EvictionDecision>): string {
  if (decision.evicted.length === 0) return "";
  const notes = ({ pod, message }: Eviction): readonly string[] => [printable(message), ...notesAt(nameOf(pod))];
  return table(
    [
      { title: "EVICTED", shrinkTo: 12 },
      { title: "CAUSE" },
      { title: "GRACE PERIOD", align: "right" },
      { title: "CONDITION", giveUp: 1 },
    ],
    decision.evicted.map((eviction) => ({
      cells: [
        { text: podName(eviction.pod), color: "red" },
        eviction.cause,
        `${eviction.gracePeriodSeconds} s`,
        eviction.condition?.type ?? "",
      ],
      notes: notes(eviction).map((note) => `  ${note}`),
    })),
    columns,
    paint,
  );
}

function conditionsTable({ decision, columns, paint, notesAt }: Shown<EvictionDecision>): string {
  if (decision.conditions.length === 0) return "";
  return table(
    [{ title: "CONDITION" }, { title: "OBSERVED" }, { title: "TRUE UNTIL, AT LEAST" }],
    decision.conditions.map(({ type, observed, lastObservedAtMs, untilMs }) => ({
      cells: [
        { text: type, color: "yellow" },
        observed ? "now" : `last at ${timeText(lastObservedAtMs)}`,
        timeText(untilMs),
      ],
      notes: notesAt(type).map((note) => `  ${note}`),
    })),
    columns,
    paint,
  );
}
