import type { FindingCode } from "../model/finding-numbers.ts";
import type { Comparison } from "../model/outcome.ts";
import {
  CALM_CODES,
  type Finding,
  type Missing,
  type Next,
  type PodExplanation,
  type PodExplanationDecision,
  type PodExplanationList,
  type Word,
} from "../model/why.ts";
import { PROBE_FINDING } from "./sentences/probes.ts";
import { changeSentences, headline, sinceText } from "./sentences/why.ts";
import { listed, many, namesText } from "./sentences/words.ts";
import { amountText, humanBytes } from "./size.ts";
import { type Color, type Paint, printable, type Screen, visible } from "./style.ts";
import { table } from "./table.ts";
import { rankingTable, signalText, thresholdText } from "./tables/eviction.ts";
import { resourcesTable, victimsTable } from "./tables/preemption.ts";
import { outcome, podName, sentenceList } from "./tables/shown.ts";
import { durationText, soonText, timeText } from "./time-text.ts";

const WAITING: ReadonlySet<FindingCode> = new Set([
  "image-pull",
  "init-waiting",
  "claims-not-prepared",
  "not-started",
  "unscheduled",
  "resize-deferred",
  "resize-in-progress",
  "not-ready",
  "throttled",
  "under-pressure",
  "terminating",
  "unknown",
]);
const colorOf = (code: FindingCode): Color => {
  if (CALM_CODES.has(code)) return "green";
  return WAITING.has(code) ? "yellow" : "red";
};
const tagOf = (code: FindingCode): string => code.replaceAll("-", " ").toUpperCase();

/**
 * The explanation of a pod for a person: its state, the messages about it, the decisions behind it, what would change it,
 * and which pod is next.
 */
export function podExplanationText(explanation: PodExplanation, screen: Screen): string {
  const { paint } = screen;
  const parts = explanation.findings.map((finding, i) => findingText(finding, explanation, i === 0, screen));
  const notes = explanation.notes.map((note) => paint("dim", `${printable(note)}\n`)).join("");
  const unused = explanation.unused.map(({ origin, what, why }) =>
    paint("dim", `not used: ${printable(`${origin} (${what}): ${why}`)}\n`),
  );
  const rest = [missingText(explanation.missing, paint), `${notes}${unused.join("")}`].filter((part) => part !== "");
  return `${headText(explanation, paint)}${[...parts, ...rest].join("\n")}`;
}

function headText({ pod, asOf }: PodExplanation, paint: Paint): string {
  const { namespace, name, node, qosClass, phase, priority, owner } = pod;
  const facts = [
    node === null ? "on no node" : node,
    ...(qosClass === null ? [] : [qosClass]),
    ...(priority === null || priority === 0 ? [] : [`priority ${priority}`]),
    ...(phase === null ? [] : [phase]),
    ...(owner === null ? [] : [`of ${owner}`]),
  ];
  const at = asOf === null ? "" : paint("dim", ` · as of ${timeText(Date.parse(asOf))}`);
  return `${paint("bold", printable(`${namespace}/${name}`))} · ${printable(facts.join(" · "))}${at}\n`;
}

function findingText(finding: Finding, { asOf }: PodExplanation, isFirst: boolean, screen: Screen): string {
  const { paint } = screen;
  const since = sinceText(finding.since, asOf);
  const what = printable(headline(finding));
  const lead = outcome(paint, colorOf(finding.code), tagOf(finding.code), what);
  const head = `${lead}${since === "" ? "" : paint("dim", `${since}\n`)}`;
  const said = finding.words
    .filter(isNew)
    .map((word) => wordText(word, paint))
    .join("");
  const decided =
    finding.code === "unscheduled"
      ? nodesTexts(finding.decisions, screen)
      : finding.decisions.map((decision) => decisionText(decision, "", screen));
  const changes = sentenceList(paint, "WHAT WOULD CHANGE IT", changeSentences(finding.whatWouldChange).map(printable));
  const parts = [
    `${head}${said}${comparedText(finding.compared, paint)}`,
    ...decided,
    changes,
    nextText(finding.next, screen),
  ];
  return parts.filter((part) => part !== "").join(isFirst ? "\n" : "");
}

/** Whether a message is new: the status, the event and the condition mostly say the same. */
const isNew = ({ message }: Word, i: number, all: readonly Word[]): boolean =>
  all.findIndex((other) => bare(other.message) === bare(message)) === i || bare(message) === "";
const bare = (message: string): string => message.replace(/^Pod was rejected: /, "").trim();

const SAID: Readonly<Record<Word["from"], string>> = {
  status: "status",
  condition: "condition",
  container: "container",
  event: "event",
  outcome: "kubelet",
  decision: "recorded",
};
/** The words themselves stay as they are, each of their lines. */
function wordText({ from, reason, message, at, count }: Word, paint: Paint): string {
  const times = count > 1 ? `, ${count} times` : "";
  const when = at === null ? "" : ` ${timeText(Date.parse(at))}`;
  const lines = visible(message).trimEnd().split("\n");
  const text = `${printable(reason)}${reason !== "" && message.trim() !== "" ? ": " : ""}${lines.join("\n  ")}`;
  return `  ${paint("dim", `${SAID[from]}${when}${times}  `)}${text}\n`;
}

/** The recorded comparison from when it happened. */
function comparedText(compared: Comparison | null, paint: Paint): string {
  if (compared === null) return "";
  const { verdict, snapshotAgeMs, policyVersion, difference, why } = compared;
  const on = snapshotAgeMs === null ? "" : ` on the snapshot ${durationText(snapshotAgeMs)} before it`;
  const what = `what Nodewise decides${on}${policyVersion === null ? "" : ` (${policyVersion})`}`;
  const end =
    verdict === "agrees"
      ? paint("green", "agrees with the kubelet")
      : difference === null
        ? `cannot be compared: ${printable(why?.message ?? "")}`
        : paint("yellow", `differs: ${differenceText(difference)}`);
  return `  ${paint("dim", "compared  ")}${what} ${end}\n`;
}
function differenceText({ field, kubelet, nodewise }: NonNullable<Comparison["difference"]>): string {
  const [theirs, ours] = [kubelet, nodewise].map((side) => printable(JSON.stringify(side)));
  return `${printable(field)} ${ours} in place of ${theirs}`;
}

const BASIS: Readonly<Record<PodExplanationDecision["basis"], string>> = {
  documents: "on these documents",
  snapshot: "on the snapshot",
  recorded: "recorded",
};
/** The answers of nodes, one for all equal ones: nodes that would admit the pod first, then by number of nodes. */
function nodesTexts(decisions: readonly PodExplanationDecision[], screen: Screen): readonly string[] {
  const alike = Map.groupBy(decisions, (one) => decisionText(one, "", screen));
  const groups = [...alike.values()].toSorted(
    ([a], [b]) => Number(b?.verdict === "decided") - Number(a?.verdict === "decided"),
  );
  const shown = groups.slice(0, MAX_GROUPS).flatMap((group) => {
    const [first] = group;
    const names = group.map(({ node }) => node ?? "a node");
    const count = names.length > 1 ? ` (${many(names.length, "node")})` : "";
    return first === undefined ? [] : [decisionText(first, ` on ${printable(namesText(names))}${count}`, screen)];
  });
  const rest = groups.slice(MAX_GROUPS).flat();
  if (rest.length === 0) return shown;
  const verdicts = [...Map.groupBy(rest, endOf)].map(([end, same]) => `${same.length} ${end}`);
  return [...shown, `and on ${many(rest.length, "more node")}: ${printable(listed(verdicts))}; -o json has all\n`];
}
const MAX_GROUPS = 8;
const endOf = (decision: PodExplanationDecision): string =>
  decision.kind === "admission" && !decision.excerpt.admit ? decision.excerpt.reason : decision.verdict;

function decisionText(decision: PodExplanationDecision, where: string, screen: Screen): string {
  const { paint } = screen;
  const { kind, policyVersion, verdict, agrees, differs, basis, at, assumed } = decision;
  const when = at === null ? "" : ` as of ${timeText(Date.parse(at))}`;
  const agreement =
    agrees === null
      ? ""
      : agrees
        ? paint("green", " · agrees with the kubelet")
        : paint("yellow", ` · differs: ${printable(differs ?? "")}`);
  const but = agrees !== false && differs !== null ? paint("dim", ` (${printable(differs)})`) : "";
  const title = `${paint("bold", `DECISION ${kind}`)}${where}: ${verdict}, ${BASIS[basis]}${when} · ${policyVersion}${agreement}${but}\n`;
  const assumptions = assumed.length === 0 ? "" : paint("dim", `  assumed: ${printable(assumed.join("; "))}\n`);
  return `${title}${excerptText(decision, screen)}${assumptions}`;
}

function excerptText(decision: PodExplanationDecision, screen: Screen): string {
  const shown = { ...screen, notesAt: () => [] };
  switch (decision.kind) {
    case "admission": {
      const { admit, reason, message, resources, preempt, wouldRefuse } = decision.excerpt;
      const said = admit ? "  it would be admitted\n" : `  ${printable(reason)}: ${printable(message)}\n`;
      const others = wouldRefuse
        .filter((one) => !one.shown)
        .map((one) => `  also ${printable(`${one.reason}: ${one.message}`)}\n`);
      return `${said}${others.join("")}${resourcesTable(resources, shown)}${victimsTable(preempt, shown)}`;
    }
    case "resize": {
      const { status, check, message, preempt, resources, isRetried, place, of } = decision.excerpt;
      const said = status === "InProgress" ? "  the kubelet would accept it\n" : `  ${status}: ${printable(message)}\n`;
      const turn = of > 1 ? `  the kubelet tries it as number ${place} of ${of}\n` : "";
      const order = isRetried ? turn : "  the kubelet tries it again only when it restarts\n";
      const room = check === null || check === "capacity" ? resourcesTable(resources, shown) : "";
      return `${said}${order}${room}${victimsTable(preempt, shown)}`;
    }
    case "claims":
      return claimsText(decision.excerpt);
    case "eviction":
      return evictionText(decision.excerpt, screen);
    case "cgroups":
      return cgroupText(decision.excerpt);
    case "probes":
      return probesText(decision.excerpt);
    case "image-gc":
      return imageText(decision.excerpt);
  }
}

type Excerpt<K extends PodExplanationDecision["kind"]> = Extract<
  PodExplanationDecision,
  { readonly kind: K }
>["excerpt"];

function claimsText({ message, claims, calls, allocationFaults }: Excerpt<"claims">): string {
  const lines = [
    message === null ? "its claims can be prepared" : message,
    ...claims.map(({ entry, claim, state }) => `claim ${claim ?? entry}: ${state}`),
    ...calls.map(({ driver, operation }) => `${operation} of ${driver} comes next`),
    ...allocationFaults.map((fault) => `${fault.claim}: ${fault.message}`),
  ];
  return lines.map((line) => `  ${printable(line)}\n`).join("");
}

const RANKED = 6;
function evictionText({ thresholds, ranking, forecast }: Excerpt<"eviction">, screen: Screen): string {
  const lines = thresholds.map((one) => {
    const { signal, available, quantity, state } = one;
    if (available === null || quantity === null) return `  ${thresholdText(one)}: ${state}\n`;
    const distance = available - quantity;
    const how =
      distance < 0 ? `${signalText(signal, -distance)} missing` : `${signalText(signal, distance)} left until it`;
    return `  ${printable(thresholdText(one))}: ${signalText(signal, available)} available, ${how}\n`;
  });
  const soon = forecast
    .filter(({ belowInMs }) => belowInMs !== null && belowInMs > 0)
    .toSorted((a, b) => (a.belowInMs ?? 0) - (b.belowInMs ?? 0))
    .map(
      ({ threshold, belowInMs }) =>
        `  ${printable(thresholdText(threshold))} is met ${soonText(belowInMs ?? 0)} at this rate\n`,
    );
  const drawn =
    ranking === null ? "" : rankingTable({ ...ranking, counterfactuals: [] }, RANKED, { ...screen, asked: undefined });
  return `${lines.join("")}${soon.join("")}${drawn}`;
}

function cgroupText({ container, values }: Excerpt<"cgroups">): string {
  const { cpuQuota, cpuPeriod, memory, memoryHigh, oomScoreAdj } = values;
  const parts = [
    ...(cpuQuota === undefined || cpuPeriod === undefined
      ? []
      : [cpuQuota === -1 ? "no CPU quota" : `${cpuQuota} us of CPU in each ${cpuPeriod} us`]),
    ...(memory === undefined || memory < 0 ? [] : [`memory limit ${humanBytes(memory)}`]),
    ...(memoryHigh === undefined || memoryHigh < 0 ? [] : [`throttled from ${humanBytes(memoryHigh)} on`]),
    ...(oomScoreAdj === undefined ? [] : [`oom_score_adj ${oomScoreAdj}`]),
  ];
  return `  ${container === null ? "the pod" : `container ${printable(container)}`}: ${parts.join(", ")}\n`;
}

function probesText({ firstRestartAtMs, probes, findings }: Excerpt<"probes">): string {
  const settings = probes.map(
    ({ type, handler, periodSeconds, timeoutSeconds, failureThreshold, initialDelaySeconds }) =>
      `  ${type} ${handler}: every ${periodSeconds} s, ${timeoutSeconds} s each, ${many(failureThreshold, "failure")}${initialDelaySeconds > 0 ? `, from ${initialDelaySeconds} s on` : ""}\n`,
  );
  const first =
    firstRestartAtMs === null
      ? ""
      : `  where every attempt fails, the first restart comes after ${durationText(firstRestartAtMs)}\n`;
  const hints = findings
    .filter(({ level }) => level === "hint")
    .map(({ code, path, numbers }) => `  ${printable(`${path}: ${PROBE_FINDING[code](numbers)}`)}\n`);
  return `${settings.join("")}${first}${hints.join("")}`;
}

function imageText({ policy, fileSystem, image, removes }: Excerpt<"image-gc">): string {
  const use =
    fileSystem === null
      ? ""
      : `  the image file system is at ${fileSystem.usagePercent} %, images are removed above ${policy.highThresholdPercent} %\n`;
  const fate =
    image === null
      ? "  the image is not on the node\n"
      : `  the image ${"oldEnoughAtMs" in image ? "stays" : "would be removed"}: ${image.why}\n`;
  const others = removes === 0 ? "" : `  ${many(removes, "image")} would be removed now\n`;
  return `${use}${fate}${others}`;
}

function nextText(next: readonly Next[], { columns, paint }: Screen): string {
  if (next.length === 0) return "";
  const amount = (one: Next, units: number | null): string =>
    units === null ? "" : amountText(one.resource ?? "", units);
  return table(
    [
      { title: "", align: "right" },
      { title: "EVICTED NEXT", shrinkTo: 12 },
      { title: "USAGE", align: "right" },
      { title: "REQUEST", align: "right" },
    ],
    next.map((one) => ({
      cells: [`${one.place}`, podName(one.pod), amount(one, one.usage), amount(one, one.request)],
    })),
    columns,
    paint,
  );
}

function missingText(missing: readonly Missing[], paint: Paint): string {
  if (missing.length === 0) return "";
  const lines = missing.map(
    ({ piece, why, command }) =>
      `- ${paint("yellow", printable(piece))}: ${printable(why)}\n  ${paint("dim", printable(command))}\n`,
  );
  return `${paint("bold", "NOT KNOWN")}\n${lines.join("")}`;
}

/** The pods that have an explanation, a line each. */
export function podExplanationListText(list: PodExplanationList, { columns, paint }: Screen): string {
  const { stories, pods, calm, unknown, unused, missing } = list;
  const notes = unused
    .map(({ origin, what, why }) => paint("dim", `not used: ${printable(`${origin} (${what}): ${why}`)}\n`))
    .join("");
  const left = [missingText(missing, paint), notes]
    .filter((part) => part !== "")
    .map((part) => `\n${part}`)
    .join("");
  const rest = unknown === 0 ? "" : `; ${unknown} could not be checked completely`;
  if (stories.length === 0) {
    const found = unknown === 0 ? `${paint("green", "no problem")} with` : "no problem was found with";
    return `${found} ${many(pods, "pod")}${rest}\n${left}`;
  }
  const rows = stories.map(({ pod, code, since, container, reason, message, more }) => ({
    cells: [
      { text: tagOf(code), color: colorOf(code) },
      podName(pod),
      printable(pod.node ?? ""),
      since === null ? "" : timeText(Date.parse(since)),
      more === 0 ? "" : `+${more}`,
      printable(
        `${container === null || message.startsWith(`container ${container} `) ? "" : `${container}: `}${[reason, message.trim()].filter((part) => part !== "").join(": ")}`,
      ),
    ],
  }));
  // messages may be long; only in a narrow terminal they are kept and other columns are left out
  const giveUp = (place: number) => (columns < NARROW ? { giveUp: place } : {});
  const titles = [
    { title: "FINDING" },
    { title: "POD", ...(columns < NARROW ? { shrinkTo: 16 } : {}) },
    { title: "NODE", ...giveUp(2) },
    { title: "SINCE", ...giveUp(1) },
    { title: "", ...giveUp(3) },
    { title: "MESSAGE", shrinkTo: 12 },
  ];
  return `${table(titles, rows, columns, paint)}${paint("dim", `${stories.length} of ${many(pods, "pod")}; no problem with ${calm}${rest}\n`)}${left}`;
}
const NARROW = 100;
