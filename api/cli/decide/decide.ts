import { ok, type Result } from "../../base/result.ts";
import { isExtended, reportsDevices } from "../../decide/allocatable/capacity.ts";
import { decideKind } from "../../decide/kinds/index.ts";
import { podOfAsk } from "../../decide/managers/node.ts";
import { looksAtPods, podsLeftOut, podsOfAnother } from "../../decide/pods/pods-of-other-nodes.ts";
import { stepsOf } from "../../documents/inputs/origin.ts";
import { adviceFor } from "../../documents/inputs/parts.ts";
import { takes } from "../../documents/kind-examples.ts";
import type { AllocatableDecision } from "../../model/allocatable.ts";
import { milliValue } from "../../model/amount.ts";
import type { AskOf, Decided, DecisionOf, Explain, Kind, Refusal } from "../../model/decision.ts";
import { askedPodRef, assumedIn } from "../../model/decode-ask.ts";
import { traitsOf } from "../../model/kinds.ts";
import type { Assumed } from "../../model/pod-defaults.ts";
import { PROBE_TYPES } from "../../model/probe-spec.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import {
  type ChosenProfile,
  chooseProfileFor,
  knownVersion,
  minorOf,
  otherProfileReason,
  type ProfileNote,
} from "../../profiles/index.ts";
import type { Profile } from "../../profiles/profile.ts";
import { leftOutText } from "../../service/upgrade/sections.ts";
import { listed } from "../../text/sentences/words.ts";
import { answerText } from "../../text/tables/index.ts";
import { type CapacityOptions, capacityOf } from "../inputs/capacity.ts";
import { type PatchFlags, readPatches } from "../inputs/change.ts";
import type { MadeStatic } from "../inputs/pods.ts";
import { type Question, type QuestionFiles, readQuestion } from "../inputs/question.ts";
import { READ_ONCE, readSnapshot, readsOnce, type SnapshotFiles } from "../inputs/snapshot.ts";
import { type Assumption, asNewPod, type WhatIf, type WhatIfOptions, whatIf } from "../inputs/what-if.ts";
import {
  EXIT,
  type Fault,
  type Form,
  fault,
  isGood,
  type Outcome,
  printData,
  printText,
  type Terminal,
  warnAll,
} from "../terminal.ts";
import { type Compared, comparison, comparisonData, comparisonText } from "./comparison.ts";

/** A warning if the machine, from a file or the library, does not match the node. */
function otherMachine(file: string, { node, machine }: Snapshot): readonly string[] {
  const [capacity, cpus] = [node?.status?.capacity?.["cpu"], machine?.cpus?.length];
  if (capacity === undefined || cpus === undefined || milliValue(capacity.amount) === cpus * 1000) return [];
  return [
    `--machine ${file} has ${cpus} CPUs, and node ${node?.metadata.name} ${capacity.text} (status.capacity): is it the machine of another node?`,
  ];
}

/** A warning if a pod requests devices and no devices are given. */
function missingDevices(kind: Kind, snapshot: Snapshot, ask: AskOf[Kind]): readonly string[] {
  const { assumesNoDevices } = traitsOf(kind);
  if (assumesNoDevices === "never" || reportsDevices(snapshot)) return [];
  const pod = podOfAsk(snapshot, ask as AskOf["topology"]);
  if (!pod.ok || pod.value === null) return [];
  const { initContainers = [], containers } = pod.value.spec;
  const wanted = [...initContainers, ...containers].flatMap(({ resources }) => Object.keys(resources?.requests ?? {}));
  const allocatable = assumesNoDevices === "unlisted" ? (snapshot.node?.status?.allocatable ?? {}) : {};
  const devices = [...new Set(wanted)].filter((name) => isExtended(name) && !Object.hasOwn(allocatable, name)).sort();
  if (devices.length === 0) return [];
  return [`no devices are given, and the pod asks for ${listed(devices)}: decided without them; give --devices`];
}

export interface DecideOptions extends WhatIfOptions, PatchFlags, QuestionFiles, CapacityOptions {
  /** `karpenter`: for `allocatable` only. */
  readonly output: Form | "karpenter";
  /** The kubelet version if the node has none; with a change to the configuration, the version after it. */
  readonly kubelet?: string;
  /** The level of reasons; absent: off for tables, reasons for data. */
  readonly explain?: Explain;
}

/** Decides locally, without API and history, and prints the answer. Exits with 1 for a refusal or a negative verdict. */
export async function decide(
  kind: Kind,
  files: SnapshotFiles,
  options: DecideOptions,
  terminal: Terminal,
): Promise<Outcome> {
  const { pod, ask, facts, patch, output } = options;
  if (!readsOnce([...Object.values(files), pod, ask, facts, patch])) return fault(EXIT.badInput, READ_ONCE);
  if (output === "karpenter" && !takes(kind, "karpenter")) return fault(EXIT.badInput, NOT_KARPENTER);
  const capacity = capacityOf(kind, options);
  if (!capacity.ok) return capacity;
  const isAlone = !traitsOf(kind).needsSnapshot && Object.keys(files).every((option) => option === "kubelet");
  const nothing = { dropped: [], leftOut: [], madeStatic: [], configuration: undefined };
  const read = isAlone
    ? ok({ snapshot: {}, chosen: chooseProfileFor({}, files.kubelet), ...nothing })
    : await readSnapshot({ ...files, ...capacity.value });
  if (!read.ok) return read;
  const { snapshot, chosen, dropped, leftOut, madeStatic, configuration } = read.value;
  warnAll(terminal, leftOut);
  if (dropped.length > 0) terminal.warn(`nodewise: ${replacedText(dropped)}`);
  const mixed = unreadPods(kind, snapshot);
  if (mixed !== undefined) return refused(headOf(kind, snapshot, chosen, []), mixed, snapshot, output, terminal);
  const asks = await readQuestion(kind, options, nodeIn(snapshot), chosen.profile);
  if (!asks.ok) return asks;
  const newcomer = options.ask === undefined ? asNewPod(kind, snapshot, asks.value.ask) : undefined;
  const question = { ...asks.value, ask: newcomer?.ask ?? asks.value.ask };
  warnAll(terminal, [
    ...question.leftOut,
    ...(files.machine === undefined ? [] : otherMachine(files.machine, snapshot)),
    ...missingDevices(kind, snapshot, question.ask),
  ]);
  const asked = whatIf(kind, snapshot, options, files.machine !== undefined, chosen.profile);
  if (!asked.ok) return asked;
  const machineName = files.machine === "-" ? undefined : files.machine;
  const assumed = [...asked.value.assumed, ...(newcomer?.assumed ?? [])];
  const given = { ...asked.value, assumed, chosen, madeStatic, machineName };
  if (options.patch === undefined && options.set === undefined)
    return decideOn(kind, given, question, options, terminal);
  const other = otherKubelet(options.kubelet, chosen);
  if (!other.ok) return other;
  const patches = await readPatches(options, other.value?.profile ?? chosen.profile);
  if (!patches.ok) return patches;
  warnAll(terminal, patches.value.notices);
  const change = { configuration, patch: patches.value.patch ?? {}, kubeletVersion: other.value?.asked };
  const now = other.value === undefined ? chosen : chooseProfileFor(snapshot);
  return compareOn(kind, { ...given, chosen: now, ...change }, question, options, terminal);
}

/** With a change, `--kubelet` is the version after it: undefined if it equals the node's own. Errors: an unknown version. */
function otherKubelet(kubelet: string | undefined, own: ChosenProfile): Result<ChosenProfile | undefined, Fault> {
  if (kubelet === undefined || minorOf(kubelet) === minorOf(own.asked)) return ok(undefined);
  const known = knownVersion("--kubelet", kubelet);
  return known.ok ? known : fault(EXIT.badInput, `--kubelet: ${known.error.message}`);
}

const NOT_KARPENTER =
  "-o karpenter describes the capacity of a node and its allocatable; only the kind allocatable decides that";

interface WhatIfFlags extends WhatIf {
  readonly chosen: ChosenProfile;
  readonly madeStatic: readonly MadeStatic[];
  readonly machineName: string | undefined;
}

/** The answers with and without changes to single fields of the configuration, and their differences. */
function compareOn(
  kind: Kind,
  {
    configuration,
    patch,
    kubeletVersion,
    ...given
  }: WhatIfFlags & Pick<Compared, "configuration" | "patch" | "kubeletVersion">,
  { ask, facts }: Question,
  { output, explain = output === "table" ? "off" : "reasons" }: DecideOptions,
  terminal: Terminal,
): Outcome {
  const { snapshot, chosen, machineName = NO_NODE_GIVEN } = given;
  const { profile } = chosen;
  const asked = { configuration, patch, kubeletVersion, snapshot, ask, facts, explain, profile };
  const made = comparison(kind, asked);
  if (!made.ok) return made;
  const { after, leftOut } = made.value;
  const assumptions = [...assumptionsOf(kind, given, ask, after), ...assumedLeftOut(leftOut, profile)];
  const head = headOf(kind, snapshot, chosen, assumptions);
  if (output === "karpenter" && after.ok)
    printData(terminal, karpenterShape(after.value.decision as AllocatableDecision), "json");
  else if (output === "table") {
    const assumed = assumedText(assumptions);
    printText(
      terminal,
      comparisonText({ ...head, node: head.node ?? machineName, assumed, explain }, made.value, terminal),
    );
  } else if (output !== "karpenter") printData(terminal, { ...head, ...comparisonData(made.value) }, output);
  if (!after.ok) return refusalFault(kind, after.error, snapshot);
  return ok(isGood(after.value.verdict) ? EXIT.ok : EXIT.negative);
}
function decideOn(
  kind: Kind,
  given: WhatIfFlags,
  { ask, facts }: Question,
  { output, explain = output === "table" ? "off" : "reasons" }: DecideOptions,
  terminal: Terminal,
): Outcome {
  const { snapshot, chosen, machineName = NO_NODE_GIVEN } = given;
  const answer = decideKind(kind, { snapshot, facts, ask, explain }, chosen.profile);
  const assumptions = assumptionsOf(kind, given, ask, answer);
  const head = headOf(kind, snapshot, chosen, assumptions);
  if (!answer.ok) return refused(head, answer.error, snapshot, output, terminal);
  const advice = (path: string): string => adviceFor(path, snapshot);
  const question = {
    assumed: assumedText(assumptions),
    leftOut: explain === "off" ? podsLeftOut(kind, snapshot) : undefined,
    machine: snapshot.machine ?? undefined,
    observedAtMs: snapshot.observedAt === undefined ? undefined : Date.parse(snapshot.observedAt),
    asked: askedPodRef(ask) ?? undefined,
  };
  const { node, policyVersion } = head;
  const shown = { kind, node: node ?? machineName, policyVersion, decided: answer.value, explain, advice, ...question };
  if (output === "table") printText(terminal, answerText(shown, terminal));
  else if (output === "karpenter")
    printData(terminal, karpenterShape(answer.value.decision as AllocatableDecision), "json");
  else printData(terminal, { ...head, ...answer.value }, output);
  return ok(isGood(answer.value.verdict) ? EXIT.ok : EXIT.negative);
}

const NO_NODE_GIVEN = "(no node given)";
const nodeIn = ({ node }: Snapshot): string | null => node?.metadata.name ?? null;
/** The head of answers and refusals, as data. */
const headOf = (
  kind: Kind,
  snapshot: Snapshot,
  { profile, note }: ChosenProfile,
  assumptions: readonly Assumption[],
) => ({
  kind,
  node: nodeIn(snapshot),
  policyVersion: profile.policyVersion,
  profile: note,
  ...assumedData(assumptions),
});

/** A refusal if the pods belong to another node, even if the kind does not read pods. */
const unreadPods = (kind: Kind, snapshot: Snapshot): Refusal | undefined =>
  looksAtPods(kind) || nodeIn(snapshot) === null ? undefined : podsOfAnother(snapshot);

function replacedText(dropped: readonly string[]): string {
  const are = dropped.length === 1 ? "is the kubelet's default" : "are the kubelet's defaults";
  return `--config replaces the snapshot's whole kubeletConfiguration: ${listed(firstOf(dropped))} ${are} now; --set and --patch change single fields`;
}

function refused(
  head: ReturnType<typeof headOf>,
  refusal: Refusal,
  snapshot: Snapshot,
  output: DecideOptions["output"],
  terminal: Terminal,
): Result<never, Fault> {
  if (output === "json" || output === "yaml") printData(terminal, { ...head, refusal }, output);
  return refusalFault(head.kind, refusal, snapshot);
}

/** A missing pod is bad input, as in every command. */
function refusalFault(kind: Kind, { code, message, needs }: Refusal, snapshot: Snapshot): Result<never, Fault> {
  // so is a container that does not exist or is not named
  if (needs.includes("ask.container")) return fault(EXIT.badInput, message.replace(/^ask\.(?=container: )/, "--"));
  const advice = [...new Set(needs.map((path) => adviceFor(path, snapshot).replace(/^give /, "")))].join(", ");
  const line = `${kind} refused (${code}): ${message}${advice === "" ? "" : `; here: ${advice}`}`;
  return fault(code === "no_such_pod" ? EXIT.badInput : EXIT.negative, line);
}

interface DecideRequest extends WhatIf {
  readonly chosen: ChosenProfile;
  readonly madeStatic: readonly MadeStatic[];
}

/** Everything that an answer assumes because it was not given. */
function assumptionsOf(
  kind: Kind,
  { snapshot, chosen: { note }, assumed, madeStatic }: DecideRequest,
  ask: Question["ask"],
  answer: Result<Decided<DecisionOf[Kind]>, Refusal>,
): readonly Assumption[] {
  const ofInput = [
    assumedRequestsOf(kind, snapshot, ask),
    assumedKubelet(note),
    looksAtPods(kind) ? assumedStaticPods(madeStatic) : undefined,
    answer.ok ? assumedOutcomesOf(ask, answer.value) : undefined,
  ];
  return [...assumed, ...ofInput.filter((one) => one !== undefined)];
}

/** The assumptions as text; undefined if there are none. */
const assumedText = (assumptions: readonly Assumption[]): string | undefined =>
  assumptions.length === 0 ? undefined : assumptions.map(({ text }) => text).join("; ");
/** The assumptions as a member of the answer, if there are any. */
const assumedData = (assumptions: readonly Assumption[]): { readonly assumed?: object } =>
  assumptions.length === 0 ? {} : { assumed: Object.assign({}, ...assumptions.map(({ data }) => data)) as object };

/** The note that another kubelet treats defaults of the current one, with the given `profile`, as left out. */
const assumedLeftOut = (fields: readonly string[], { version }: Profile): readonly Assumption[] =>
  fields.length === 0 ? [] : [{ text: leftOutText(fields, version), data: { leftOut: fields } }];

const NAMED = 4;
/** The first items of a list, and how many more there are. */
const firstOf = (names: readonly string[]): readonly string[] =>
  names.length > NAMED ? [...names.slice(0, NAMED), `${names.length - NAMED} more`] : names;

/** `cpu 2`. */
const requestText = ({ path, value }: Assumed): string => `${stepsOf(path).at(-1)} ${value}`;

/** Lists the requests that the decision fills in for objects that were never stored by an API server. */
function assumedRequestsOf(kind: Kind, { pods = [] }: Snapshot, ask: Question["ask"]): Assumption | undefined {
  const requests = assumedIn(kind, pods, ask);
  if (requests.length === 0) return undefined;
  const places = Map.groupBy(requests, ({ path }) => path.replace(/\.resources\.requests\b.*$/, ""));
  const named = Array.from(places, ([place, of]) => `${place} (${of.map(requestText).join(", ")})`);
  return { text: `requests from limits, as the API server does: ${listed(firstOf(named))}`, data: { requests } };
}

/** The note that another kubelet was used than the node's or the requested one. */
function assumedKubelet(note: ProfileNote): Assumption | undefined {
  const why = otherProfileReason(note);
  return why === null ? undefined : { text: why, data: {} };
}

/** The note that pods from files count as static pods, which a kubelet treats as critical. */
function assumedStaticPods(made: readonly MadeStatic[]): Assumption | undefined {
  if (made.length === 0) return undefined;
  const named = firstOf(made.map(({ written, name }) => `${written} as ${name}`));
  const text = `manifests in --pods are static pods, which are critical: ${listed(named)}; pods with a uid are used as they are`;
  return { text, data: { staticPods: made.map(({ index, name }) => ({ path: `snapshot.pods[${index}]`, name })) } };
}

/** The types of probes that were simulated without given outcomes. */
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
  const text = `each attempt of ${listed(open)} succeeds; --outcomes, or ${options}, set others`;
  return { text, data: { outcomes: Object.fromEntries(open.map((type) => [type, ["ok"]])) } };
}

/**
 * A node's resources in the terms of Karpenter's InstanceType (sigs.k8s.io/karpenter, pkg/cloudprovider): the capacity, and the
 * overhead in three parts. As there, allocatable is the capacity minus all of the overhead, and memory also minus the huge pages.
 */
const karpenterShape = ({ capacity, allocatable, reserved }: AllocatableDecision): object => ({
  capacity,
  overhead: {
    kubeReserved: reserved["kubeReserved"],
    systemReserved: reserved["systemReserved"],
    evictionThreshold: reserved["evictionHard"],
  },
  allocatable,
});
