import { describe, expect, test } from "vitest";
import { decideKind } from "../../api/decide/kinds/index.ts";
import { type Facts, KINDS, type Kind, type ReasonCode } from "../../api/model/decision.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { decodeAsk } from "../../api/model/decode-ask.ts";
import { END_REASONS, OF_A_RESOURCE } from "../../api/model/end-reasons.ts";
import {
  EVICTION_SIGNALS,
  type EvictionDecision,
  evictionSummary,
  PRESSURE_CONDITIONS,
} from "../../api/model/eviction.ts";
import { KIND_SPECS, notesOf, REMEMBERING } from "../../api/model/kinds.ts";
import { type Case, recordedCases } from "./decision-cases.ts";
import { oddCases } from "./odd-cases.ts";

/** Reasons that no case has, and why. */
const UNCOVERED_REASONS: { readonly [K in Kind]?: readonly ReasonCode<K>[] } = {
  // preemption is only for critical pods, and a search that is cut short takes seconds
  admission: ["not_critical", "search_cut_short"],
  preemption: ["search_cut_short"],
  // a dry run does not stop a worker
  probes: ["quirk_sleep_ignores_stop"],
};

interface Seen {
  decided: number;
  readonly codes: Set<string>;
  /** The decisions' reasons (null: none), by verdict. */
  readonly words: Map<string, Set<string | null>>;
  /** The first decision that does not match the kind's schema. */
  fault: string | null;
}
const seen = new Map<Kind, Seen>(
  KINDS.map((kind) => [kind, { decided: 0, codes: new Set(), words: new Map(), fault: null }]),
);
const of = (kind: Kind): Seen => seen.get(kind) as Seen;

/** The time of a pass whose stats contain no time. */
const PASS_MS = 12_345;
let facts: Facts = {};
function decide({ kind, snapshot, ask, goesOn = false }: Case): void {
  const decoded = decodeSnapshot(snapshot);
  const asked = decodeAsk(kind, ask);
  if (!decoded.ok || !asked.ok) throw new Error(`${kind}: ${JSON.stringify(decoded.ok ? asked : decoded)}`);
  if (!goesOn) facts = {};
  const answer = decideKind(kind, { snapshot: decoded.value, facts, ask: asked.value, explain: "full" });
  if (!answer.ok) return;
  const { decision, reasons, next } = JSON.parse(JSON.stringify(answer.value)) as typeof answer.value;
  if (REMEMBERING.has(kind)) facts = { [kind]: next };
  const parsed = KIND_SPECS[kind].decision.safeParse(decision);
  const met = of(kind);
  met.decided++;
  if (!parsed.success) met.fault ??= JSON.stringify(parsed.error.issues);
  const { reason, summary } = notesOf(kind, decision, PASS_MS);
  const { verdict } = answer.value;
  met.words.set(verdict, (met.words.get(verdict) ?? new Set()).add(reason));
  if (kind === "eviction") {
    const reported = evictionSummary.safeParse(JSON.parse(summary ?? "null"));
    const times = (decision as EvictionDecision).thresholds.map(({ statsAtMs }) => statsAtMs ?? PASS_MS);
    if (
      !reported.success ||
      reported.data.thresholds.some(({ observedAtMs }) => !times.some((ms) => ms === observedAtMs))
    )
      met.fault ??= `summary: ${summary}`;
  }
  for (const { because } of reasons) for (const { code } of because) met.codes.add(code);
}

test("KIND_SPECS has a spec for every kind, in the same order", () => {
  expect(Object.keys(KIND_SPECS)).toEqual(KINDS);
});

describe("decisions on all recorded and odd cases", () => {
  test("include some of every kind", { timeout: 120_000 }, () => {
    for (const cases of [recordedCases(), oddCases()]) for (const one of cases) decide(one);
    expect(KINDS.filter((kind) => of(kind).decided === 0)).toEqual([]);
  });
  test.each(KINDS)("match the schema of kind %s without extra fields", (kind) => {
    expect(of(kind).fault).toBeNull();
    expect(of(kind).decided).toBeGreaterThan(10);
  });
  test("have reasons that decision lists can be filtered by", () => {
    const words = new Set(KINDS.flatMap((kind) => [...of(kind).words.values()].flatMap((ones) => [...ones])));
    const unknown = [...words].filter(
      (word) => word !== null && !END_REASONS.includes(word) && !OF_A_RESOURCE.test(word),
    );
    expect(unknown).toEqual([]);
  });
  test("do not match their schema with an extra or a missing field", () => {
    const decision = { version: 2, driver: "systemd", cgroups: [] };
    const isForm = (value: object): boolean => KIND_SPECS.cgroups.decision.safeParse(value).success;
    expect(isForm(decision)).toBe(true);
    expect([isForm({ ...decision, more: 1 }), isForm({ ...decision, driver: undefined })]).toEqual([false, false]);
  });
  test("have the kubelet's reason when refused, and no reason when not, except Preempting", () => {
    for (const kind of KINDS) {
      const { words } = of(kind);
      const none = ["admission", "preemption"].includes(kind) ? [null, "Preempting"] : [null];
      for (const good of ["decided", "calm", "keeps"])
        expect(new Set(words.get(good) ?? none), kind).toEqual(new Set(none));
      expect([...(words.get("refused") ?? [])], kind).not.toContain(null);
    }
    for (const kind of ["admission", "preemption"] as const)
      expect([...(of(kind).words.get("refused") ?? [])]).toEqual(
        expect.arrayContaining(["OutOfcpu", "OutOfmemory", "OutOfpods", "NodeAffinity", "UnexpectedAdmissionError"]),
      );
    expect([...(of("cpus").words.get("refused") ?? [])]).toContain("TopologyAffinityError");
  });
  test("of eviction have the acting signal, the exceeded pod limit or the holding condition as reason", () => {
    const { words } = of("eviction");
    const limits = ["emptyDir", "pod-ephemeral-storage", "container-ephemeral-storage"];
    const known: Readonly<Record<string, readonly string[]>> = {
      evicts: [...EVICTION_SIGNALS, ...limits],
      reclaims: EVICTION_SIGNALS,
      "under-pressure": [...EVICTION_SIGNALS, ...PRESSURE_CONDITIONS],
    };
    for (const [verdict, all] of Object.entries(known)) {
      expect([...(words.get(verdict) ?? [])].filter((word) => word === null || !all.includes(word))).toEqual([]);
      expect(words.get(verdict)?.size, verdict).toBeGreaterThan(2);
    }
  });
  test.each(KINDS)("of kind %s have exactly the reason codes of its spec, apart from listed exceptions", (kind) => {
    const known = new Set<string>(KIND_SPECS[kind].reasons);
    const notMet: readonly string[] = UNCOVERED_REASONS[kind] ?? [];
    expect([...of(kind).codes].filter((code) => !known.has(code))).toEqual([]);
    expect([...known].filter((code) => !of(kind).codes.has(code))).toEqual(notMet);
  });
});
