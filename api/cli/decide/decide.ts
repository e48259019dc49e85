import { isExtended, tellsDevices } from "../../decide/allocatable/capacity.ts";
import { decideKind } from "../../decide/kinds/index.ts";
import { podOfAsk } from "../../decide/managers/node.ts";
import { looksAtPods, podsLeftOut } from "../../decide/pods/whose-pods.ts";
import { stepsOf } from "../../documents/inputs/origin.ts";
import { optionFor } from "../../documents/inputs/parts.ts";
import { milliValue } from "../../model/amount.ts";
import { askedPodRef, assumedIn } from "../../model/asks.ts";
import type { AskOf, DecisionOf, Explain, Kind, Refusal } from "../../model/decision.ts";
import { traitsOf } from "../../model/kinds.ts";
import type { Assumed } from "../../model/pod-defaults.ts";
import { PROBE_TYPES } from "../../model/probe.ts";
import { ok } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type ChosenProfile, chooseProfileFor, type ProfileNote, profileOf } from "../../profiles/index.ts";
import { listed } from "../../text/sentences/words.ts";
import { printable } from "../../text/style.ts";
import { answerText } from "../../text/tables/index.ts";
import type { MadeStatic } from "../inputs/pods.ts";
import { type Question, type QuestionFiles, readQuestion } from "../inputs/question.ts";
import {
  type FileSystemOptions,
  fileSystemSize,
  READ_ONCE,
  readSnapshot,
  readsOnce,
  type SnapshotFiles,
} from "../inputs/snapshot.ts";
import { type Assumption, type WhatIf, type WhatIfOptions, whatIf } from "../inputs/what-if.ts";
import { EXIT, type Form, fault, isGood, type Outcome, printData, type Terminal, warnAll } from "../terminal.ts";

/** A machine of a file or of the library, beside a node that has another: a line for a person. */
function otherMachine(file: string, { node, machine }: Snapshot): readonly string[] {
  const [told, cpus] = [node?.status?.capacity?.["cpu"], machine?.cpus?.length];
  if (told === undefined || cpus === undefined || milliValue(told.amount) === cpus * 1000) return [];
  return [
    `--machine ${file} has ${cpus} CPUs, and node ${node?.metadata.name} ${told.text} (status.capacity): is it that of another?`,
  ];
}

/** A pod that asks for devices where nobody told of any: a line for a person. */
function missingDevices(kind: Kind, snapshot: Snapshot, ask: AskOf[Kind]): readonly string[] {
  const { assumesNoDevices } = traitsOf(kind);
  if (assumesNoDevices === "never" || tellsDevices(snapshot)) return [];
  const pod = podOfAsk(snapshot, ask as AskOf["topology"]);
  if (!pod.ok || pod.value === null) return [];
  const { initContainers = [], containers } = pod.value.spec;
  const wanted = [...initContainers, ...containers].flatMap(({ resources }) => Object.keys(resources?.requests ?? {}));
  const told = assumesNoDevices === "unlisted" ? (snapshot.node?.status?.allocatable ?? {}) : {};
  const devices = [...new Set(wanted)].filter((name) => isExtended(name) && !Object.hasOwn(told, name)).sort();
  if (devices.length === 0) return [];
  return [`no devices are given, and the pod asks for ${listed(devices)}: decided without them; give --devices`];
}

export interface DecideOptions extends WhatIfOptions, QuestionFiles, FileSystemOptions {
  readonly output: Form;
  /** The kubelet to answer as where the node tells no version. */
  readonly kubelet?: string;
  /** Absent: off for tables, reasons for data. */
  readonly explain?: Explain;
}

/** `--kubelet` of a node that tells another version: a line for a person. */
function otherKubelet({ node }: Snapshot, kubelet: string | undefined): readonly string[] {
  const own = node?.status?.nodeInfo?.kubeletVersion;
  if (kubelet === undefined || own === undefined || profileOf(own) === profileOf(kubelet)) return [];
  return [`the node tells kubelet ${printable(own)}, which counts before --kubelet ${kubelet}`];
}

/** Decides here, without API and history, and prints the answer. A refusal and a negative verdict end with 1. */
export async function decide(
  kind: Kind,
  files: SnapshotFiles,
  options: DecideOptions,
  terminal: Terminal,
): Promise<Outcome> {
  const { pod, ask, facts } = options;
  if (!readsOnce([...Object.values(files), pod, ask, facts])) return fault(EXIT.badInput, READ_ONCE);
  const imageFs = fileSystemSize(kind, options);
  if (!imageFs.ok) return imageFs;
  const isAlone = !traitsOf(kind).needsSnapshot && Object.keys(files).length === 0;
  const read = isAlone
    ? ok({ snapshot: {}, chosen: chooseProfileFor({}, files.kubelet), dropped: [], leftOut: [], madeStatic: [] })
    : await readSnapshot(imageFs.value === undefined ? files : { ...files, imageFs: imageFs.value });
  if (!read.ok) return read;
  const { snapshot, chosen, dropped, leftOut, madeStatic } = read.value;
  warnAll(terminal, otherKubelet(snapshot, options.kubelet));
  warnAll(terminal, leftOut);
  if (dropped.length > 0) terminal.warn(`nodewise: ${replacedText(dropped)}`);
  const question = await readQuestion(kind, options, nodeIn(snapshot));
  if (!question.ok) return question;
  warnAll(terminal, [
    ...question.value.leftOut,
    ...(files.machine === undefined ? [] : otherMachine(files.machine, snapshot)),
    ...missingDevices(kind, snapshot, question.value.ask),
  ]);
  const asked = whatIf(kind, snapshot, options, files.machine !== undefined, chosen.profile);
  if (!asked.ok) return asked;
  const machineName = files.machine === "-" ? undefined : files.machine;
  return decideOn(kind, { ...asked.value, chosen, madeStatic, machineName }, question.value, options, terminal);
}

interface GivenWhatIf extends WhatIf {
  readonly chosen: ChosenProfile;
  readonly madeStatic: readonly MadeStatic[];
  readonly machineName: string | undefined;
}
function decideOn(
  kind: Kind,
  { snapshot, chosen: { profile, note }, assumed, madeStatic, machineName = "(no node given)" }: GivenWhatIf,
  { ask, facts }: Question,
  { output, kubelet, explain = output === "table" ? "off" : "reasons" }: DecideOptions,
  terminal: Terminal,
): Outcome {
  const answer = decideKind(kind, { snapshot, facts, ask, explain }, profile);
  const node = nodeIn(snapshot);
  const ofPods = [
    assumedRequestsOf(kind, snapshot, ask),
    assumedKubelet(snapshot, kubelet, note),
    looksAtPods(kind) ? assumedStaticPods(madeStatic) : undefined,
    answer.ok ? assumedOutcomesOf(ask, answer.value) : undefined,
  ];
  const assumptions = [...assumed, ...ofPods.filter((one) => one !== undefined)];
  const assumption =
    assumptions.length === 0 ? {} : { assumed: Object.assign({}, ...assumptions.map(({ data }) => data)) as object };
  const { policyVersion } = profile;
  const head = { kind, node, policyVersion, profile: note, ...assumption };
  if (!answer.ok) {
    if (output !== "table") printData(terminal, { ...head, refusal: answer.error }, output);
    return fault(EXIT.negative, refusalText(kind, answer.error));
  }
  const advice = (path: string): string => `give ${optionFor(path)}`;
  const question = {
    assumed: assumptions.length === 0 ? undefined : assumptions.map(({ text }) => text).join("; "),
    leftOut: explain === "off" ? podsLeftOut(kind, snapshot) : undefined,
    machine: snapshot.machine ?? undefined,
    observedAtMs: snapshot.observedAt === undefined ? undefined : Date.parse(snapshot.observedAt),
    asked: askedPodRef(ask) ?? undefined,
  };
  const shown = { kind, node: node ?? machineName, policyVersion, decided: answer.value, explain, advice, ...question };
  if (output === "table") terminal.write(answerText(shown, terminal));
  else printData(terminal, { ...head, ...answer.value }, output);
  return ok(isGood(answer.value.verdict) ? EXIT.ok : EXIT.negative);
}

const nodeIn = ({ node }: Snapshot): string | null => node?.metadata.name ?? null;

const NAMED = 4;
function replacedText(dropped: readonly string[]): string {
  const are = dropped.length === 1 ? "is the kubelet's default" : "are the kubelet's defaults";
  return `--config takes the place of the snapshot's whole kubeletConfiguration: ${listed(firstOf(dropped))} ${are} now`;
}
const firstOf = (names: readonly string[]): readonly string[] =>
  names.length > NAMED ? [...names.slice(0, NAMED), `${names.length - NAMED} more`] : names;

/** `cpu 2`. */
const requestText = ({ path, value }: Assumed): string => `${stepsOf(path).at(-1)} ${value}`;

/** Lists the requests that the decision fills in for objects that no API server has stored. */
function assumedRequestsOf(kind: Kind, { pods = [] }: Snapshot, ask: Question["ask"]): Assumption | undefined {
  const requests = assumedIn(kind, pods, ask);
  if (requests.length === 0) return undefined;
  const places = Map.groupBy(requests, ({ path }) => path.replace(/\.resources\.requests\b.*$/, ""));
  const named = Array.from(places, ([place, of]) => `${place} (${of.map(requestText).join(", ")})`);
  return { text: `requests from limits, as the API server does: ${listed(firstOf(named))}`, data: { requests } };
}

/** The note that another kubelet answers than that which the node or the caller named. */
function assumedKubelet(snapshot: Snapshot, kubelet: string | undefined, { why }: ProfileNote): Assumption | undefined {
  const named = snapshot.node?.status?.nodeInfo?.kubeletVersion || kubelet;
  return why === null || named === undefined ? undefined : { text: why, data: {} };
}

/** The note that pods of files were taken as static pods, which a kubelet counts as critical. */
function assumedStaticPods(made: readonly MadeStatic[]): Assumption | undefined {
  if (made.length === 0) return undefined;
  const named = firstOf(made.map(({ written, name }) => `${written} as ${name}`));
  const text = `manifests in --pods are static pods, which are critical: ${listed(named)}; pods with a uid are taken as they are`;
  return { text, data: { staticPods: made.map(({ index, name }) => ({ path: `snapshot.pods[${index}]`, name })) } };
}

/** The types of probes that were run and whose outcomes nobody gave. */
function assumedOutcomesOf(
  ask: Question["ask"],
  { decision }: { readonly decision: DecisionOf[Kind] },
): Assumption | undefined {
  if (ask === undefined || !("outcomes" in ask) || !("containers" in decision)) return undefined;
  const { outcomes } = ask;
  const run = new Set(
    (decision as DecisionOf["probes"]).containers.flatMap(({ probes }) => probes.map(({ type }) => type)),
  );
  const open = PROBE_TYPES.filter((type) => run.has(type) && outcomes[type] === undefined);
  if (open.length === 0) return undefined;
  const options = listed(open.map((type) => `--${type}`));
  const text = `each attempt of ${listed(open)} succeeds; --outcomes, or ${options}, take others`;
  return { text, data: { outcomes: Object.fromEntries(open.map((type) => [type, ["ok"]])) } };
}

function refusalText(kind: Kind, { code, message, needs }: Refusal): string {
  const options = [...new Set(needs.map(optionFor))].join(", ");
  return `${kind} refused (${code}): ${message}${options === "" ? "" : `; here: ${options}`}`;
}
