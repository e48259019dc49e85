import { describe, expect, test } from "vitest";
import {
  admitted,
  DEADLINE,
  endOf,
  newRecord,
  type PodLifecycleEvent,
  podTransition,
  type Transition,
} from "../../../actuator/lifecycle/pod-state.ts";
import type { PodEnd, PodRecord, PodState } from "../../../actuator/lifecycle/record.ts";
import { seenContainer, seenPod } from "../../kit/seen-pods.ts";
import { runnableOf, smallPod } from "./small-pods.ts";

type Kind = PodLifecycleEvent["kind"];
type Before = PodState | "none";

const object = smallPod(["app"]);
const web = runnableOf(object);
const fixed = { ...web, isStatic: true };
const END = endOf("Why", "the words", 50);
const WHY = { reason: "OutOfcpu", message: "no room", nowMs: 60 };
const evicted: PodEnd = { ...END, cause: "evicted" };

/** One event of each kind. A missing kind is a type error. */
const EVENTS: { readonly [K in Kind]: Extract<PodLifecycleEvent, { readonly kind: K }> } = {
  Added: { kind: "Added", pod: web, file: "/m/web.yaml", nowMs: 10 },
  Adopted: { kind: "Adopted", pod: web, file: undefined, nowMs: 10 },
  SpecUpdated: { kind: "SpecUpdated", pod: { ...object, spec: {} } },
  FileMoved: { kind: "FileMoved", file: "/m/other.yaml" },
  Admitted: { kind: "Admitted", nowMs: 20 },
  Rejected: { kind: "Rejected", ...WHY },
  Deferred: { kind: "Deferred", ...WHY },
  AllocationFailed: { kind: "AllocationFailed", tries: 3, ...WHY },
  ResizeUpdated: { kind: "ResizeUpdated", resize: { reason: "Deferred", message: "later", sinceMs: 30 } },
  BackOffUpdated: { kind: "BackOffUpdated", backOff: { app: { delayMs: 10_000, updatedAtMs: 30 } } },
  StoppedByOthers: { kind: "StoppedByOthers", containers: 2 },
  DeletionRequested: { kind: "DeletionRequested", graceSeconds: 7, nowMs: 40 },
  Preempted: { kind: "Preempted", end: END },
  Evicted: { kind: "Evicted", end: END, signal: "memory.available" },
  DeadlineExceeded: { kind: "DeadlineExceeded", end: END },
  Drained: { kind: "Drained", end: END },
  Finished: { kind: "Finished" },
  Stopped: { kind: "Stopped", pod: web, runtimePod: null },
  RestartDue: { kind: "RestartDue" },
  CleanedUp: { kind: "CleanedUp" },
};

const waiting = newRecord(web, 5, "/m/web.yaml");
const RECORDS: Readonly<Record<Before, PodRecord | null>> = {
  none: null,
  pending: waiting,
  active: admitted(waiting, 8),
  terminating: { ...admitted(waiting, 8), state: "terminating", end: evicted },
  terminated: { ...admitted(waiting, 8), state: "terminated", end: evicted, status: { phase: "Failed" } },
};

/**
 * `STATE DURABILITY[ final]: ACTIONS`, `stays: ACTIONS`, `removed: ACTIONS`, or in brackets the reason why nothing
 * happens.
 */
function wordsOf(next: Transition): string {
  if (next.kind === "ignored") return `(${next.because})`;
  const actions = next.actions.map((action) => {
    if (action.kind === "recordEvent") return `${action.type} ${action.reason}`;
    return action.kind === "count" ? `count ${action.of}` : action.kind;
  });
  const message = actions.length === 0 ? "" : `: ${actions.join(", ")}`;
  if (next.kind !== "becomes") return `${next.kind}${message}`;
  return `${next.record.state} ${next.durability}${next.isFinal ? " final" : ""}${message}`;
}

const nobody = { none: "(NoRecord)" } as const;
const known = "(AlreadyKnown)";
const [notPending, notActive] = ["(NotPending)", "(NotActive)"];
const ends = (message: string) => ({
  ...nobody,
  pending: notActive,
  active: `terminating eventual: interruptSync${message}`,
  terminating: "(AlreadyTerminating)",
  terminated: notActive,
});
const REFUSED = "pending bestEffort: count refused, Warning OutOfcpu";
const GONE = "removed: forgetRun, freeCapacity";

/** Every event in every state. A missing pair is a type error. */
const TABLE: Readonly<Record<Kind, Readonly<Record<Before, string>>>> = {
  Added: { none: "pending memory", pending: known, active: known, terminating: known, terminated: known },
  Adopted: { none: "active required", pending: known, active: known, terminating: known, terminated: known },
  SpecUpdated: {
    ...nobody,
    pending: "pending memory: retryAdmission",
    active: "active required",
    terminating: notActive,
    terminated: notActive,
  },
  FileMoved: {
    ...nobody,
    pending: "pending eventual",
    active: "active required",
    terminating: "terminating eventual",
    terminated: "terminated eventual",
  },
  Admitted: {
    ...nobody,
    pending: "active required",
    active: notPending,
    terminating: notPending,
    terminated: notPending,
  },
  Rejected: { ...nobody, pending: REFUSED, active: notPending, terminating: notPending, terminated: notPending },
  Deferred: {
    ...nobody,
    pending: "pending bestEffort",
    active: notPending,
    terminating: notPending,
    terminated: notPending,
  },
  AllocationFailed: {
    ...nobody,
    pending: notActive,
    active: "pending bestEffort: freeCapacity, count refused, Warning OutOfcpu",
    terminating: notActive,
    terminated: notActive,
  },
  ResizeUpdated: {
    ...nobody,
    pending: "(NotRunning)",
    active: "active required",
    terminating: "terminating eventual",
    terminated: "(NotRunning)",
  },
  BackOffUpdated: {
    ...nobody,
    pending: "pending eventual",
    active: "active bestEffort",
    terminating: "terminating eventual",
    terminated: "terminated eventual",
  },
  StoppedByOthers: {
    ...nobody,
    pending: notActive,
    active: "active bestEffort",
    terminating: notActive,
    terminated: notActive,
  },
  DeletionRequested: { ...ends(""), pending: "stays: cleanUp", terminated: "stays: cleanUp" },
  Preempted: ends(", Warning Preempting, count preempted"),
  Evicted: ends(", Warning Why, count evicted"),
  DeadlineExceeded: ends(", Normal DeadlineExceeded"),
  Drained: ends(""),
  Finished: {
    ...nobody,
    pending: notActive,
    active: "terminated eventual final: freeCapacity",
    terminating: notActive,
    terminated: notActive,
  },
  Stopped: {
    ...nobody,
    pending: "(NotTerminating)",
    active: "(NotTerminating)",
    terminating: "terminated eventual final: freeCapacity",
    terminated: "(NotTerminating)",
  },
  RestartDue: {
    ...nobody,
    pending: "(NotEvicted)",
    active: "(NotEvicted)",
    terminating: "(NotEvicted)",
    terminated: "pending eventual: forgetRun",
  },
  CleanedUp: { ...nobody, pending: GONE, active: GONE, terminating: GONE, terminated: GONE },
};

describe.each(Object.keys(TABLE) as readonly Kind[])("%s", (kind) => {
  test.each(Object.keys(RECORDS) as readonly Before[])(
    "in the state %s has the table's transition and actions",
    (before) => {
      const record = deepFrozen(structuredClone(RECORDS[before]));
      expect(wordsOf(podTransition(record, EVENTS[kind]))).toBe(TABLE[kind][before]);
    },
  );
});

/** The record after the event; throws if the event does not change the record. */
function next(before: PodRecord | null, event: PodLifecycleEvent): PodRecord {
  const transition = podTransition(before, event);
  if (transition.kind !== "becomes") throw new Error(wordsOf(transition));
  return transition.record;
}
const of = (state: PodState): PodRecord => RECORDS[state] as PodRecord;

describe("the pod record", () => {
  test("of an added pod has its file, and is admitted once", () => {
    const added = next(null, EVENTS.Added);
    expect(added).toEqual({ ...waiting, seenAtMs: 10 });
    const refused = next(added, EVENTS.Rejected);
    expect(next(refused, EVENTS.Admitted)).toEqual({ ...added, state: "active", admittedAtMs: 20 });
    // a pod whose device allocation failed keeps the time of its first admission
    const again = next(next(admitted(added, 15), EVENTS.AllocationFailed), EVENTS.Admitted);
    expect(again.admittedAtMs).toBe(15);
    expect(next(null, EVENTS.Adopted)).toEqual({ ...admitted(newRecord(web, 10), 10) });
  });

  test("counts a refusal's tries, keeps its start, and reports it when its message changes", () => {
    const first = next(waiting, EVENTS.Rejected);
    expect(first.refusal).toEqual({ reason: "OutOfcpu", message: "no room", sinceMs: 60, tries: 1 });
    const same = podTransition(first, { ...EVENTS.Rejected, nowMs: 90 });
    expect(wordsOf(same)).toBe("pending bestEffort");
    expect(next(first, { ...EVENTS.Rejected, nowMs: 90 }).refusal).toMatchObject({ sinceMs: 60, tries: 2 });
    expect(wordsOf(podTransition(first, { ...EVENTS.Rejected, message: "less room" }))).toBe(
      "pending bestEffort: Warning OutOfcpu",
    );
    expect(next(first, { ...EVENTS.Rejected, reason: "OutOfmemory", nowMs: 90 }).refusal).toMatchObject({
      sinceMs: 90,
      tries: 2,
    });
    expect(next(first, { ...EVENTS.Rejected, tries: 9 }).refusal?.tries).toBe(9);
  });

  test("counts no try for a deferred pod, and reports it once", () => {
    const held = next(next(waiting, EVENTS.Rejected), { ...EVENTS.Deferred, message: "later" });
    expect(held.refusal).toEqual({ reason: "OutOfcpu", message: "later", sinceMs: 60, tries: 0 });
    expect(wordsOf(podTransition(held, { ...EVENTS.Deferred, message: "later", nowMs: 99 }))).toBe("(Unchanged)");
  });

  test("has a refusal with its tries after a failed allocation", () => {
    expect(next(of("active"), EVENTS.AllocationFailed)).toEqual({
      ...of("active"),
      state: "pending",
      refusal: { reason: "OutOfcpu", message: "no room", sinceMs: 60, tries: 3 },
    });
  });

  test.each([
    [
      "DeletionRequested",
      { cause: "deleted", reason: "", message: "", sinceMs: 40, graceSeconds: 7, decisionId: null },
    ],
    ["Preempted", { ...END, cause: "preempted" }],
    ["Evicted", { ...END, cause: "evicted" }],
    ["DeadlineExceeded", { ...END, cause: "deadline" }],
    ["Drained", { ...END, cause: "drained" }],
  ] as const)("has the cause of the end after %s", (kind, end) => {
    expect(next(of("active"), EVENTS[kind])).toEqual({ ...of("active"), state: "terminating", end });
  });
  test("keeps an end's grace period, decision and disruption flag", () => {
    const end = endOf("R", "m", 1, { graceSeconds: 0, decisionId: "d", isDisruption: false });
    expect(next(of("active"), { ...EVENTS.Evicted, end }).end).toEqual({ ...end, cause: "evicted" });
  });
  test("of an exceeded deadline reports the kubelet's message, whatever its end says", () => {
    const reported = podTransition(of("active"), EVENTS.DeadlineExceeded);
    expect(reported.kind === "becomes" && reported.actions.at(-1)).toEqual({
      kind: "recordEvent",
      type: "Normal",
      ...DEADLINE,
    });
  });

  test("changes file, spec, back-off and foreign stops without a change of state", () => {
    expect(next(of("active"), EVENTS.FileMoved).file).toBe("/m/other.yaml");
    expect(next(of("active"), EVENTS.SpecUpdated).pod).toBe(EVENTS.SpecUpdated.pod);
    expect(next(of("active"), EVENTS.BackOffUpdated).backOff).toBe(EVENTS.BackOffUpdated.backOff);
    const resized = next(of("active"), { ...EVENTS.ResizeUpdated, pod: { a: 1 } });
    expect([resized.resize, resized.pod]).toEqual([EVENTS.ResizeUpdated.resize, { a: 1 }]);
    expect(next(resized, { kind: "ResizeUpdated", resize: null })).toMatchObject({ resize: null, pod: { a: 1 } });
    const once = next(of("active"), EVENTS.StoppedByOthers);
    expect(next(once, EVENTS.StoppedByOthers).stoppedByOthers).toBe(4);
    expect(wordsOf(podTransition(once, { kind: "StoppedByOthers", containers: 0 }))).toBe("(Unchanged)");
  });
});

describe("once nothing of a pod runs any more", () => {
  const ending = (cause: PodEnd["cause"], file?: string): PodRecord => {
    const { file: _, ...record } = of("terminating");
    return { ...record, ...(file !== undefined && { file }), end: { ...END, cause } };
  };
  const FILE = "/m/web.yaml";
  const Again = "pending eventual: freeCapacity, forgetRun";
  const Over = "terminated eventual final: freeCapacity";
  test.each([
    [
      "one that is deleted is removed, and holds what it has until then",
      ending("deleted", FILE),
      web,
      "stays: cleanUp",
    ],
    ["a drained one comes back", ending("drained"), web, Again],
    ["one of a file that was preempted comes back", ending("preempted", FILE), web, Again],
    ["one of an API that was preempted stays failed", ending("preempted"), web, Over],
    ["one of a file that was evicted waits for its time", ending("evicted", FILE), web, Over],
    ["a static one that was evicted comes back", ending("evicted"), fixed, Again],
    ["a static one that was preempted comes back", ending("preempted"), fixed, Again],
    ["a deadline is final", ending("deadline", FILE), fixed, Over],
  ] as const)("%s", (_, record, pod, expected) => {
    expect(wordsOf(podTransition(record, { ...EVENTS.Stopped, pod }))).toBe(expected);
  });

  test("a pod whose containers would not be restarted does not start again", () => {
    const never = { ...fixed, spec: { ...fixed.spec, restartPolicy: "Never" as const } };
    const seen = { ...seenPod(seenContainer("app", { state: "exited", exitCode: 143 })), sandboxes: [] };
    expect(wordsOf(podTransition(ending("preempted"), { ...EVENTS.Stopped, pod: never, runtimePod: seen }))).toBe(Over);
    expect(wordsOf(podTransition(ending("preempted"), { ...EVENTS.Stopped, pod: fixed, runtimePod: seen }))).toBe(
      Again,
    );
  });

  test("a pod that starts again is pending, with the reason of its end and without its former status", () => {
    const { status: _, ...rest } = of("terminated");
    expect(next({ ...of("terminated"), backOff: EVENTS.BackOffUpdated.backOff }, EVENTS.RestartDue)).toEqual({
      ...rest,
      state: "pending",
      admittedAtMs: null,
      refusal: { reason: "Why", message: "the words", sinceMs: 50, tries: 0 },
      end: null,
    });
    const drained = next(ending("drained"), EVENTS.Stopped);
    expect(drained.refusal).toMatchObject({ reason: "Drained", sinceMs: 50, tries: 0 });
  });

  test("only an evicted pod may be taken back", () => {
    for (const cause of ["deleted", "preempted", "deadline", "drained"] as const)
      expect(wordsOf(podTransition({ ...of("terminated"), end: { ...END, cause } }, EVENTS.RestartDue))).toBe(
        "(NotEvicted)",
      );
    expect(wordsOf(podTransition({ ...of("terminated"), end: null }, EVENTS.RestartDue))).toBe("(NotEvicted)");
  });
});

test("after any sequence of events a record is consistent, and no pod starts that is not on disk", () => {
  const events: readonly PodLifecycleEvent[] = [
    ...Object.values(EVENTS),
    { ...EVENTS.Stopped, pod: fixed },
    { ...EVENTS.Rejected, reason: "OutOfmemory" },
  ];
  const met = new Set<string>();
  const seen = new Set<string>();
  let frontier: readonly (PodRecord | null)[] = [null];
  while (frontier.length > 0) {
    const reached = new Map<string, PodRecord | null>();
    for (const before of frontier)
      for (const event of events) {
        const transition = podTransition(before, event);
        if (transition.kind !== "becomes") continue;
        const { record, durability } = transition;
        met.add(`${before?.state ?? "none"} -> ${record.state}`);
        expect(whyWrong(before, record, durability)).toBeNull();
        // counters and messages do not make another state
        const key = JSON.stringify({ ...record, refusal: record.refusal?.reason, stoppedByOthers: undefined });
        if (!seen.has(key)) reached.set(key, record);
        seen.add(key);
      }
    frontier = [...reached.values()];
  }
  expect(seen.size).toBeGreaterThan(400);
  const pairs = [...met].filter((pair) => new Set(pair.split(" -> ")).size === 2).sort();
  expect(pairs).toEqual([
    "active -> pending",
    "active -> terminated",
    "active -> terminating",
    "none -> active",
    "none -> pending",
    "pending -> active",
    "terminated -> pending",
    "terminating -> pending",
    "terminating -> terminated",
  ]);
});

function whyWrong(before: PodRecord | null, { state, admittedAtMs, refusal, end }: PodRecord, durability: string) {
  const isStart = state === "active" && before?.state !== "active";
  if (isStart && durability !== "required") return "it starts without its record on the disk";
  if (state === "active" && (admittedAtMs === null || refusal !== null || end !== null))
    return "active, and refused or ended";
  if (state === "pending" && end !== null) return "it waits, and has an end";
  if (state === "terminating" && end === null) return "it ends of nothing";
  const isEnd = state === "terminating" || state === "terminated";
  if (isEnd && durability !== "eventual") return "its end waits for the disk, or is forgotten";
  return null;
}

function deepFrozen<T>(value: T): T {
  if (typeof value === "object" && value !== null)
    for (const one of Object.values(Object.freeze(value))) deepFrozen(one);
  return value;
}
