import type { InputIssue } from "../../base/input-issue.ts";
import { type Fields, fieldsOf, isObject } from "../../base/own.ts";
import { err, map, ok, type Result } from "../../base/result.ts";
import { type ClusterFault, clusterFaultText } from "../../cluster/fault.ts";
import { readNodesOfPods } from "../../cluster/read.ts";
import { decideKind } from "../../decide/kinds/index.ts";
import { counted } from "../../decide/kinds/resize.ts";
import { podsOfNode } from "../../decide/pods/node-pods.ts";
import { decodeAsk } from "../../model/decode-ask.ts";
import { isActive, namespacedPodName } from "../../model/pod.ts";
import type { PodResize, ResizeDecision } from "../../model/resize.ts";
import { type Labels, parseLabelSelector, selects } from "../../service/label-selector.ts";
import { many } from "../../text/sentences/words.ts";
import { fleetResizeText, type NodeResizes } from "../../text/tables/resize.ts";
import { podName } from "../../text/tables/shown.ts";
import type { Cli } from "../cli.ts";
import { asksCluster, type ClusterFlags } from "../cluster-options.ts";
import { type ClusterNode, eachClusterNode, withCluster } from "../inputs/cluster-node.ts";
import { amountsOf } from "../inputs/question.ts";
import { readDocument } from "../inputs/read.ts";
import { readSnapshot, type SnapshotFiles } from "../inputs/snapshot.ts";
import { EXIT, type Fault, type Form, fault, type Outcome, printData, printText, warnAll } from "../terminal.ts";

/** The flags for pods on several nodes. */
export interface FleetFlags extends ClusterFlags {
  readonly selector?: string;
  readonly snapshots?: readonly string[];
  readonly nodes?: readonly string[];
  readonly pod?: string;
  readonly ask?: string;
  readonly to?: string;
  readonly container?: string;
  readonly kubelet?: string;
  readonly output: Form;
}

/**
 * One change of resources for pods on many nodes, or without a change the pending resizes: each node decides separately. Exits
 * with 1 if one is not accepted, or a node has no answer.
 */
export async function decideFleet(flags: FleetFlags, cli: Cli): Promise<Outcome> {
  const asked = await askOf(flags);
  if (!asked.ok) return asked;
  const all =
    flags.snapshots === undefined ? await ofCluster(asked.value, flags, cli) : await ofFiles(asked.value, flags);
  if (!all.ok) return all;
  const nodes = all.value.filter(({ outcome }) => !outcome.ok || outcome.value.decision.resizes.length > 0);
  const whose = ["the cluster", "the node"][all.value.length] ?? `${all.value.length} nodes`;
  if (nodes.length === 0 && asked.value.change !== null)
    return fault(EXIT.badInput, `no pod of ${whose} has these labels: ${flags.selector ?? ""}`);
  const left = leftAlone(nodes, flags);
  if (left !== null) return left;
  const { terminal } = cli;
  warnAll(
    terminal,
    nodes.flatMap(({ leftOut }) => leftOut),
  );
  const results = nodes.map(
    ({ node, policyVersion, outcome }): NodeResizes => ({
      node,
      policyVersion,
      ...(outcome.ok
        ? { decision: outcome.value.decision, refusal: null }
        : { decision: null, refusal: outcome.error }),
    }),
  );
  if (flags.output === "table") printText(terminal, fleetResizeText(results, terminal));
  else printData(terminal, { kind: "resize", nodes: results }, flags.output);
  return ok(results.every(({ decision }) => decision !== null && isWhole(decision)) ? EXIT.ok : EXIT.negative);
}

/** Whether every pod gets the requested resources. */
const isWhole = ({ resizes, inError, deferred, infeasible }: ResizeDecision): boolean =>
  inError + deferred + infeasible === 0 && !resizes.some(isLeftAlone);
const isLeftAlone = ({ status, message }: PodResize): boolean => status === "Unchanged" && message !== "";

/** The fault if a change matches no pod's containers; null if it matches some. */
function leftAlone(nodes: readonly NodeAnswer[], { ask, container }: FleetFlags): Result<never, Fault> | null {
  const all = nodes.flatMap(({ outcome }) => (outcome.ok ? outcome.value.decision.resizes : []));
  if (all.length === 0 || !all.every(isLeftAlone)) return null;
  const option = container === undefined ? "--container" : `--container ${container}`;
  const messages = all
    .slice(0, MAX_MESSAGES)
    .map(({ pod, message }) => `${ask ?? option}: ${podName(pod)}: ${message}`);
  const rest = all.length - messages.length;
  return fault(EXIT.badInput, ...messages, ...(rest > 0 ? [`and ${many(rest, "pod")} more`] : []));
}
const MAX_MESSAGES = 5;

interface FleetAsk {
  /** The wanted resources, as an ask without pods; null for those in each pod's spec. */
  readonly change: Fields | null;
  /** Whether a pod is selected; undefined for all with a pending resize. */
  readonly isMeant: ((pod: Fields) => boolean) | undefined;
}

async function askOf(flags: FleetFlags): Promise<Result<FleetAsk, Fault>> {
  const { selector, namespace, pod, ask, to, container } = flags;
  if (pod !== undefined)
    return fault(EXIT.badInput, "--pod is one pod: leave it out with --selector, --nodes and --snapshots");
  if (ask !== undefined && (to ?? container) !== undefined)
    return fault(EXIT.badInput, "--ask holds the change too: leave --to and --container out");
  const change = ask === undefined ? changeOf(to, container) : await changeIn(ask);
  if (!change.ok) return change;
  const decoded = decodeAsk("resize", change.value === null ? null : { ...change.value, pods: [] });
  if (!decoded.ok) return fault(EXIT.badInput, ...decoded.error.map((issue) => issueLine(issue, ask)));
  if (selector === undefined && change.value !== null)
    return fault(EXIT.badInput, "which pods are to be resized? name their labels: --selector app=web");
  const wanted = parseLabelSelector(selector ?? "");
  if (!wanted.ok) return fault(EXIT.badInput, `--selector ${wanted.error}`);
  const isMeant = (one: Fields): boolean => {
    const metadata = fieldsOf(one["metadata"]);
    const isOfNamespace = namespace === undefined || (metadata["namespace"] ?? "default") === namespace;
    return isOfNamespace && selects(wanted.value, fieldsOf(metadata["labels"]) as Labels);
  };
  return ok({ change: change.value, isMeant: selector === undefined && namespace === undefined ? undefined : isMeant });
}

/** `file`: the file with the ask; undefined if it came from options. */
const issueLine = ({ path, message }: InputIssue, file: string | undefined): string =>
  `${file === undefined ? path.replace(/^ask\.(?:to\.)?/, (field) => (field === "ask." ? "--" : "--to ")) : `${file}: ${path}`}: ${message}`;

function changeOf(to: string | undefined, container: string | undefined): Result<Fields | null, Fault> {
  if (to === undefined) return container === undefined ? ok(null) : fault(EXIT.badInput, "--container needs --to");
  const amounts = amountsOf(to);
  return map(amounts, (wanted) => ({ to: wanted, ...(container !== undefined && { container }) }));
}

/** Reads an ask, or a patch of the subresource `resize`, that names no pods. */
async function changeIn(path: string): Promise<Result<Fields, Fault>> {
  const source = await readDocument(path);
  if (!source.ok) return source;
  const { value, file } = source.value;
  if (!isObject(value)) return fault(EXIT.badInput, `${file}: is no ask: give one such as {"to": {"cpu": "2"}}`);
  if ("pod" in value || "pods" in value)
    return fault(EXIT.badInput, `${file}: names pods, and so does --selector: leave one out`);
  return ok(value as Fields);
}

interface NodeAnswer {
  readonly node: string;
  readonly policyVersion: string;
  readonly leftOut: readonly string[];
  /** Error: why the node has no answer. */
  readonly outcome: Result<{ readonly decision: ResizeDecision }, string>;
}

const unread = (node: string, why: string): NodeAnswer => ({ node, policyVersion: "", leftOut: [], outcome: err(why) });

async function ofFiles(
  asked: FleetAsk,
  { snapshots = [], kubelet }: FleetFlags,
): Promise<Result<readonly NodeAnswer[], Fault>> {
  const answers: NodeAnswer[] = [];
  for (const path of snapshots) {
    if (path === "-") return fault(EXIT.badInput, "--snapshots takes files: standard input is read once");
    const source = await readDocument(path);
    const files = { snapshot: path, ...(kubelet && { kubelet }) };
    const answer = source.ok ? await answerOf(asked, fieldsOf(source.value.value), files, path) : source;
    // a failure of one node does not stop the others
    if (!answer.ok && snapshots.length === 1) return answer;
    answers.push(answer.ok ? answer.value : unread(path, answer.error.lines.join("; ")));
  }
  return ok(answers);
}

async function ofCluster(asked: FleetAsk, flags: FleetFlags, cli: Cli): Promise<Result<readonly NodeAnswer[], Fault>> {
  const { kubelet, nodes } = flags;
  if (!asksCluster(flags, cli, { namesObject: true, hasFiles: false }))
    return fault(EXIT.badInput, "on which nodes? --context NAME is a live cluster, --snapshots are files");
  const answered = async (node: string, live: Result<ClusterNode, ClusterFault>): Promise<NodeAnswer> => {
    if (!live.ok) return unread(node, clusterFaultText(live.error));
    const { snapshot } = live.value;
    const answer = await answerOf(asked, snapshot, { live: snapshot, ...(kubelet && { kubelet }) }, node);
    return answer.ok ? answer.value : unread(node, answer.error.lines.join("; "));
  };
  return withCluster(flags, cli, async (cluster) => {
    const ofPods = nodes === undefined && asked.isMeant !== undefined;
    const found = ofPods ? await readNodesOfPods(cluster, flags.namespace, flags.selector?.trim() ?? "") : null;
    // without permission to list pods, each node's kubelet is asked for its own
    const named = found?.ok === true ? found.value : nodes;
    return eachClusterNode(cluster, { names: named, claims: false }, flags, cli, answered);
  });
}

/** `posted`: the node as read, with all labels of its pods. Errors: what is wrong with it. */
async function answerOf(
  { change, isMeant }: FleetAsk,
  posted: Fields,
  files: SnapshotFiles,
  place: string,
): Promise<Result<NodeAnswer, Fault>> {
  const read = await readSnapshot(files);
  if (!read.ok) return read;
  const { snapshot, chosen, leftOut } = read.value;
  const { pods } = posted;
  const list = Array.isArray(pods) ? pods : fieldsOf(pods)["items"];
  const here = new Set(podsOfNode(snapshot).filter(isActive).map(namespacedPodName));
  const meant = (Array.isArray(list) ? list.map(fieldsOf) : []).filter(
    (pod) => isMeant?.(pod) && here.has(nameOf(pod)),
  );
  const head = { node: snapshot.node?.metadata.name ?? place, policyVersion: chosen.profile.policyVersion, leftOut };
  const isKnown = snapshot.pods !== undefined;
  if (isMeant !== undefined && meant.length === 0 && isKnown)
    return ok({ ...head, outcome: ok({ decision: counted([]) }) });
  const ask = decodeAsk("resize", isMeant === undefined ? change : { ...change, pods: meant.map(nameOf) });
  if (!ask.ok) return fault(EXIT.badInput, ...ask.error.map(({ path, message }) => `${path}: ${message}`));
  const decided = decideKind("resize", { snapshot, facts: {}, ask: ask.value, explain: "off" }, chosen.profile);
  const outcome = decided.ok ? tried(decided.value.decision as ResizeDecision) : err(decided.error.message);
  if (outcome.ok && isMeant !== undefined)
    return ok({ ...head, outcome: ok({ decision: only(outcome.value.decision, meant) }) });
  return ok({ ...head, outcome });
}

/** Error: why a kubelet tries no resize. */
const tried = (decision: ResizeDecision): NodeAnswer["outcome"] =>
  decision.startErrors.length === 0
    ? ok({ decision })
    : err(`the kubelet does not start: ${decision.startErrors.join("; ")}`);

/** Limits the decision to the selected pods. Other pending resizes were tried as well. */
function only(decision: ResizeDecision, meant: readonly Fields[]): ResizeDecision {
  const names = new Set(meant.map(nameOf));
  return counted(decision.resizes.filter(({ pod }) => names.has(`${pod.namespace}/${pod.name}`)));
}

function nameOf(pod: Fields): string {
  const { name, namespace = "default" } = fieldsOf(pod["metadata"]);
  return `${String(namespace)}/${String(name)}`;
}
