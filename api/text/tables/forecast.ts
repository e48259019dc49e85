import type { EvictionDecision, Forecast } from "../../model/eviction.ts";
import { many } from "../sentences/words.ts";
import { printable } from "../style.ts";
import { type Cell, table } from "../table.ts";
import { durationText } from "../time-text.ts";
import type { Shown } from "./shown.ts";
import { signalText, thresholdText } from "./thresholds.ts";
import { podName } from "./verdict.ts";

const MOST_VICTIMS = 3;

/** When each threshold is met if it goes on like this, and how long each pod that would go puts it off. */
export function forecastTable({ decision, columns, paint }: Shown<EvictionDecision>): string {
  const known = decision.forecast.filter(({ slopePerSecond }) => slopePerSecond !== null);
  if (known.length === 0) {
    const why =
      "no forecast: it takes three observations at least; give the `next` of each answer with --facts to the next";
    return decision.forecast.length === 0 ? "" : paint("dim", `${why}\n`);
  }
  const falling = known.filter(({ belowInMs }) => belowInMs !== null);
  if (falling.length === 0) return paint("dim", "no forecast: nothing that has a threshold is falling\n");
  const others = known.length - falling.length;
  const rest = others === 0 ? "" : paint("dim", `${many(others, "other threshold")} not coming nearer\n`);
  const drawn = table(
    [
      { title: "FORECAST", shrinkTo: 22 },
      { title: "CHANGES BY", align: "right", giveUp: 2 },
      { title: "MET IN", align: "right" },
      { title: "EVICTS IN", align: "right" },
      { title: "GOES FIRST, AND BUYS", shrinkTo: 12 },
      { title: "FROM", align: "right", giveUp: 1 },
    ],
    falling.map((forecast) => ({
      cells: [
        printable(thresholdText(forecast.threshold)),
        changeText(forecast),
        whenCell(forecast.belowInMs),
        whenCell(forecast.evictsInMs),
        victimsText(forecast),
        `${forecast.observations} obs.`,
      ],
    })),
    columns,
    paint,
  );
  return `${drawn}${rest}`;
}

function changeText({ threshold: { signal }, slopePerSecond }: Forecast): string {
  const perMinute = Math.round((slopePerSecond ?? 0) * 60);
  return perMinute === 0 ? "nothing" : `${perMinute > 0 ? "+" : ""}${signalText(signal, perMinute)}/min`;
}

const HOUR = 3_600_000;
function whenCell(ms: number | null): Cell {
  if (ms === null) return { text: "not falling", color: "dim" };
  if (ms === 0) return { text: "now", color: "red" };
  return ms < HOUR ? { text: durationText(ms), color: "yellow" } : { text: durationText(ms) };
}

const victimsText = ({ victims }: Forecast): string =>
  victims
    .slice(0, MOST_VICTIMS)
    .flatMap(({ pod, buysMs }) => (buysMs === null ? [] : [`${podName(pod)} ${durationText(buysMs)}`]))
    .join(", ");
