import type { Victim } from "../../model/preemption.ts";
import { amountsText } from "../amount-text.ts";
import { table } from "../table.ts";
import type { Shown } from "./shown.ts";
import { podName } from "./verdict.ts";

/** Who is ended, in kill order, with the reason of each choice. */
export function victimsTable(
  victims: readonly Victim[],
  { columns, paint, notesAt }: Omit<Shown<unknown>, "decision">,
): string {
  if (victims.length === 0) return "";
  return table(
    [
      { title: "", align: "right" },
      { title: "ENDED FOR IT, IN ORDER", shrinkTo: 12 },
      { title: "QOS" },
      { title: "PRIORITY", align: "right", giveUp: 1 },
      { title: "FREES", shrinkTo: 10 },
    ],
    victims.map((victim, i) => ({
      cells: [
        `${i + 1}`,
        podName(victim),
        victim.qos,
        victim.priority === null ? "none" : `${victim.priority}`,
        amountsText(victim.frees),
      ],
      notes: notesAt(`${victim.namespace}/${victim.name}`).map((note) => `  ${note}`),
    })),
    columns,
    paint,
  );
}
