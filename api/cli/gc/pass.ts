import type { ActuatorConfig } from "../../../actuator/core/config.ts";
import type { Problem } from "../../../actuator/core/interfaces.ts";
import { ownFolder } from "../../../actuator/core/record-file.ts";
import { clientOf } from "../../../actuator/daemon/client-of.ts";
import type { CollectionReport, GcReport, RemovalReport } from "../../../actuator/gc/dependencies.ts";
import type { Space } from "../../../actuator/gc/journal.ts";
import { openCollector } from "../../../actuator/gc/open.ts";
import type { ClosedPass } from "../../../actuator/gc/remove.ts";
import { ok } from "../../base/result.ts";
import { profileOf } from "../../profiles/index.ts";
import { many } from "../../text/sentences/words.ts";
import { humanBytes } from "../../text/size.ts";
import { type Color, printable } from "../../text/style.ts";
import { EXIT, type ExitCode, fault, type Outcome, printText, stopSignal, type Terminal } from "../terminal.ts";
import type { GcFlags, GcJob } from "./options.ts";
import { NO_PODS, printAnswer } from "./preview.ts";

const COLOR: Readonly<Record<RemovalReport["end"], Color>> = { removed: "green", failed: "red", stopped: "yellow" };

/** `removed  image docker.io/library/x:1 (12.3 MiB): space`, with the message if it was not removed. */
export function removalLine({ target, name, bytes, why, end, message }: RemovalReport, { paint }: Terminal): string {
  const size = bytes === null ? "" : ` (${humanBytes(bytes)})`;
  const words = message === undefined ? "" : `: ${message}`;
  return `${paint(COLOR[end], end.padEnd(8))} ${printable(`${target} ${name}${size}, ${why}${words}`)}\n`;
}

/** The usage of the image file system before and after. */
export function spaceLine({ before, after }: CollectionReport["fileSystem"]): string {
  if (before === null || after === null) return "";
  const freed = after.availableBytes - before.availableBytes;
  const change = freed < 0 ? `${humanBytes(-freed)} less` : `${humanBytes(freed)} more`;
  return `image file system: ${usedText(before)} used before, ${usedText(after)} after: ${change} available (${humanBytes(after.availableBytes)})\n`;
}
const usedText = ({ capacityBytes, availableBytes }: Space): string =>
  capacityBytes === 0 ? "?" : `${Math.round(1000 * (1 - availableBytes / capacityBytes)) / 10} %`;

/** One line for each collection that was due at one time: `2026-... image-gc: 3 of 5 removed (1.2 GiB)`. */
export const gcLines = ({ collections, reclaim }: GcReport): readonly string[] => [
  ...(reclaim === null || reclaim.ran.length === 0
    ? []
    : [`eviction reclaims on this node: ${reclaim.ran.join(", ")}`]),
  ...collections.map(collectionLine),
];

function collectionLine({ at, kind, operation, dryRun, answer, removals }: CollectionReport): string {
  const head = `${at} ${kind}${operation === "garbage-collect" ? "" : ` (${operation})`}`;
  if (answer === null) return `${head}: nothing decided`;
  const { remove, error } = answer.decision as { readonly remove: readonly unknown[]; readonly error: string | null };
  const failure = error === null ? "" : `; ${error}`;
  if (dryRun) return `${head}: ${many(remove.length, "removal")} planned, none done${failure}`;
  const gone = removals.filter(({ end }) => end === "removed");
  const bytes = gone.reduce((sum, one) => sum + (one.bytes ?? 0), 0);
  const size = bytes === 0 ? "" : ` (${humanBytes(bytes)})`;
  return `${head}: ${gone.length} of ${remove.length} removed${size}${failure}`;
}

/** One line about a pass that a crash interrupted. */
export const settledLine = ({ kind, done, left }: ClosedPass): string =>
  `${kind}: a pass was interrupted: ${many(done.length, "end")} reported now, ${left.length} still there and not tried again yet`;

/** One pass with all checks; prints each removal as it happens. A signal ends it after the current removal. */
export async function pass({ kind, lacksPods, given, config, world, terminal }: GcJob): Promise<Outcome> {
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
      onRemoval: (removal) => isTable && printText(terminal, removalLine(removal, terminal)),
      onSettled: (settled) => terminal.warn(`nodewise: ${settledLine(settled)}`),
    },
    { stop: stopping.signal, joinsEviction: false },
  );
  if (!opened.ok) return fault(EXIT.cannotRun, opened.error);
  void stopSignal().then(() => stopping.abort());
  try {
    if (lacksPods) terminal.warn(`nodewise: ${NO_PODS}`);
    const report = await opened.value.collector.collect(new Set([kind]), given.operation);
    for (const problem of [...report.problems, ...report.notices]) onProblem(problem);
    const [collection] = report.collections;
    if (collection !== undefined) print(collection, given, config, terminal);
    return ok(exitOf(report, collection));
  } finally {
    opened.value.release();
  }
}

function print(
  report: CollectionReport,
  given: GcFlags,
  { nodeName: node, kubeletVersion }: ActuatorConfig,
  terminal: Terminal,
): void {
  const { kind, at, answer, removals, fileSystem, complete, problems } = report;
  if (answer === null) return;
  if (given.output === "table" && removals.length > 0) printText(terminal, `${spaceLine(fileSystem)}\n`);
  const { policyVersion } = profileOf(kubeletVersion);
  printAnswer({ kind, node, at, policyVersion, answer }, given, terminal, { removals, fileSystem, complete, problems });
}

function exitOf({ problems }: GcReport, report: CollectionReport | undefined): ExitCode {
  if (report === undefined || problems.some(({ from }) => from !== "decision")) return EXIT.failed;
  return report.complete ? EXIT.ok : EXIT.negative;
}
