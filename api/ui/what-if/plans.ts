import { decideKind } from "../../decide/index.ts";
import { askedPodRef, decodeAsk } from "../../model/asks.ts";
import type { AskOf, Decided, DecisionOf, Facts, Kind, Refusal } from "../../model/decision.ts";
import { passTimeOf } from "../../model/pass-time.ts";
import type { Pod } from "../../model/pod.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type EffectiveSnapshot, effectiveSnapshot } from "../../profiles/effective.ts";
import { type Difference, differences, MAX_DIFFERENCES } from "../../service/difference.ts";
import { nextTurn } from "../../service/turns.ts";
import { plainPaint } from "../../text/style.ts";
import { decidedText } from "../../text/tables/index.ts";

/** Asked about the pod that comes in, where there is one, and else about what is there. */
const OF_A_POD = ["cpus", "memory", "topology", "devices"] as const satisfies readonly Kind[];
const OF_THE_NODE = [
  "allocatable",
  "cgroups",
  "eviction",
  "image-gc",
  "container-gc",
] as const satisfies readonly Kind[];
export type PlannedKind = "admission" | (typeof OF_A_POD)[number] | (typeof OF_THE_NODE)[number];
export type PodAsk = AskOf["admission"];

/** A kind's answer on one side. */
export interface Side {
  readonly decided: Decided<DecisionOf[Kind]> | null;
  readonly refusal: Refusal | null;
  /** As the terminal would show it; of a refusal its words. */
  readonly text: string;
}
export interface Plan {
  readonly kind: PlannedKind;
  readonly before: Side;
  readonly after: Side;
  /** `undecided`: refused on both sides for the same reason. */
  readonly state: "differs" | "same" | "undecided";
  readonly differences: readonly Difference[];
  /** There are more differences than those. */
  readonly truncated: boolean;
}
/** The further input of a kind: what its node's history remembers. */
export interface Remembered {
  readonly ask: AskOf[Kind];
  readonly facts: Facts;
}
export interface Question {
  readonly before: Snapshot;
  readonly after: Snapshot;
  readonly pod: PodAsk["pod"];
  readonly remembered: ReadonlyMap<Kind, Remembered>;
}

/** Every kind on both sides, that of a pod first. */
export async function plansOf({ pod, remembered, ...both }: Question): Promise<readonly Plan[]> {
  const [before, after] = [effectiveSnapshot(both.before), effectiveSnapshot(both.after)];
  const plans: Plan[] = [];
  const ofPod: readonly PlannedKind[] = pod === null ? OF_A_POD : ["admission", ...OF_A_POD];
  let grown = after;
  for (const kind of [...ofPod, ...OF_THE_NODE]) {
    const asked = remembered.get(kind) ?? { ask: askOf(kind, pod), facts: {} };
    const first = sideOf(kind, before, asked);
    await nextTurn();
    // the pod's own cgroups are there once it is
    const second = sideOf(kind, kind === "cgroups" ? grown : after, asked);
    await nextTurn();
    if (kind === "admission" && isAdmitted(second) && typeof pod === "object" && pod !== null)
      grown = withPod(after, pod);
    plans.push(planOf(kind, first, second));
  }
  return plans;
}

function askOf(kind: PlannedKind, pod: PodAsk["pod"]): AskOf[Kind] {
  if (kind === "admission" || (OF_A_POD as readonly Kind[]).includes(kind)) return { pod };
  const ask = decodeAsk(kind, null);
  if (!ask.ok) throw new Error(`${kind} takes no empty ask`);
  return ask.value;
}

const isAdmitted = ({ decided }: Side): boolean =>
  decided !== null && "admit" in decided.decision && decided.decision.admit;

/** With a uid, by which its cgroup is named. */
const withPod = (snapshot: EffectiveSnapshot, pod: Pod): EffectiveSnapshot => ({
  ...snapshot,
  pods: [...(snapshot.pods ?? []), { ...pod, metadata: { ...pod.metadata, uid: pod.metadata.uid ?? "what-if" } }],
});

const COLUMNS = 120;
function sideOf(kind: PlannedKind, snapshot: Snapshot, { ask, facts }: Remembered): Side {
  const answer = decideKind(kind, { snapshot, facts, ask, explain: "off" });
  if (!answer.ok) return { decided: null, refusal: answer.error, text: answer.error.message };
  const asked = askedPodRef(ask);
  const shown = {
    kind,
    node: snapshot.node?.metadata.name ?? "",
    decided: answer.value as never,
    explain: "off" as const,
    machine: snapshot.machine,
    ...(asked === null ? {} : { asked }),
    observedAtMs: passTimeOf(snapshot)?.atMs,
  };
  return { decided: answer.value, refusal: null, text: decidedText(shown, { paint: plainPaint, columns: COLUMNS }) };
}

function planOf(kind: PlannedKind, before: Side, after: Side): Plan {
  const plan = { kind, before, after };
  if (before.refusal !== null && after.refusal !== null) {
    const isSame = before.refusal.code === after.refusal.code && before.text === after.text;
    return { ...plan, state: isSame ? "undecided" : "differs", differences: [], truncated: false };
  }
  if (before.decided === null || after.decided === null)
    return { ...plan, state: "differs", differences: [], truncated: false };
  const found = differences(plain(before.decided), plain(after.decided));
  return {
    ...plan,
    state: found.length === 0 ? "same" : "differs",
    differences: found.slice(0, MAX_DIFFERENCES),
    truncated: found.length > MAX_DIFFERENCES,
  };
}

/** As the API would answer it. */
const plain = ({ decision }: Decided<DecisionOf[Kind]>): unknown => JSON.parse(JSON.stringify(decision)) as unknown;
