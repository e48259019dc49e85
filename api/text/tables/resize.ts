import type { PodResize, ResizeDecision } from "../../model/resize.ts";
import { many } from "../sentences/words.ts";
import { amountText } from "../size.ts";
import { type Color, printable } from "../style.ts";
import { table } from "../table.ts";
import { resourcesTable, victimsTable } from "./preemption.ts";
import { outcome, podName, type Shown, sections } from "./shown.ts";

const COLORS: Readonly<Record<PodResize["status"], Color>> = {
  InProgress: "green",
  Deferred: "yellow",
  Infeasible: "red",
  Rejected: "red",
  Unchanged: "dim",
};

const WORDS: Readonly<Record<PodResize["status"], string>> = {
  InProgress: "the kubelet takes it",
  Deferred: "it waits until the node has room",
  Infeasible: "the kubelet never takes it",
  Rejected: "the API server does not take it",
  Unchanged: "it has these resources",
};

/**
 * Shows each resize in the order in which the kubelet tries them: what becomes of it and why, its room, who would have to leave,
 * and what is written.
 */
export function resizeTable(shown: Shown<ResizeDecision>): string {
  const { resizes } = shown.decision;
  if (resizes.length === 0) return "no pod waits for other resources\n";
  const order = resizes.length === 1 ? "" : queueTable(shown);
  return sections(order, ...resizes.map((one) => oneResize(one, shown)));
}

function queueTable({ decision, columns, paint }: Shown<ResizeDecision>): string {
  return table(
    [{ title: "TRIED" }, { title: "POD" }, { title: "STATUS" }, { title: "MESSAGE", shrinkTo: 20 }],
    decision.resizes.map(({ pod, status, message, isRetried }, i) => ({
      cells: [
        isRetried ? String(i + 1) : { text: "at restart", color: "dim" },
        podName(pod),
        { text: status, color: COLORS[status] },
        printable(message),
      ],
    })),
    columns,
    paint,
  );
}

function oneResize(one: PodResize, shown: Shown<ResizeDecision>): string {
  const { pod, status, check, message, isRetried, preempt, resources, leave, changes } = one;
  const { paint } = shown;
  const cost = preempt.length === 0 ? "" : `, and ${paint("red", `ends ${many(preempt.length, "pod")} for it`)}`;
  const when = isRetried ? "" : ", and tries it again only when it restarts";
  const head = outcome(paint, COLORS[status], status, `${podName(pod)}: ${WORDS[status]}${cost}${when}`);
  const said = message === "" ? "" : `${printable(message)}\n`;
  const shortOf = resources.some(({ insufficient }) => insufficient > 0);
  const room = check === null && shortOf ? resourcesTable(resources, shown) : "";
  const lines = changes.map(
    ({ container, list, resource, from, to }) =>
      `  ${container === null ? "pod" : printable(container)} ${list}.${resource}: ${from ?? "none"} -> ${to ?? "none"}\n`,
  );
  return sections(
    `${head}${said}${lines.join("")}${largestLine(one)}`,
    room,
    victimsTable(preempt, shown),
    leave === null || preempt.length > 0
      ? ""
      : `${paint("bold", "WHO WOULD HAVE TO LEAVE")}${paint("dim", " (the kubelet ends nobody for it)")}\n${leave
          .map((victim) => `  ${podName(victim)} priority ${victim.priority ?? 0}\n`)
          .join("")}`,
    actuationText(one, shown),
  );
}

/** Nothing where no size would do. */
function largestLine({ status, check, largest }: PodResize): string {
  if (status === "Unchanged" || largest.length === 0 || (check !== null && check !== "capacity")) return "";
  const told = largest.map(({ resource, quantity }) => `${resource} ${amountText(resource, quantity)}`).join(", ");
  return `  the whole pod's largest requests now: ${told}\n`;
}

/** The containers that start again, and each write in its order. */
function actuationText({ actuation }: PodResize, { columns, paint }: Shown<ResizeDecision>): string {
  if (actuation === null) return "";
  const { restarts, writes, error } = actuation;
  const restarted = restarts.map(
    ({ container, resources }) => `${printable(container)} starts again: its resizePolicy of ${resources.join(", ")}\n`,
  );
  if (error !== null)
    return `${restarted.join("")}${paint("yellow", `for now nothing is written: ${printable(error)}`)}\n`;
  if (writes.length === 0) return restarted.join("");
  const drawn = table(
    [{ title: "WRITES" }, { title: "OF" }, { title: "FILES", shrinkTo: 20 }],
    writes.map(({ container, values, files }, i) => ({
      cells: [
        String(i + 1),
        container === null ? "the pod's cgroup" : printable(container),
        files.length > 0
          ? files.map(({ path, value }) => `${path}=${value}`).join(" ")
          : Object.entries(values)
              .map(([name, value]) => `${name}=${String(value)}`)
              .join(" "),
      ],
    })),
    columns,
    paint,
  );
  return `${restarted.join("")}${drawn}`;
}
