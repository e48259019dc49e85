import { HANDLERS, type ProbePlan, WINDOW_MS } from "../../decide/probes/plan.ts";
import { many } from "../../text/sentences/words.ts";
import { table } from "../../text/table.ts";
import type { Terminal } from "../terminal.ts";

/** Rates by handler, and how crowded it gets at worst. */
export function planText(plan: ProbePlan, { columns, paint }: Terminal): string {
  const { probes, perSecond, mostAtOnce, execsAtOnce } = plan;
  if (probes === 0) return paint("dim", "nothing is probed\n");
  const rows = HANDLERS.filter((handler) => perSecond[handler] > 0).map((handler) => ({
    cells: [handler, numberText(perSecond[handler])],
  }));
  const sum = HANDLERS.reduce((all, handler) => all + perSecond[handler], 0);
  const drawn = table(
    [{ title: "HANDLER" }, { title: "ATTEMPTS/S", align: "right" }],
    [...rows, { cells: ["all", numberText(sum)] }],
    columns,
    paint,
  );
  const crowd = `at worst ${mostAtOnce.spread} begin within ${WINDOW_MS} ms when they are spread, ${mostAtOnce.unspread} when nobody spreads them`;
  const execs = `execs at the same time: ${numberText(execsAtOnce.expected)} on the average, ${numberText(execsAtOnce.hanging)} if each lasts until its timeout`;
  const lines = [many(probes, "probe"), crowd, ...(perSecond.exec > 0 ? [execs] : [])];
  return `${drawn}\n${lines.map((line) => `${line}\n`).join("")}`;
}

const numberText = (number: number): string => `${Math.round(number * 100) / 100}`;
