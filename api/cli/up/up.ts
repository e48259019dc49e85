import { existsSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { actuatorConfig } from "../../../actuator/core/config.ts";
import { startActuator } from "../../../actuator/main.ts";
import type { PassReport } from "../../../actuator/pass/loop.ts";
import { storeAt } from "../../../db/open/node.ts";
import { ok, type Result } from "../../base/result.ts";
import { openCluster } from "../../cluster/cluster.ts";
import { clusterFaultText } from "../../cluster/fault.ts";
import type { DecisionOf, Kind } from "../../model/decision.ts";
import type { PlaceReasons } from "../../model/forms.ts";
import { kindsWith } from "../../model/kinds.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import type { Log } from "../../observe/log.ts";
import { NEWEST, profileIn } from "../../profiles/index.ts";
import type { RunningApi } from "../../server.ts";
import { printable } from "../../text/style.ts";
import { answerText } from "../../text/tables/index.ts";
import { problemLine, recoveryLine } from "../actuator/actuator.ts";
import { passLine } from "../actuator/pass-text.ts";
import { startServing } from "../api/serve.ts";
import { type ApiFlags, upStateDirectory } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import { asksCluster, type ClusterFlags, clusterOptions } from "../cluster-options.ts";
import { follow, ownClient } from "../collect/collect.ts";
import { readSnapshot } from "../inputs/snapshot.ts";
import { EXIT, type Fault, fault, type Outcome, printText, stopSignal, type Terminal, warnAll } from "../terminal.ts";

interface Answer<K extends Kind> {
  readonly decision: DecisionOf[K];
  readonly reasons: readonly PlaceReasons[];
  readonly needs: readonly string[];
}

/** A node's snapshot, and the runtime's output if that is in separate files. */
interface KnownNodeFiles {
  readonly snapshot?: string;
  readonly images?: string;
  readonly containers?: string;
  readonly sandboxes?: string;
  readonly imagefs?: string;
}

/** Sends a node's snapshot from a file to the API, so that the dashboard shows it, and prints the answers. */
async function showKnownNode(files: KnownNodeFiles, api: RunningApi, terminal: Terminal): Promise<Result<void, Fault>> {
  const { snapshot: file, images, containers, sandboxes, imagefs } = files;
  const runtime = Object.entries({ images, containers, sandboxes, imagefs }).filter(([, path]) => path !== undefined);
  const read = await readSnapshot({
    ...(file === undefined ? {} : { snapshot: file }),
    ...Object.fromEntries(runtime),
  });
  if (!read.ok) return read;
  const { snapshot, leftOut } = read.value;
  warnAll(terminal, leftOut);
  const node = snapshot.node?.metadata.name ?? "(no node given)";
  const shown = { node, explain: "off", policyVersion: profileIn(snapshot).policyVersion } as const;
  const texts: string[] = [];
  for (const kind of kindsWith("up", "printed")) {
    const answer = await ask(kind, snapshot, api);
    if (!answer.ok) return answer;
    // the dashboard shows the reasons
    texts.push(answerText({ ...shown, kind, decided: { ...answer.value, reasons: [] } }, terminal));
  }
  printText(terminal, `${terminal.paint("bold", `Node ${node}`)}, from ${file}\n\n`);
  for (const text of texts) terminal.write(`${text}\n`);
  // the dashboard shows which inputs are missing
  for (const kind of kindsWith("up", "recorded")) await ask(kind, snapshot, api);
  return ok(undefined);
}

async function ask<K extends Kind>(kind: K, snapshot: Snapshot, api: RunningApi): Promise<Result<Answer<K>, Fault>> {
  const reply = await api.fetch(
    new Request(`${api.url}/v1/decisions/${kind}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ snapshot, explain: "reasons" }),
    }),
  );
  const body = (await reply.json()) as Answer<K> & { detail?: string };
  return reply.ok ? ok(body) : fault(EXIT.failed, `${kind}: ${body.detail ?? `the API answered ${reply.status}`}`);
}

export interface UpFlags extends ApiFlags, ClusterFlags, KnownNodeFiles {
  readonly manifests?: string;
  readonly config?: string;
  readonly nodeName?: string;
  readonly intervalSeconds: number;
}

/** `nodewise up`: API and observer in one process, until a signal. It writes nothing but its history and state. */
export async function up(given: UpFlags, cli: Cli): Promise<Outcome> {
  const stop = stopSignal();
  const dataDir = resolve(given.dataDir ?? upStateDirectory(cli.env));
  // the current context is not used: by default it observes this machine
  return asksCluster(given, cli, { namesObject: false, hasFiles: true })
    ? upCluster(given, dataDir, stop, cli)
    : upMachine(given, dataDir, stop, cli);
}

async function upCluster(given: UpFlags, dataDir: string, stop: Promise<unknown>, cli: Cli): Promise<Outcome> {
  const opened = await openCluster(clusterOptions(given, cli.env));
  if (!opened.ok) return fault(EXIT.badInput, clusterFaultText(opened.error));
  const api = await startOwn({ ...given, dataDir }, cli);
  try {
    if (!api.ok) return api;
    printText(cli.terminal, `${addressesText(api.value, dataDir, given.intervalSeconds, cli.terminal)}\n`);
    const flags = { intervalSeconds: given.intervalSeconds, statusListen: "off", logFormat: "text" } as const;
    return await follow(opened.value, flags, ownClient(api.value), stop, cli);
  } finally {
    opened.value.close();
    if (api.ok) await api.value.close();
  }
}

async function upMachine(given: UpFlags, dataDir: string, stop: Promise<unknown>, cli: Cli): Promise<Outcome> {
  const { terminal } = cli;
  const config = actuatorConfig({
    mode: "observe",
    stateDir: join(dataDir, "actuator"),
    intervalSeconds: given.intervalSeconds,
    ...(given.manifests === undefined ? {} : { manifests: resolve(given.manifests) }),
    ...(given.config === undefined ? {} : { kubeletConfiguration: given.config }),
    ...(given.nodeName === undefined ? {} : { nodeName: given.nodeName }),
  });
  if (!config.ok) return fault(EXIT.badInput, config.error);
  const api = await startOwn({ ...given, dataDir }, cli);
  if (!api.ok) return api;
  const known = given.snapshot === undefined ? ok(undefined) : await showKnownNode(given, api.value, terminal);
  if (!known.ok) {
    await api.value.close();
    return known;
  }
  const print = passPrinter(
    config.value.nodeName,
    () => addressesText(api.value, dataDir, given.intervalSeconds, terminal),
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

/** In the folder of a history that `nodewise up` created: such a history may be written to and swept. */
const MARKER = "made-by-nodewise-up";
const MARKER_TEXT =
  "`nodewise up` made the history in this folder: it records what is tried out here, and removes old records.\n";

/** The API with a separate history. Errors: the folder has another history, which is not even opened; those of `startServing`. */
async function startOwn(given: ApiFlags & { readonly dataDir: string }, cli: Cli): Promise<Result<RunningApi, Fault>> {
  const { dataDir } = given;
  const [history, marker] = [storeAt({ dataDir }), join(dataDir, MARKER)];
  const isThere = history.exists();
  if (isThere && !existsSync(marker)) return fault(EXIT.badInput, othersText(dataDir));
  // a demo never writes to the database in the environment
  const own = { ...cli, env: { ...cli.env, NODEWISE_DATABASE: undefined } };
  const api = await startServing(given, own, { log: quietLog(cli.terminal) });
  // even if the start fails: the next start may use the history that it created
  if (isThere || !history.exists()) return api;
  try {
    writeFileSync(marker, MARKER_TEXT);
    return api;
  } catch (error) {
    if (api.ok) await api.value.close();
    return fault(EXIT.failed, `${marker}: cannot be written (${String(error)}): check the folder, and start again`);
  }
}

const othersText = (dataDir: string): string =>
  `${dataDir} holds a history that \`nodewise up\` did not makeand that a demo would write into: give another --data-dir (or NODEWISE_DATA_DIR), or serve this one with \`nodewise api --data-dir ${dataDir}\``;

/** Prints the first pass in full and where to look; afterwards a line when something changes. */
function passPrinter(nodeName: string, where: () => string, terminal: Terminal): (report: PassReport) => void {
  let last: string | undefined;
  return (report) => {
    const isFirst = last === undefined;
    const line = passLine({ ...report, decisionId: null, decidedBy: null });
    const content = line.slice(report.at.length);
    const title = `${terminal.paint("bold", "This machine")}\n\n`;
    if (isFirst) printText(terminal, `${title}${seenText(nodeName, report, terminal)}\n${where()}\n`);
    else if (content !== last) printText(terminal, `${line}\n`);
    last = content;
  };
}

function seenText(node: string, { allocatable, cgroups, needs, applied }: PassReport, terminal: Terminal): string {
  const texts: string[] = [];
  const shown = { node, explain: "off", policyVersion: NEWEST.policyVersion } as const;
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
    const advice = "`nodewise actuator --dry-run` lists them, `--mode enforce` carries them out";
    texts.push(`Observing only: ${steps} steps would apply this below the cgroup /nodewise; ${advice}.\n`);
  }
  return texts.join("\n");
}

function addressesText(api: RunningApi, dataDir: string, intervalSeconds: number, { paint }: Terminal): string {
  const here = `--data-dir ${printable(dataDir)}`;
  const lines = [
    ["Dashboard", paint("cyan", `${api.url}/`)],
    [
      "API",
      `${paint("cyan", `${api.url}/docs`)}${api.requiresToken ? " (with a token)" : ` (open to this machine; \`nodewise token create NAME ${here}\` closes it)`}`,
    ],
    ["History", `${printable(storeAt({ dataDir }).label)} (\`nodewise history ${here}\` lists it)`],
    ["Stop", `Ctrl-C; until then it observes again every ${intervalSeconds} s`],
  ] as const;
  return lines.map(([name, text]) => `${paint("bold", name.padEnd(9))}  ${text}`).join("\n");
}

/** A person reads this terminal, so successes are not logged line by line. */
const quietLog = (terminal: Terminal): Log => ({
  info: () => {},
  warn: (fields, message) => terminal.warn(`nodewise: ${message} ${JSON.stringify(fields)}`),
  error: (fields, message) => terminal.warn(`nodewise: ${message} ${JSON.stringify(fields)}`),
});
