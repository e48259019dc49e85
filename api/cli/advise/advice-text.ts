import type { ReserveAdvice, ReservesAdvice } from "../../model/advice.ts";
import { many, ordinal } from "../../text/sentences/words.ts";
import { quantityText } from "../../text/size.ts";
import { type Color, printable, type Screen } from "../../text/style.ts";
import { type Column, type Row, table } from "../../text/table.ts";
import { sections, sentenceList } from "../../text/tables/shown.ts";
import { durationText, timeText } from "../../text/time-text.ts";

/** An advice for a person: what was measured, what to reserve, what that frees or costs, and what is not known. */
export function adviceText(advice: ReservesAdvice, screen: Screen): string {
  const { node, policyVersion, percentile, marginPercent, measurements, reserves, allocatable, findings, notes } =
    advice;
  const { paint } = screen;
  const title = `${paint("bold", printable(node ?? "(no node given)"))} · reserves · ${policyVersion}\n`;
  const what = `${ordinal(percentile)} percentile and ${marginPercent} % of ${many(measurements.count, "measurement")}${spanText(measurements)}\n`;
  return sections(
    title + what,
    reserves.length === 0 ? "" : reservesTable(reserves, percentile, screen),
    allocatable.length === 0 ? "" : effectTable(allocatable, screen),
    sentenceList(
      paint,
      "WHAT `nodewise lint` SAYS OF IT",
      findings.map(({ severity, field, message, advice: advised }) => {
        const color: Color = severity === "warning" ? "yellow" : severity === "note" ? "cyan" : "red";
        return `${paint(color, severity)} ${printable(`${field}: ${message}; ${advised}`)}`;
      }),
    ),
    sentenceList(
      paint,
      "WHAT TO KNOW",
      notes.map(({ message, advice: advised }) => printable(advised === null ? message : `${message}; ${advised}`)),
    ),
  );
}

function spanText({ from, to }: ReservesAdvice["measurements"]): string {
  if (from === null || to === null) return "";
  const [first, last] = [Date.parse(from), Date.parse(to)];
  return first === last
    ? `, of ${timeText(last)}`
    : `, ${timeText(first)} to ${timeText(last)} (${durationText(last - first)})`;
}

function reservesTable(reserves: readonly ReserveAdvice[], percentile: number, { paint, columns }: Screen): string {
  const right = (title: string, giveUp?: number): Column => ({
    title,
    align: "right",
    ...(giveUp === undefined ? {} : { giveUp }),
  });
  const rows = reserves.map((one): Row => {
    const { field, resource, median, atPercentile, peak, now, recommended } = one;
    return {
      cells: [
        field,
        resource,
        String(one.measurements),
        quantityText(resource, median),
        quantityText(resource, atPercentile),
        quantityText(resource, peak),
        now === null ? "–" : now,
        recommended === null ? "–" : { text: recommended, color: recommended === now ? "green" : "yellow" },
      ],
    };
  });
  return table(
    [
      { title: "RESERVATION" },
      { title: "RESOURCE" },
      right("MEASURED", 1),
      right("MEDIAN", 2),
      right(`P${percentile}`),
      right("PEAK", 3),
      right("NOW"),
      right("RECOMMENDED"),
    ],
    rows,
    columns,
    paint,
  );
}

function effectTable(allocatable: ReservesAdvice["allocatable"], { paint, columns }: Screen): string {
  const rows = allocatable.map(({ resource, from, to, change }): Row => {
    const color: Color = change.startsWith("-") ? "red" : change === "0" ? "dim" : "green";
    const eye = quantityText(resource, change);
    return {
      cells: [
        resource,
        quantityText(resource, from),
        quantityText(resource, to),
        { text: change === "0" ? "the same" : change.startsWith("-") ? eye : `+${eye}`, color },
      ],
    };
  });
  return table(
    [
      { title: "ALLOCATABLE" },
      { title: "NOW", align: "right" },
      { title: "WITH IT", align: "right" },
      { title: "PODS GET", align: "right" },
    ],
    rows,
    columns,
    paint,
  );
}
