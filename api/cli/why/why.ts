import { ok, type Result } from "../../base/result.ts";
import { formOf, podItems } from "../../documents/document-form.ts";
import { namespacedName } from "../../model/forms.ts";
import { isCalm, type PodExplanation } from "../../model/why.ts";
import type { WhyDocument } from "../../service/why/evidence.ts";
import { WORKLOADS, type Workload } from "../../service/why/find-pod.ts";
import { type WhyAnswer, type WhyAsked, type WhyFailure, whyOf, whyOfHistory } from "../../service/why/history.ts";
import { many, namesText } from "../../text/sentences/words.ts";
import { shellWord } from "../../text/shell-word.ts";
import { printable } from "../../text/style.ts";
import { podExplanationListText, podExplanationText } from "../../text/why.ts";
import { type HistorySourceFlags, storeSetting } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import { asksCluster } from "../cluster-options.ts";
import { tokenOf } from "../inputs/history-source.ts";
import { readDocuments } from "../inputs/read.ts";
import { READ_ONCE, readsOnce } from "../inputs/snapshot.ts";
import { EXIT, type Fault, type Form, fault, type Outcome, printData, printText } from "../terminal.ts";
import type { ClusterWhyFlags } from "./why-cluster.ts";

export interface WhyFlags extends ClusterWhyFlags, HistorySourceFlags {
  readonly namespace?: string;
  readonly filename?: readonly string[];
  readonly node?: string;
  readonly output: Form;
}

/**
 * From a live cluster if requested; from files or standard input; else from a history. As kubectl's plugin, files without pods are
 * added to the cluster. `isHistoryAsked`: --data-dir or --api is on the command line.
 */
export async function why(
  words: readonly string[],
  flags: WhyFlags,
  isHistoryAsked: boolean,
  cli: Cli,
): Promise<Outcome> {
  const named = subjectIn(words);
  if (!named.ok) return named;
  const { pod, workload } = named.value;
  // as with kubectl, --all-namespaces overrides a namespace
  const { namespace: _, ...rest } = flags;
  const given = flags.allNamespaces === true ? rest : flags;
  const { namespace = null, node = null, filename } = given as WhyFlags;
  const isOfHistory = isHistoryAsked || node !== null;
  const files = filename === undefined ? undefined : await documentsIn(filename);
  if (files?.ok === false) return files;
  const hasFiles = isOfHistory || files?.value.some(({ value }) => namesPods(value)) === true;
  const isLive = asksCluster(given, cli, { namesObject: false, hasFiles });
  if (isLive && isOfHistory)
    return fault(
      EXIT.badInput,
      "a live cluster has no history: leave --context and --kubeconfig out, or --data-dir, --api and --node",
    );
  const isPiped = files === undefined && !isLive && !isHistoryAsked && cli.isPiped();
  const hasDocuments = files !== undefined || isPiped;
  if (!isLive && hasDocuments && node !== null && !isHistoryAsked) {
    return fault(EXIT.badInput, "--node is of the history: give --data-dir or --api too, or leave it out");
  }
  if (given.api !== undefined && hasDocuments && node === null)
    return fault(EXIT.badInput, "with files, an API adds one node: name it with --node, or leave --api out");
  const documents = files ?? (await documentsIn(isPiped ? ["-"] : []));
  if (!documents.ok) return documents;
  if (isLive) return whyInCluster(named.value, documents.value, given, cli);
  const asked: WhyAsked = { pod, namespace, node };
  if (hasDocuments && !isHistoryAsked) return ofDocuments(documents.value, asked, workload, given, cli);
  if (workload !== null)
    return fault(
      EXIT.badInput,
      `a history does not record the ${workload.kind} of a pod: name the pod; \`nodewise why\` without one lists those with findings`,
    );
  if (given.api !== undefined) return ofApi(given.api, asked, documents.value, given, cli);
  const { checkNode, hasHistory, withHistory } = await import("../inputs/open-history.ts");
  const setting = storeSetting(given, cli);
  if (!setting.ok) return setting;
  if (!isOfHistory && given.dataDir === undefined && !hasHistory(setting.value))
    return fault(EXIT.badInput, NOTHING_ASKED);
  return withHistory(setting, false, async (store) => {
    const known = await checkNode(store, node ?? undefined);
    return known.ok ? print(await whyOfHistory(store, asked, documents.value), given, cli) : known;
  });
}

const NOTHING_ASKED =
  "there is nothing to read: give --context NAME for a live cluster (`kubectl nodewise why` takes the current one), -f FILE for what kubectl printed, or --data-dir or --api for a history";

/** A workload's explanation is that of its worst pod; if no pod has a problem, that is printed. */
function ofDocuments(
  documents: readonly WhyDocument[],
  asked: WhyAsked,
  workload: Workload | null,
  given: WhyFlags,
  cli: Cli,
): Outcome {
  const answer = whyOf(documents, asked, undefined, workload);
  const worst = workload === null || !answer.ok ? null : worstOf(answer.value, workload, cli);
  return print(worst === null ? answer : whyOf(documents, { ...asked, pod: worst }), given, cli);
}

/** The first pod of a list, with the number of others on standard error; null if none has an explanation. */
function worstOf({ list }: WhyAnswer, { kind, name }: Workload, { terminal }: Cli): string | null {
  const [worst, ...others] = (list?.stories ?? []).map(({ pod }) => namespacedName(pod));
  if (worst === undefined) return null;
  const rest = others.length === 0 ? "" : `; ${namesText(others)} ${others.length === 1 ? "has" : "have"} findings too`;
  const of = `${kind} ${name} has ${many(list?.pods ?? 0, "pod")}`;
  terminal.warn(printable(`nodewise: ${of}, of which ${worst} has the worst finding${rest}`));
  return worst;
}

/** `files`: documents that a cluster does not serve, such as a cpu.stat. */
async function whyInCluster(
  { pod, workload }: WhySubject,
  files: readonly WhyDocument[],
  given: WhyFlags,
  cli: Cli,
): Promise<Outcome> {
  const { clusterEvidence } = await import("./why-cluster.ts");
  const read = await clusterEvidence(pod, given, cli);
  if (!read.ok) return read;
  const asked = { pod: read.value.pod, namespace: null, node: null };
  const answer = whyOf([...read.value.documents, ...files], asked, read.value.additional, workload);
  const worst = workload === null || !answer.ok ? null : worstOf(answer.value, workload, cli);
  return worst === null ? print(answer, given, cli) : whyInCluster({ pod: worst, workload: null }, files, given, cli);
}

/** Whether a document names its pods; with one, the cluster is not read. */
const namesPods = (value: unknown): boolean =>
  ["v1.Pod", "snapshot", "decision"].includes(formOf(value) ?? "") || (podItems(value)?.length ?? 0) > 0;

/** Every document of every file, with the file's name. */
async function documentsIn(paths: readonly string[]): Promise<Result<readonly WhyDocument[], Fault>> {
  if (!readsOnce(paths)) return fault(EXIT.badInput, READ_ONCE);
  const all: WhyDocument[] = [];
  for (const path of paths) {
    const read = await readDocuments(path);
    if (!read.ok) return read;
    const isAlone = read.value.length === 1;
    all.push(
      ...read.value.map(({ value, file, document }) => ({
        value,
        origin: isAlone ? file : `${file}: document ${document}`,
      })),
    );
  }
  return ok(all);
}

async function ofApi(
  url: string,
  asked: WhyAsked,
  documents: readonly WhyDocument[],
  given: WhyFlags,
  cli: Cli,
): Promise<Outcome> {
  const token = await tokenOf(given, cli);
  if (!token.ok) return token;
  // loads no database drivers, as a client needs none
  const { posterOf } = await import("../inputs/history-api.ts");
  const post = posterOf(url, token.value);
  if (!post.ok) return post;
  const answer = await post.value<WhyAnswer>("v1/why", { ...asked, ...(documents.length === 0 ? {} : { documents }) });
  return answer.ok ? print(answer, given, cli) : answer;
}

/** The commands in the explanation, adapted to where it is from: the same cluster, history, API or files. */
function askingThere({ story, list }: WhyAnswer, given: WhyFlags, cli: Cli): WhyAnswer {
  const { context, kubeconfig, cluster, user, as, dataDir, database, api, tokenFile, filename } = given;
  const typed = (options: Readonly<Record<string, string | undefined>>): string =>
    Object.entries(options)
      .map(([name, value]) => (value === undefined ? "" : ` --${name} ${shellWord(value)}`))
      .join("");
  const ofCluster = typed({ context, kubeconfig, cluster, user, as });
  const isOfEnv = dataDir === cli.env["NODEWISE_DATA_DIR"];
  const ofHistory = typed({
    ...(isOfEnv || api !== undefined ? {} : { "data-dir": dataDir }),
    database,
    api,
    "token-file": tokenFile,
  });
  const isLive = ofCluster !== "" || (cli.isPlugin && ofHistory === "");
  // piped input cannot be read again
  const files =
    isLive || filename === undefined || filename.includes("-") ? "" : ` -f ${filename.map(shellWord).join(" ")}`;
  const there = (command: string): string => {
    const [, program, verb, rest] = /^(kubectl|nodewise)( why| decide admission|)(?= )(.*)$/.exec(command) ?? [];
    if (program === undefined || rest === undefined || rest.includes("--data-dir")) return command;
    if (program === "kubectl") return `kubectl${ofCluster}${rest}`;
    const plugin = isLive && cli.isPlugin ? "kubectl " : "";
    const where = isLive ? ofCluster : verb === " why" ? ofHistory : "";
    return `${plugin}nodewise${verb}${where}${rest}${verb === " why" ? files : ""}`;
  };
  const asking = <T extends { readonly missing: PodExplanation["missing"] }>(one: T): T => ({
    ...one,
    missing: one.missing.map((piece) => ({ ...piece, command: there(piece.command) })),
  });
  return {
    story: story && { ...asking(story), findings: story.findings.map(asking) },
    list: list && asking(list),
  };
}

function print(answer: Result<WhyAnswer, WhyFailure>, given: WhyFlags, cli: Cli): Outcome {
  const { terminal } = cli;
  const { output } = given;
  if (!answer.ok) {
    const { error } = answer;
    return error.code === "history"
      ? fault(EXIT.failed, error.failure.message)
      : fault(EXIT.badInput, error.why.message);
  }
  const { story, list } = askingThere(answer.value, given, cli);
  if (output !== "table") printData(terminal, story ?? list, output);
  else if (story !== null) printText(terminal, podExplanationText(story, terminal));
  else if (list !== null) printText(terminal, podExplanationListText(list, terminal));
  const isWell = story === null ? list?.stories.length === 0 : story.findings.every(isCalm);
  return ok(isWell ? EXIT.ok : EXIT.negative);
}

/** The subject of an explanation; both null for all pods. */
interface WhySubject {
  /** NAME, NAMESPACE/NAME or a uid. */
  readonly pod: string | null;
  readonly workload: Workload | null;
}

const POD: readonly string[] = ["po", "pod", "pods"];
/** Types that users try, and the commands for them. */
const OTHERS: Readonly<Record<string, string>> = {
  no: "`nodewise decide eviction --node NAME` explains a node, `nodewise why -A` lists all pods",
  svc: "`kubectl get pods -l SELECTOR` lists those behind a service",
};
const SAME: Readonly<Record<string, string>> = { node: "no", nodes: "no", service: "svc", services: "svc" };

/**
 * The subject as in kubectl: `POD`, `pod POD`, `pod/POD`, `deploy/NAME`, `deployment.apps/NAME`. Errors: more than one, or another
 * type.
 */
function subjectIn(words: readonly string[]): Result<WhySubject, Fault> {
  const [first = "", second] = words;
  if (words.length === 0 || (words.length === 1 && POD.includes(first))) return ok({ pod: null, workload: null });
  const isTyped = second !== undefined && !first.includes("/") && typeOf(first) !== undefined;
  const text = isTyped ? `${first}/${second}` : first;
  if (words.length > (isTyped ? 2 : 1))
    return fault(EXIT.badInput, `${words.join(" ")}: ask for one pod, or give none for all that have findings`);
  const parts = text.split("/");
  const [type = "", name = ""] = parts;
  const known = parts.length > 1 ? typeOf(type) : undefined;
  if (parts.length > 2 || parts.includes("")) {
    const form = known === undefined ? "NAME or NAMESPACE/NAME" : `${type}/NAME`;
    return fault(EXIT.badInput, `\`${text}\` is no pod's name: give it as ${form}`);
  }
  if (known === undefined) return ok({ pod: text, workload: null });
  if (known === "pod") return ok({ pod: name, workload: null });
  if (known in OTHERS) return fault(EXIT.badInput, `${text}: \`nodewise why\` explains pods: ${OTHERS[known]}`);
  return ok({ pod: null, workload: { kind: known as Workload["kind"], name } });
}

/** `pod`, a kind of workload or one of `OTHERS`; undefined for a word that is no type, such as a namespace. */
function typeOf(word: string): string | undefined {
  const short = word.toLowerCase().replace(/\.(?:v1\.)?(?:apps|batch)$/, "");
  if (POD.includes(short)) return "pod";
  const kind = Object.entries(WORKLOADS).find(([, names]) => (names as readonly string[]).includes(short))?.[0];
  return kind ?? (short in OTHERS ? short : SAME[short]);
}
