import { own } from "../../base/own.ts";
import type { Decided, DecisionOf, Explain, Kind, Verdict } from "../../model/decision.ts";
import type { Numbers, PodRef, Reason } from "../../model/forms.ts";
import type { Machine } from "../../model/machine.ts";
import type { ProfileNote } from "../../profiles/index.ts";
import { EVICTION_SENTENCES } from "../sentences/eviction.ts";
import { CONTAINER_GC_SENTENCES, IMAGE_GC_SENTENCES } from "../sentences/garbage-collection.ts";
import { PROBE_GUARD_SENTENCES, PROBES_SENTENCES } from "../sentences/probes.ts";
import { RESOURCES_SENTENCES } from "../sentences/resources.ts";
import { ADMISSION_SENTENCES, type Sentences } from "../sentences/words.ts";
import { amountText, isBytes, magnitude, quantityText, resourceOfSignal } from "../size.ts";
import { assumedLine, escapeControls, fitLines, printable, type Screen } from "../style.ts";
import { admissionTable } from "./admission.ts";
import { allocatableTable, allocatableVerdict } from "./allocatable.ts";
import { cgroupsTable, cgroupsVerdict } from "./cgroups.ts";
import { CLAIMS_SENTENCES, claimsTable } from "./claims.ts";
import { containerGcTable } from "./container-gc.ts";
import { cpusTable } from "./cpus.ts";
import { devicesTable } from "./devices.ts";
import { evictionTable } from "./eviction.ts";
import { imageGcTable } from "./image-gc.ts";
import { memoryTable } from "./memory.ts";
import { preemptionTable } from "./preemption.ts";
import { probeGuardTable, probesTable } from "./probes.ts";
import { resizeTable } from "./resize.ts";
import type { Shown } from "./shown.ts";
import { topologyTable } from "./topology.ts";

/** How a kind looks to a person. */
interface KindTable<D> {
  readonly draw: (shown: Shown<D>) => string;
  /** The verdict in a sentence, where the text begins with a table; null: the text says it itself. */
  readonly verdict: ((decision: D) => string) | null;
}
const TABLES: { readonly [K in Kind]: KindTable<DecisionOf[K]> } = {
  allocatable: { draw: allocatableTable, verdict: allocatableVerdict },
  cgroups: { draw: cgroupsTable, verdict: cgroupsVerdict },
  cpus: { draw: cpusTable, verdict: null },
  memory: { draw: memoryTable, verdict: null },
  topology: { draw: topologyTable, verdict: null },
  devices: { draw: devicesTable, verdict: null },
  claims: { draw: claimsTable, verdict: null },
  admission: { draw: admissionTable, verdict: null },
  preemption: { draw: preemptionTable, verdict: null },
  resize: { draw: resizeTable, verdict: null },
  eviction: { draw: evictionTable, verdict: null },
  "image-gc": { draw: imageGcTable, verdict: null },
  "container-gc": { draw: containerGcTable, verdict: null },
  probes: { draw: probesTable, verdict: null },
  "probe-guard": { draw: probeGuardTable, verdict: null },
};

/** The verdict in a sentence, of the kinds whose text begins with a table; null: the text says it itself. */
export const verdictSentence = <K extends Kind>(kind: K, decision: DecisionOf[K]): string | null =>
  TABLES[kind].verdict?.(decision) ?? null;

/** The sentence of each reason; a code without one shows as it is, with its numbers. */
const SENTENCES: Sentences = {
  ...RESOURCES_SENTENCES,
  ...CLAIMS_SENTENCES,
  ...ADMISSION_SENTENCES,
  ...EVICTION_SENTENCES,
  ...IMAGE_GC_SENTENCES,
  ...CONTAINER_GC_SENTENCES,
  ...PROBES_SENTENCES,
  ...PROBE_GUARD_SENTENCES,
};

/**
 * A reason in one line: `cpuShares: 500m cpu requested`; with `full` also its code and all numbers. `at`: its place, a
 * resource or a signal, which determines the unit of amounts.
 */
export function reasonText({ code, field, numbers = {} }: Reason, full: boolean, at = ""): string {
  const sentence = own(SENTENCES, code)?.(readable(numbers, at));
  const exact = [code, numbersText(numbers)].join(" ").trimEnd();
  if (sentence === undefined) return `${field}: ${exact}`;
  // a threshold is named by its amount, `500Mi`, which its sentence tells as well
  const isNamed = magnitude(field) !== 0 && magnitude(field) === numbers["quantity"];
  const name = isNamed ? "" : `${field}: `;
  return `${name}${sentence}${full ? ` [${exact}]` : ""}`;
}

/** The numbers of a reason that are amounts of the resource that it speaks of. `told`: available bytes as the stats report them. */
const AMOUNTS: ReadonlySet<string> = new Set([
  ...["allocatable", "allocated", "available", "capacity", "capacityBytes", "evictionHard", "goal", "kubeReserved"],
  ...["quantity", "requested", "systemReserved", "told", "used"],
]);
function readable(numbers: Numbers, at: string): Numbers {
  const resource = resourceOfSignal(at);
  if (resource !== "cpu" && !isBytes(resource)) return numbers;
  const formatted = Object.entries(numbers).map(([name, value]) => {
    if (!AMOUNTS.has(name)) return [name, value];
    if (typeof value === "number") return [name, amountText(resource, value)];
    return [name, typeof value === "string" ? quantityText(resource, value) : value];
  });
  return Object.fromEntries(formatted);
}

const numbersText = (numbers: Numbers): string =>
  Object.entries(numbers)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");

interface Answer<K extends Kind> {
  readonly kind: K;
  readonly node: string;
  readonly decided: Pick<Decided<DecisionOf[K]>, "decision" | "reasons" | "needs"> & { readonly verdict?: Verdict };
  /** How much of each reason is shown; `full` also shows exact amounts, unless `isExact` says otherwise. */
  readonly explain: Explain;
  readonly isExact?: boolean;
  /** Advice to a person about an input that was missing: `give --stats`. */
  readonly advice?: (path: string) => string;
  /** The inputs that the decision assumed because they were not given. */
  readonly assumed?: string | undefined;
  /** Why some of the pods that were given do not count. */
  readonly leftOut?: Reason | undefined;
  readonly machine?: Machine | undefined;
  readonly asked?: PodRef | undefined;
  /** The time of the snapshot, in epoch ms. */
  readonly observedAtMs?: number | undefined;
  /**
   * For an eviction: without the rankings for resources that are not short, only these, or all rankings in the
   * decision's order.
   */
  readonly rankings?: "acted-on" | "idle" | "all";
}

/** An answer with the version of the profile that made it. */
interface WholeAnswer<K extends Kind> extends Answer<K> {
  readonly policyVersion: string;
}

/** Why a recorded answer is not simply that of the node's own kubelet; null: it is. */
export const answeredAsText = ({ version, why }: ProfileNote): string | null =>
  why === null ? null : `answered as kubelet ${version}: ${why}`;

/** A whole answer for people: the node and the kubelet version, the kind's table, and missing inputs. */
export function answerText<K extends Kind>(answer: WholeAnswer<K>, terminal: Screen): string {
  const { paint, columns } = terminal;
  const { kind, node, decided, policyVersion, advice, assumed, leftOut } = answer;
  const title = `${paint("bold", printable(node))} · ${kind} · ${policyVersion}`;
  const others = leftOut === undefined ? "" : paint("yellow", `${printable(reasonText(leftOut, false))}\n`);
  const missing = decided.needs.map((path) => {
    const hint = advice === undefined ? "" : ` (${advice(path)})`;
    return paint("yellow", `not known: ${printable(path)}${hint}\n`);
  });
  const above = `${title}\n${assumedLine(assumed, paint)}${others}`;
  return `${fitLines(above, columns)}${decidedText(answer, terminal)}${fitLines(missing.join(""), columns)}`;
}

/** The kind's table, with each reason below what it is about. */
export function decidedText<K extends Kind>(answer: Answer<K>, { paint, columns }: Screen): string {
  const { kind, decided, explain, machine, asked, observedAtMs, isExact = explain === "full" } = answer;
  const reasons = new Map(decided.reasons.map(({ at, because }) => [at, because]));
  const noted = new Set<string>();
  const notesAt = (at: string): readonly string[] => {
    noted.add(at);
    return (reasons.get(at) ?? []).map((reason) => paint("dim", printable(reasonText(reason, explain === "full", at))));
  };
  const { decision, verdict } = decided;
  const given = { machine, asked, observedAtMs, explain, isExact, rankings: answer.rankings };
  const body = TABLES[kind].draw({ decision, verdict, columns, paint, notesAt, ...given });
  // the reasons of a place that has no row in the table
  const others = [...reasons.keys()].filter((at) => !noted.has(at));
  const rest = others.map(
    (at) =>
      `${printable(at)}\n${notesAt(at)
        .map((note) => `  ${note}\n`)
        .join("")}`,
  );
  return fitLines(escapeControls(`${body}${rest.join("")}`), columns);
}
