import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { endOf, type PodLifecycleEvent } from "../../../actuator/lifecycle/pod-state.ts";
import { AdmissionBackoff, CapacityGeneration } from "../../../actuator/pods/admission/admission-backoff.ts";
import { PodLifecycle } from "../../../actuator/pods/pod-lifecycle.ts";
import { PodSet } from "../../../actuator/pods/records/pod-set.ts";
import { PodRecords, podEventRecorder } from "../../../actuator/pods/records/records.ts";
import { PodCleanup } from "../../../actuator/pods/sync/pod-cleanup.ts";
import { PodWorkQueue } from "../../../actuator/pods/sync/pod-work-queue.ts";
import { SimClock } from "../../sim/clock.ts";
import { PodTime } from "../../sim/pod-time.ts";
import { runnableOf, smallPod } from "../lifecycle/small-pods.ts";
import { scratch } from "./scratch.ts";

const web = runnableOf(smallPod(["app"]));
const { uid } = web;

/** The executor with records on disk; `log`: its actions, each with the state on disk at that time. */
function executor() {
  const directory = scratch();
  const file = join(directory, `${uid}.pod.json`);
  const onDisk = (): string =>
    existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as { record: { state: string } }).record.state : "none";
  const log: string[] = [];
  const done = (what: string): void => void log.push(`${what}, disk: ${onDisk()}`);
  const opened = PodRecords.open(directory, done);
  if (!opened.ok) throw new Error(opened.error);
  const clock = new PodTime(new SimClock(1_000_000));
  const onProblem = ({ message }: { readonly message: string }): void => done(message);
  const set = new PodSet(opened.value, { owner: "o", hostIPs: [], nodeName: "n" }, (_, container) => container);
  const queue = new PodWorkQueue({ onProblem, onWorked: () => {} });
  const gone = { isGone: true, leftOvers: [] };
  const worker = {
    forget: async () => {
      done("removes all of it");
      return gone;
    },
    forgetOrphan: async () => gone,
    forgetVolumes: async () => gone,
    end: async () => ({ isEnded: true, error: null }),
    sync: () => Promise.reject(new Error("nobody starts")),
    clear: () => Promise.reject(new Error("nobody sweeps")),
    link: () => {},
    pruneLinks: () => {},
  };
  const cleanup = new PodCleanup({ worker, onProblem }, set, queue);
  const capacity = new CapacityGeneration();
  const backOff = new AdmissionBackoff({ clock }, capacity, { retryMs: 1000 });
  const counters = {
    preempted: () => done("counts a preemption"),
    evicted: (signal: string) => done(`counts an eviction for ${signal}`),
    refused: (reason: string) => done(`counts a refusal for ${reason}`),
    restarted: () => {},
  };
  const eventsOf = podEventRecorder(clock, ({ type, reason }) => done(`${type} ${reason}`));
  const lifecycle = new PodLifecycle(
    { clock, eventsOf, onProblem, counters },
    { records: opened.value, set, queue, cleanup, capacity, backOff },
  );
  const breaks = (): void => void mkdirSync(`${file}.new`);
  return { lifecycle, records: opened.value, set, queue, capacity, log, onDisk, breaks };
}
type Executor = ReturnType<typeof executor>;
const stateOf = ({ set }: Executor): string | undefined => set.records.get(uid)?.state;

function active(): Executor {
  const made = executor();
  made.lifecycle.handle(uid, { kind: "Added", pod: web, file: undefined, nowMs: 1 });
  expect(made.lifecycle.handle(uid, { kind: "Admitted", nowMs: 2 })).toBeNull();
  expect([stateOf(made), made.onDisk()]).toEqual(["active", "lives"]);
  return made;
}

test("a pod's end is on disk before its work is aborted and before anyone is notified", async () => {
  const made = active();
  made.queue.begin(uid, async (signal) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    made.log.push(`work ends, disk: ${made.onDisk()}`);
    return true;
  });
  made.lifecycle.handle(uid, {
    kind: "Evicted",
    end: endOf("Evicted", "low on memory", 3),
    signal: "memory.available",
  });
  await made.queue.rest();
  expect(made.log).toEqual([
    "Warning Evicted, disk: ends",
    "counts an eviction for memory.available, disk: ends",
    "work ends, disk: ends",
  ]);
});

test("a pod whose record cannot be written is not admitted, but is ended all the same", () => {
  const waiting = executor();
  waiting.lifecycle.handle(uid, { kind: "Added", pod: web, file: undefined, nowMs: 1 });
  waiting.breaks();
  expect(waiting.lifecycle.handle(uid, { kind: "Admitted", nowMs: 2 })).toMatch(/^the record of pod u: .*EISDIR/);
  expect([stateOf(waiting), waiting.onDisk(), waiting.log]).toEqual(["pending", "none", []]);

  const made = active();
  made.breaks();
  expect(made.lifecycle.handle(uid, { kind: "Preempted", end: endOf("Preempting", "", 3) })).toBeNull();
  expect([stateOf(made), made.onDisk()]).toEqual(["terminating", "lives"]);
  expect(made.log).toEqual(["Warning Preempting, disk: lives", "counts a preemption, disk: lives"]);
  expect(made.records.writeLate()).toHaveLength(1);
});

test("a back-off holds although it cannot be written, so that a crashing container is not restarted at once", () => {
  const made = active();
  made.breaks();
  const backOff = { app: { delayMs: 10_000, updatedAtMs: 30 } };
  expect(made.lifecycle.handle(uid, { kind: "BackOffUpdated", backOff })).toBeNull();
  expect(made.set.records.get(uid)?.backOff).toEqual(backOff);
});

test("a change due to time, the runtime or a drain holds although it cannot be written", () => {
  const end = endOf("Why", "the words", 3);
  const stopped = { kind: "Stopped", pod: web, runtimePod: null } as const;
  const lives: readonly (readonly [events: readonly PodLifecycleEvent[], becomes: string])[] = [
    [[{ kind: "Finished" }], "terminated"],
    [[{ kind: "DeadlineExceeded", end }, stopped], "terminated"],
    [[{ kind: "Drained", end }, stopped], "pending"],
    [[{ kind: "Evicted", end, signal: "memory.available" }, stopped, { kind: "RestartDue" }], "pending"],
  ];
  for (const [events, becomes] of lives) {
    const made = active();
    made.breaks();
    expect(events.map((event) => made.lifecycle.handle(uid, event))).toEqual(events.map(() => null));
    expect([stateOf(made), made.onDisk()]).toEqual([becomes, "lives"]);
    expect(made.records.writeLate()).toHaveLength(1);
  }
});

test("a deleted pod's capacity is freed once its record is deleted, after all its resources are gone", async () => {
  const made = active();
  const before = made.capacity.generation;
  made.lifecycle.handle(uid, { kind: "DeletionRequested", graceSeconds: null, nowMs: 3 });
  made.lifecycle.handle(uid, { kind: "Stopped", pod: web, runtimePod: null });
  expect([made.log, made.capacity.generation]).toEqual([["removes all of it, disk: ends"], before]);
  await made.queue.rest();
  expect([made.onDisk(), stateOf(made), made.capacity.generation]).toEqual(["none", undefined, before + 1]);
  // the pod is no longer known
  expect(made.lifecycle.handle(uid, { kind: "Admitted", nowMs: 4 })).toBeNull();
  expect(stateOf(made)).toBeUndefined();
});

test("a terminated pod keeps its last status, and a pod that starts again begins without it", () => {
  const made = active();
  made.lifecycle.handle(uid, { kind: "Finished" });
  expect(made.set.records.get(uid)).toMatchObject({ state: "terminated", status: { containerStatuses: [{}] } });
  const evicted = active();
  evicted.lifecycle.handle(uid, { kind: "Evicted", end: endOf("Evicted", "m", 3), signal: "memory.available" });
  evicted.lifecycle.handle(uid, { kind: "Stopped", pod: web, runtimePod: null });
  expect(evicted.set.records.get(uid)?.status).toMatchObject({ phase: "Failed", reason: "Evicted" });
  evicted.lifecycle.handle(uid, { kind: "RestartDue" });
  expect(evicted.set.records.get(uid)).toMatchObject({ state: "pending", refusal: { reason: "Evicted" } });
  expect(evicted.set.records.get(uid)?.status).toBeUndefined();
});
