import type { NodeStatus } from "../../../actuator/status/node-status.ts";
import { printable } from "../../text/style.ts";
import { durationText } from "../../text/time-text.ts";
import type { Terminal } from "../terminal.ts";
import type { Seen } from "./read-status.ts";

/** The node and its daemon in a line, how old that is where it comes from a file, and what is wrong now. */
export function headText({ status, file }: Seen, { paint }: Terminal): string {
  const { nodeName, mode, runsPods, runtime, pass, problems, at } = status;
  const parts = [
    nodeName,
    mode === "observe" ? "observe: nothing is started or written" : mode,
    runsPods === false
      ? "runs no pods"
      : runtime === null
        ? "no runtime answers"
        : `${runtime.name} ${runtime.version}`,
    ...(pass === null ? ["no pass yet"] : passTexts(pass, at)),
  ];
  const old = file === null ? "" : paint("yellow", `${printable(oldText(status.at, status.pid, file))}\n`);
  const wrong = problems.map((problem) => paint("red", `! ${printable(problem)}\n`)).join("");
  return `${old}${printable(parts.join(" · "))}\n${wrong}\n`;
}

/** A turn that did not look at the cgroups has nothing to say of them: what is counted is said of the pass that was. */
function passTexts(pass: NonNullable<NodeStatus["pass"]>, at: string): readonly string[] {
  const { cgroupsAt = pass.at, decidedBy } = pass;
  const turn = `pass ${pass.sequence}${agoText(pass.at, at)}: ${Math.round(pass.tookMs)} ms`;
  const drift = pass.compared === false ? "nothing compared" : `${pass.drift} drifted`;
  const counts =
    decidedBy === null
      ? "nothing decided, nothing compared"
      : `${pass.wrote} written, ${drift}, decided ${decidedBy === "api" ? "by the API" : "here"}`;
  const isOfThis = Math.abs(Date.parse(pass.at) - Date.parse(cgroupsAt)) < Math.max(1000, pass.tookMs + 1000);
  return isOfThis ? [`${turn}, ${counts}`] : [turn, `cgroups${agoText(cgroupsAt, at) || " now"}: ${counts}`];
}

function agoText(then: string, now: string): string {
  const age = Date.parse(now) - Date.parse(then);
  return age < 1000 ? "" : ` ${durationText(age)} ago`;
}

/** A clock that was set may make it younger than now. */
function oldText(at: string, pid: number, file: string): string {
  const age = Date.now() - Date.parse(at);
  const told = age < 0 ? `${durationText(-age)} in the future` : `${durationText(age)} old`;
  return `as process ${pid} last wrote it, ${told}: ${file}`;
}
