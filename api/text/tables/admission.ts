import type { AdmissionDecision } from "../../model/admission.ts";
import { counterfactualSentences } from "../sentences/counterfactual.ts";
import { many } from "../sentences/words.ts";
import { printable } from "../style.ts";
import { table } from "../table.ts";
import { resourcesTable, victimsTable } from "./preemption.ts";
import { outcome, podName, type Shown, sections, sentenceList } from "./shown.ts";
import { assignedTable } from "./topology.ts";

/**
 * Shows whether the pod is admitted and why not, what it takes of each resource, which pods go for it, and what would change
 * the answer.
 */
export function admissionTable(shown: Shown<AdmissionDecision>): string {
  const { decision, paint, notesAt } = shown;
  const { preempt, counterfactuals, resources } = decision;
  const vain = preempt.length > 0 && !decision.admit;
  const inVain = vain
    ? paint("yellow", `${many(preempt.length, "pod")} preempted for it in vain: it is refused after that\n`)
    : "";
  const victims = victimsTable(preempt, shown);
  const room = notesAt("preemption").map((note) => `  ${note}\n`);
  return sections(
    headOf(shown),
    refusalsTable(shown),
    resourcesTable(resources, shown),
    `${inVain}${victims}${room.join("")}`,
    givenTable(shown),
    sentenceList(paint, "WHAT WOULD CHANGE IT", counterfactualSentences(counterfactuals, shown.isExact).map(printable)),
  );
}

function headOf(shown: Shown<AdmissionDecision>): string {
  const { pod, critical, onNode } = shown.decision;
  const facts = [...(critical ? ["critical"] : []), ...(onNode ? ["on the node already"] : [])];
  const name = `${podName(pod)}${facts.length === 0 ? "" : shown.paint("dim", ` (${facts.join(", ")})`)}`;
  const notes = [`${pod.namespace}/${pod.name}`, "node"].flatMap(shown.notesAt).map((note) => `  ${note}\n`);
  return `${verdictLines(name, shown)}${notes.join("")}`;
}

function verdictLines(name: string, { decision, verdict, paint }: Shown<AdmissionDecision>): string {
  const { admit, reason, message, preempt } = decision;
  if (verdict === "kubelet-refuses") return outcome(paint, "red", "REFUSED", `${name}: the kubelet does not start`);
  if (admit) {
    const cost = preempt.length === 0 ? "" : `: ${paint("red", `${many(preempt.length, "pod")} preempted for it`)}`;
    return outcome(paint, "green", "ADMITTED", `${name}${cost}`);
  }
  return `${outcome(paint, "red", "REFUSED", `${name}: ${paint("red", printable(reason))}`)}${printable(message)}\n`;
}

/** Each with the reasons of its handler below its last row. */
function refusalsTable({ decision, columns, paint, notesAt }: Shown<AdmissionDecision>): string {
  const { wouldRefuse } = decision;
  if (wouldRefuse.length === 0) return "";
  const last = new Map(wouldRefuse.map(({ handler }, i) => [handler, i]));
  const drawn = table(
    [{ title: "" }, { title: "WOULD REFUSE" }, { title: "REASON" }, { title: "MESSAGE", shrinkTo: 20 }],
    wouldRefuse.map(({ handler, reason, message, shown }, i) => ({
      cells: [
        { text: shown ? SHOWN : "", color: "red" },
        handler,
        shown ? { text: printable(reason), color: "red" } : printable(reason),
        shown ? { text: "above", color: "dim" } : printable(message),
      ],
      notes: last.get(handler) === i ? notesAt(handler).map((note) => `  ${note}`) : [],
    })),
    columns,
    paint,
  );
  const legend = `${paint("red", SHOWN)} ${paint("dim", "the kubelet shows the first of them; each alone would refuse the pod")}\n`;
  return wouldRefuse.length > 1 ? `${drawn}${legend}` : drawn;
}
const SHOWN = "▶";

/** Shows what the managers would give; for a node without managers there is nothing to tell. */
function givenTable(shown: Shown<AdmissionDecision>): string {
  const given = (shown.decision.assigned ?? []).filter(
    ({ cpus, memory, devices }) => cpus !== "" || memory.length > 0 || Object.keys(devices).length > 0,
  );
  return assignedTable({ ...shown, decision: { assigned: given } });
}
