import type { ProbeFinding, ProbesDecision } from "../../model/probes-decision.ts";
import { PROBE_FINDING } from "../sentences/probe-findings.ts";
import { many } from "../sentences/words.ts";
import { type Color, type Paint, printable } from "../style.ts";
import { durationText } from "../time-text.ts";
import { outcome } from "./outcome.ts";
import { probeChanges } from "./probe-changes.ts";
import { probeLanes } from "./probe-lanes.ts";
import { type Shown, sections } from "./shown.ts";

/** The dry run drawn on a time line, what changed, the kubelet's events and quirks, and what of the settings goes wrong. */
export function probesTable(shown: Shown<ProbesDecision>): string {
  const { decision, columns, paint } = shown;
  return sections(
    headOf(decision, paint),
    probeLanes(decision, columns, paint),
    probeChanges(shown),
    eventsText(decision, paint),
    quirksText(decision, paint),
    findingsText(decision.findings, paint),
  );
}

function headOf(decision: ProbesDecision, paint: Paint): string {
  const { endMs, truncated, strict, containers } = decision;
  const notes = [
    ...(strict ? ["strict: the documented behaviour in the place of the kubelet's quirks"] : []),
    ...(truncated ? [`too many attempts: it stopped at ${durationText(endMs)}`] : []),
    ...(containers.every(({ probes }) => probes.length === 0) ? ["no container has a probe"] : []),
  ];
  return outcome(paint, ...endOf(decision)) + notes.map((note) => `${paint("yellow", note)}\n`).join("");
}

function endOf(decision: ProbesDecision): [Color, string, string] {
  const { restarts, firstRestartAtMs, containers, endMs, pod, ready } = decision;
  const name = printable(`${pod.namespace}/${pod.name}`);
  const span = `${name} in ${durationText(endMs)}`;
  if (firstRestartAtMs !== null) {
    return ["red", "RESTARTS", `${span}: ${many(restarts, "restart")}, the first at ${durationText(firstRestartAtMs)}`];
  }
  const last = ready.at(-1);
  const ended = containers.flatMap(({ runs }) => runs.at(-1)?.endedAtMs ?? []);
  if (ended.length > 0) return ["red", "ENDS", `${span}: ${many(ended.length, "container")} for good`];
  if (last === undefined) return ["yellow", "NOT READY", `${span}: never ready, no restart`];
  if (last.toMs !== null) return ["yellow", "NOT READY", `${span}: no longer since ${durationText(last.toMs)}`];
  return ["green", "READY", `${span}: since ${durationText(last.fromMs)}, no restart`];
}

function eventsText({ events }: ProbesDecision, paint: Paint): string {
  if (events.length === 0) return "";
  const lines = events.map(
    ({ type, reason, message, count, firstAtMs, lastAtMs }) =>
      `${type} ${reason} x${count} (${durationText(firstAtMs)}${count > 1 ? ` to ${durationText(lastAtMs)}` : ""}): ${printable(message.trimEnd())}`,
  );
  return [paint("bold", "events"), ...lines.map((line) => `- ${line}`), ""].join("\n");
}

function quirksText({ quirks, strict }: ProbesDecision, paint: Paint): string {
  if (quirks.length === 0) return "";
  const lines = quirks.map(({ code, what, issues, container, type, times }) => {
    const known = issues.length === 0 ? "" : ` (kubernetes ${issues.map((issue) => `#${issue}`).join(", ")})`;
    return `- ${code}, ${printable(container)} ${type}, ${many(times, "time")}: ${what}${known}`;
  });
  const hint = strict ? [] : [paint("dim", "--strict shows the documented behaviour where there is one")];
  return [paint("bold", "quirks of the kubelet that played a part"), ...lines, ...hint, ""].join("\n");
}

const LEVEL: Readonly<Record<ProbeFinding["level"], Color>> = { error: "red", warning: "yellow", hint: "dim" };
function findingsText(findings: readonly ProbeFinding[], paint: Paint): string {
  if (findings.length === 0) return "";
  const lines = findings.flatMap(({ code, level, path, numbers }) => [
    `- ${paint(LEVEL[level], level)} ${code}: ${printable(PROBE_FINDING[code](numbers))}`,
    paint("dim", `  ${printable(path)}`),
  ]);
  return [paint("bold", "about the settings"), ...lines, ""].join("\n");
}
