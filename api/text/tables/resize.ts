import { askedAbout, type PodResize, type ResizeDecision } from "../../model/resize.ts";
import { listed, many } from "../sentences/words.ts";
import { amountText, writtenText } from "../size.ts";
import { type Color, printable, type Screen } from "../style.ts";
import { table } from "../table.ts";
import { resourcesTable, victimsTable } from "./preemption.ts";
import { outcome, podName, type Shown, sections } from "./shown.ts";

const COLORS: Readonly<Record<PodResize["status"], Color>> = {
  InProgress: "green",
  Error: "yellow",
  Deferred: "yellow",
  Infeasible: "red",
  Rejected: "red",
  Unchanged: "dim",
};

const WORDS: Readonly<Record<PodResize["status"], string>> = {
  InProgress: "the kubelet accepts it",
  Error: "the kubelet has allocated it, and cannot apply it for now",
  Deferred: "it waits until the node has room",
  Infeasible: "the kubelet never accepts it",
  Rejected: "the API server does not accept it",
  Unchanged: "nothing changes",
};

/**
 * Shows the resizes in the order in which the kubelet tries them. For each requested one it shows the result with the
 * reason, the available room, the pods that would have to leave, and the writes.
 */
export function resizeTable(shown: Shown<ResizeDecision>): string {
  const { resizes, startErrors } = shown.decision;
  if (startErrors.length > 0)
    return startErrors.map((error) => shown.paint("red", `the kubelet does not start: ${printable(error)}\n`)).join("");
  if (resizes.length === 0) return "no pod waits for a resize\n";
  const order = resizes.length === 1 ? "" : queueTable(shown);
  return sections(order, ...askedAbout(resizes).map((one) => oneResize(one, shown)));
}

/** The resizes of one node; if there is no decision, `refusal` says why. */
export interface NodeResizes {
  readonly node: string;
  readonly policyVersion: string;
  readonly decision: ResizeDecision | null;
  readonly refusal: string | null;
}

/** Shows the resizes of many nodes, a line each, and the number of each result. */
export function fleetResizeText(nodes: readonly NodeResizes[], { columns, paint }: Screen): string {
  const all = nodes.flatMap(({ node, decision }) => (decision?.resizes ?? []).map((one) => ({ node, one })));
  const rows = all.map(({ node, one: { pod, status, message } }) => ({
    cells: [podName(pod), printable(node), { text: status, color: COLORS[status] }, printable(message)],
  }));
  const titles = [{ title: "POD" }, { title: "NODE" }, { title: "STATUS" }, { title: "MESSAGE", shrinkTo: 20 }];
  const drawn = rows.length === 0 ? "" : table(titles, rows, columns, paint);
  const byStatus = Map.groupBy(all, ({ one }) => one.status);
  const counts = (Object.keys(COLORS) as PodResize["status"][]).flatMap((status) => {
    const of = byStatus.get(status)?.length ?? 0;
    return of === 0 ? [] : [`${of} ${status}`];
  });
  const on = new Set(all.map(({ node }) => node)).size;
  const isUnanswered = nodes.length > 0 && nodes.every(({ refusal }) => refusal !== null);
  const none = isUnanswered ? `${many(nodes.length, "node")}, and no answer` : "no pod waits for a resize";
  const total = all.length === 0 ? none : `${many(all.length, "pod")} on ${many(on, "node")}: ${counts.join(", ")}`;
  const unanswered = nodes.flatMap(({ node, refusal }) =>
    refusal === null ? [] : [`${paint("red", printable(node))}: no answer: ${printable(refusal)}\n`],
  );
  return `${drawn}${paint("bold", total)}\n${unanswered.join("")}`;
}

function queueTable({ decision, columns, paint }: Shown<ResizeDecision>): string {
  return table(
    [{ title: "TRIED" }, { title: "POD" }, { title: "STATUS" }, { title: "MESSAGE", shrinkTo: 20 }],
    decision.resizes.map(({ pod, status, message, isAsked, isRetried }, i) => ({
      cells: [
        isRetried ? String(i + 1) : { text: "at restart", color: "dim" },
        isAsked ? { text: podName(pod), color: "bold" } : podName(pod),
        { text: status, color: COLORS[status] },
        printable(message),
      ],
    })),
    columns,
    paint,
  );
}

function oneResize(one: PodResize, shown: Shown<ResizeDecision>): string {
  const { pod, status, check, message, isRetried, preempt, resources, changes } = one;
  const { paint, isExact = false } = shown;
  const cost = preempt.length === 0 ? "" : `, and ${paint("red", `preempts ${many(preempt.length, "pod")} for it`)}`;
  const when = isRetried ? "" : "its status is Infeasible, and the kubelet tries it again only when it restarts: then ";
  const shortOf = resources.some(({ insufficient }) => insufficient > 0);
  const words = status === "Deferred" && !shortOf ? "it waits, and not for room" : WORDS[status];
  const head = outcome(paint, COLORS[status], status, `${podName(pod)}: ${when}${words}${cost}`);
  const said = message === "" ? "" : `${printable(message)}\n`;
  const room = check === null && shortOf ? resourcesTable(resources, shown) : "";
  const lines = changes.map(({ container, list, resource, from, to }) => {
    const of = container === null ? "pod" : printable(container);
    const isSize = list === "sizeLimit";
    const what = isSize ? `volume ${printable(resource)} sizeLimit` : `${of} ${list}.${resource}`;
    const amount = (text: string | null) =>
      text === null ? "none" : writtenText(isSize ? "memory" : resource, text, isExact);
    return `  ${what}: ${amount(from)} -> ${amount(to)}\n`;
  });
  return sections(
    `${head}${said}${lines.join("")}${largestLine(one)}`,
    room,
    victimsTable(preempt, shown),
    status === "Deferred" && shortOf ? freedText(one, shown) : "",
    actuationText(one, shown),
  );
}

/** Where the room for a waiting resize may come from. */
function freedText({ terminating = [], shrinks = [], leave }: PodResize, { paint }: Shown<ResizeDecision>): string {
  const ends = `it waits until ${listed(terminating.map(podName))} terminated: the kubelet then tries it again\n`;
  const written = `it waits until the smaller size of ${listed(shrinks.map(podName))} is applied: the kubelet then tries it again\n`;
  const waits = `${terminating.length === 0 ? "" : ends}${shrinks.length === 0 ? "" : written}`;
  if (leave === null)
    return `${waits}without all other pods of no higher priority there would still not be enough room\n`;
  if (leave.length === 0) return waits;
  const title = `${paint("bold", "PODS WHOSE REMOVAL WOULD MAKE ROOM")}${paint("dim", " (the kubelet removes no pod for a resize)")}\n`;
  const lines = leave.map((victim) => `  ${podName(victim)} priority ${victim.priority ?? 0}\n`);
  return `${waits}${title}${lines.join("")}`;
}

/** The largest possible request; empty: no size would be accepted. */
function largestLine({ status, check, largest, notRequested }: PodResize): string {
  if (status === "Unchanged" || (check !== null && check !== "capacity")) return "";
  const amounts = largest.map(({ resource, quantity }) => `${resource} ${amountText(resource, quantity)}`).join(", ");
  const others = notRequested.map(
    ({ resource, message }) => `  ${resource}: no resize changes its request: ${printable(message)}\n`,
  );
  return `${amounts === "" ? "" : `  the whole pod's largest requests now: ${amounts}\n`}${others.join("")}`;
}

/** The containers that restart, and the writes in their order. */
function actuationText({ actuation }: PodResize, { columns, paint }: Shown<ResizeDecision>): string {
  if (actuation === null) return "";
  const { restarts, writes, error } = actuation;
  const restarted = restarts.map(
    ({ container, resources }) => `${printable(container)} starts again: its resizePolicy of ${resources.join(", ")}\n`,
  );
  if (error !== null || writes.length === 0) return restarted.join("");
  const drawn = table(
    [{ title: "WRITES" }, { title: "OF" }, { title: "FILES", shrinkTo: 20 }],
    writes.map(({ container, values, files, volume }, i) => ({
      cells: [String(i + 1), ...(volume === undefined ? writeCells(container, values, files) : volumeCells(volume))],
    })),
    columns,
    paint,
  );
  return `${restarted.join("")}${drawn}`;
}

type Write = NonNullable<PodResize["actuation"]>["writes"][number];
function writeCells(container: string | null, values: Write["values"], files: Write["files"]): readonly string[] {
  const named = files.length > 0 ? files.map(({ path, value }) => [path, value]) : Object.entries(values);
  return [
    container === null ? "the pod's cgroup" : printable(container),
    named
      .map(([name, value]) => `${name}=${typeof value === "object" ? JSON.stringify(value) : String(value)}`)
      .join(" "),
  ];
}
const volumeCells = ({ name, sizeBytes }: NonNullable<Write["volume"]>): readonly string[] => [
  `volume ${printable(name)}`,
  `size=${sizeBytes}`,
];
