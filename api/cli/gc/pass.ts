import { clientOf } from "../../../actuator/client-of.ts";
import { ownFolder } from "../../../actuator/folder.ts";
import { openCollector } from "../../../actuator/gc/open.ts";
import type { CollectionReport, TurnReport } from "../../../actuator/gc/ports.ts";
import type { Problem } from "../../../actuator/ports.ts";
import { ok } from "../../model/result.ts";
import { EXIT, type ExitCode, fault, type Outcome } from "../exit.ts";
import { stopSignal } from "../stop-signal.ts";
import type { Terminal } from "../terminal.ts";
import { printAnswer } from "./answer.ts";
import type { GcGiven, GcJob } from "./given.ts";
import { NO_PODS } from "./preview.ts";
import { removalLine, settledLine, spaceLine } from "./removal-text.ts";

/** One pass, with every guard; what goes is told as it goes. A signal ends it after the removal under way. */
export async function pass({ kind, given, config, world, terminal }: GcJob): Promise<Outcome> {
  const onProblem = ({ from, message }: Problem) => terminal.warn(`nodewise: ${from}: ${message}`);
  try {
    ownFolder(config.stateDir);
  } catch (e) {
    return fault(
      EXIT.cannotRun,
      `state directory ${config.stateDir}: ${(e as Error).message}: name another with --state-dir`,
    );
  }
  const client = clientOf({ config, onProblem }, "outbox-gc.jsonl");
  if (!client.ok) return fault(EXIT.badInput, client.error);
  const stopping = new AbortController();
  const isTable = given.output === "table";
  const opened = await openCollector(
    { ...world, client: client.value },
    {
      config,
      onRemoval: (removal) => isTable && terminal.write(removalLine(removal, terminal)),
      onSettled: (settled) => terminal.warn(`nodewise: ${settledLine(settled)}`),
    },
    { stop: stopping.signal, joinsEviction: false },
  );
  if (!opened.ok) return fault(EXIT.cannotRun, opened.error);
  void stopSignal().then(() => stopping.abort());
  try {
    if (kind === "container-gc" && config.manifests === undefined && given.pods === undefined)
      terminal.warn(`nodewise: ${NO_PODS}`);
    const turn = await opened.value.collector.turn(new Set([kind]), given.operation);
    for (const problem of [...turn.problems, ...turn.notices]) onProblem(problem);
    const [report] = turn.collections;
    if (report !== undefined) print(report, given, config.nodeName, terminal);
    return ok(exitOf(turn, report));
  } finally {
    opened.value.release();
  }
}

function print(report: CollectionReport, given: GcGiven, node: string, terminal: Terminal): void {
  const { kind, at, answer, removals, fileSystem, complete, problems } = report;
  if (answer === null) return;
  if (given.output === "table" && removals.length > 0) terminal.write(`${spaceLine(fileSystem)}\n`);
  printAnswer({ kind, node, at, answer }, given, terminal, { removals, fileSystem, complete, problems });
}

function exitOf({ problems }: TurnReport, report: CollectionReport | undefined): ExitCode {
  if (report === undefined || problems.some(({ from }) => from !== "decision")) return EXIT.failed;
  return report.complete ? EXIT.ok : EXIT.negative;
}
