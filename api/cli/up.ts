import { join, resolve } from "node:path";
import { actuatorConfig } from "../../actuator/config.ts";
import type { PassReport } from "../../actuator/loop.ts";
import { startActuator } from "../../actuator/main.ts";
import { ok } from "../model/result.ts";
import type { Log } from "../observe/log.ts";
import { historyFile, type RunningApi } from "../server.ts";
import { printable } from "../text/style.ts";
import { answerText } from "../text/tables/index.ts";
import { problemLine, recoveryLine } from "./actuator.ts";
import type { ApiGiven } from "./api-options.ts";
import type { Cli } from "./cli.ts";
import { stateHome } from "./directories.ts";
import { EXIT, fault, type Outcome } from "./exit.ts";
import { type KnownNodeFiles, showKnownNode } from "./known-node.ts";
import { passLine } from "./pass-text.ts";
import { startServing } from "./serve.ts";
import { stopSignal } from "./stop-signal.ts";
import type { Terminal } from "./terminal.ts";

export interface UpGiven extends ApiGiven, KnownNodeFiles {
  readonly manifests?: string;
  readonly config?: string;
  readonly nodeName?: string;
  readonly intervalSeconds: number;
}

/** `nodewise up`: API and observer in one process, until a signal. Nothing is written but the history and the own state. */
export async function up(given: UpGiven, cli: Cli): Promise<Outcome> {
  const { terminal, env } = cli;
  const stop = stopSignal();
  const dataDir = given.dataDir ?? stateHome(env);
  const config = actuatorConfig({
    mode: "observe",
    stateDir: join(dataDir, "actuator"),
    intervalSeconds: given.intervalSeconds,
    ...(given.manifests === undefined ? {} : { manifests: resolve(given.manifests) }),
    ...(given.config === undefined ? {} : { kubeletConfiguration: given.config }),
    ...(given.nodeName === undefined ? {} : { nodeName: given.nodeName }),
  });
  if (!config.ok) return fault(EXIT.badInput, config.error);
  const api = await startServing(given, cli, quietLog(terminal));
  if (!api.ok) return api;
  const known = given.snapshot === undefined ? ok(undefined) : await showKnownNode(given, api.value, terminal);
  if (!known.ok) {
    await api.value.close();
    return known;
  }
  const print = passPrinter(
    config.value.nodeName,
    () => whereToLook(api.value, dataDir, given.intervalSeconds, terminal),
    terminal,
  );
  const observer = await startActuator({
    config: config.value,
    api: { url: api.value.url, fetch: api.value.fetch, token: undefined },
    onPass: print,
    onProblem: (problem) => terminal.warn(`nodewise: ${problemLine(problem)}`),
    onRecovery: (recovery) => terminal.warn(`nodewise: ${recoveryLine(recovery)}`),
  });
  try {
    if (!observer.ok) return fault(EXIT.cannotRun, observer.error);
    await Promise.race([stop, observer.value.done]);
    await observer.value.stop();
    return ok(EXIT.ok);
  } finally {
    await api.value.close();
  }
}

/** The first pass in full and where to look; after it a line when something is different. */
function passPrinter(nodeName: string, where: () => string, terminal: Terminal): (report: PassReport) => void {
  let last: string | undefined;
  return (report) => {
    const isFirst = last === undefined;
    const line = passLine({ ...report, decisionId: null, decidedBy: null });
    const told = line.slice(report.at.length);
    const title = `${terminal.paint("bold", "This machine")}\n\n`;
    if (isFirst) terminal.write(`${title}${seenText(nodeName, report, terminal)}\n${where()}\n`);
    else if (told !== last) terminal.write(`${line}\n`);
    last = told;
  };
}

function seenText(node: string, { allocatable, cgroups, needs, applied }: PassReport, terminal: Terminal): string {
  const texts: string[] = [];
  const shown = { node, explain: "off" } as const;
  if (allocatable !== null) {
    const decided = { decision: allocatable, reasons: [], needs: [] };
    texts.push(answerText({ ...shown, kind: "allocatable", decided }, terminal));
  }
  if (cgroups !== null) {
    const decided = { decision: cgroups, reasons: [], needs };
    texts.push(answerText({ ...shown, kind: "cgroups", decided }, terminal));
    if (cgroups.cgroups.every(({ pod }) => pod === null))
      texts.push("No pods are known: `--manifests DIR` names a directory of static pods.\n");
  }
  const steps = applied?.results.length ?? 0;
  if (steps > 0) {
    const advice = "`nodewise actuator --dry-run` lists them, `--mode enforce` does them";
    texts.push(`Observing only: ${steps} steps would make it so below the cgroup /nodewise; ${advice}.\n`);
  }
  return texts.join("\n");
}

function whereToLook(api: RunningApi, dataDir: string, intervalSeconds: number, { paint }: Terminal): string {
  const lines = [
    ["Dashboard", paint("cyan", `${api.url}/`)],
    [
      "API",
      `${paint("cyan", `${api.url}/docs`)}${api.requiresToken ? " (with a token)" : " (open to this machine; `nodewise token create` closes it)"}`,
    ],
    ["History", `${printable(historyFile(dataDir))} (\`nodewise history\` lists it)`],
    ["Stop", `Ctrl-C; until then it looks again every ${intervalSeconds} s`],
  ] as const;
  return lines.map(([name, text]) => `${paint("bold", name.padEnd(9))}  ${text}`).join("\n");
}

/** A person reads this terminal: what goes well is not told line by line. */
const quietLog = (terminal: Terminal): Log => ({
  info: () => {},
  warn: (fields, message) => terminal.warn(`nodewise: ${message} ${JSON.stringify(fields)}`),
  error: (fields, message) => terminal.warn(`nodewise: ${message} ${JSON.stringify(fields)}`),
});
