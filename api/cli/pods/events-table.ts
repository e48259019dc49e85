import type { SeenEvent } from "../../../actuator/status/node-status.ts";
import { printable } from "../../text/style.ts";
import { table } from "../../text/table.ts";
import { durationText } from "../../text/time-text.ts";
import type { Terminal } from "../terminal.ts";

/** The newest last, as kubectl shows them. */
export function eventsTable(events: readonly SeenEvent[], at: string, { columns: width, paint }: Terminal): string {
  if (events.length === 0) return paint("dim", "no events\n");
  const columns = [
    { title: "LAST SEEN", align: "right" },
    { title: "TYPE", giveUp: 1 },
    { title: "REASON" },
    { title: "POD", shrinkTo: 12 },
    { title: "CONTAINER", giveUp: 2 },
    { title: "MESSAGE", shrinkTo: 24 },
  ] as const;
  const rows = events.map(({ type, reason, message, pod, container, ...event }) => ({
    cells: [
      seenText(event, at),
      type === "Warning" ? { text: type, color: "yellow" as const } : type,
      printable(reason),
      printable(`${pod.namespace}/${pod.name}`),
      printable(container ?? ""),
      printable(message),
    ],
  }));
  return table(columns, rows, width, paint);
}

/** `5s`; of more than one `5s (x3 over 2m)`. */
function seenText({ at, firstAt, count }: Pick<SeenEvent, "at" | "firstAt" | "count">, now: string): string {
  const since = (then: string): string => durationText(Math.max(0, Date.parse(now) - Date.parse(then)));
  return count > 1 ? `${since(at)} (x${count} over ${since(firstAt)})` : since(at);
}
