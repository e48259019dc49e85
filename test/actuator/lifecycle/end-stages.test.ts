import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { RuntimePod } from "../../../actuator/containerd/cri.ts";
import { podStatus } from "../../../actuator/lifecycle/pod-status.ts";
import type { PodEnd, PodRecord } from "../../../actuator/lifecycle/record.ts";
import type { PodStatus } from "../../../actuator/lifecycle/status/status.ts";
import { recordOf, runnableOf, type SmallPod } from "./small-pods.ts";

const STAGES = ["lives", "terminating", "stopped", "terminated"] as const;
type Stage = (typeof STAGES)[number];
type StatusParts = Pick<PodStatus, "phase" | "reason" | "message" | "conditions">;
/**
 * The course of a pod's end, and the status that the kubelet 1.36.3's own SyncTerminatingPod (while the containers are
 * stopped, and afterwards) and SyncTerminatedPod reported to an API server. Each call starts from the state that the
 * previous one left.
 */
interface Course {
  readonly name: string;
  readonly object: SmallPod;
  readonly end: PodEnd;
  readonly seen: RuntimePod;
  readonly stopped: RuntimePod;
  readonly told: Readonly<Record<Stage, StatusParts>>;
}
const courses = gunzipSync(readFileSync(join(import.meta.dirname, "../../data/lifecycle/ends.jsonl.gz")))
  .toString()
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => JSON.parse(line) as Course);

const RECORDS: Readonly<Record<Stage, PodRecord["state"]>> = {
  lives: "active",
  terminating: "terminating",
  stopped: "terminating",
  terminated: "terminated",
};

/** Our status at each stage; each is computed with the status of the previous stage. */
function ours({ object, end, seen, stopped }: Course): Readonly<Record<string, Essence>> {
  let previous: PodStatus | null = null;
  const reported = STAGES.map((stage) => {
    const state = RECORDS[stage];
    const record = recordOf(object, { state, end: state === "active" ? null : end });
    const now = stage === "lives" || stage === "terminating" ? seen : stopped;
    const options = { nowMs: end.sinceMs, hostIPs: ["127.0.0.1"], qosClass: "BestEffort", previous } as const;
    previous = podStatus(runnableOf(object), record, now, options);
    return [stage, essence(previous)] as const;
  });
  return Object.fromEntries(reported);
}

type Essence = ReturnType<typeof essence>;
/** The conditions without times and messages. */
const essence = ({ phase, reason, message, conditions }: StatusParts) => ({
  phase,
  reason,
  message,
  conditions: conditions
    .map(({ type, status, reason: why }) => `${type} ${status} ${why ?? ""}`)
    .toSorted((a, b) => (a < b ? -1 : 1)),
});
const kubelets = ({ told: reported }: Course) => ({
  lives: essence(reported.lives),
  terminating: essence(reported.terminating),
  stopped: essence(reported.stopped),
  terminated: essence(reported.terminated),
});
const titleOf = ({ name, object, end }: Course): string =>
  `${end.cause} ${object.spec.restartPolicy} ${object.metadata.annotations?.["kubernetes.io/config.source"]}: ${name}`;

/** The phase and reason at each stage in our status. */
const of = (cause: PodEnd["cause"], name: string, source: "api" | "file" = "api", policy = "Always") => {
  const course = courses.find(
    (c) => titleOf(c) === `${cause} ${policy} ${source}: ${name}` && c.end.isDisruption !== false,
  );
  if (course === undefined) throw new Error(`no course ${cause} ${name}`);
  const { terminating, stopped, terminated } = ours(course);
  return [terminating, stopped, terminated].map((reported) => [reported?.phase, reported?.reason]);
};
const disruptionOf = (course: Course, stage: Stage) =>
  essence(course.told[stage]).conditions.some((message) => message.startsWith("DisruptionTarget True"));

/**
 * A kubelet starts no more containers of a static pod whose init containers have finished, and reports it as Pending
 * for ever; Nodewise does not.
 */
const PENDING_FOR_EVER = "deleted Never file: initializing, well";

test("every way a pod can end has the kubelet's phase and reason at each stage", () => {
  expect(courses.length).toBe(360);
  for (const course of courses) {
    const { terminated, ...before } = kubelets(course);
    const isOurOwn = titleOf(course) === PENDING_FOR_EVER;
    const reported = { ...before, terminated: isOurOwn ? { ...terminated, phase: "Failed" } : terminated };
    expect(ours(course), titleOf(course)).toEqual(reported);
  }
});

describe("the status of a pod that must end", () => {
  const RUNS = ["Running", undefined];
  test.each([
    ["preempted", "Preempting"],
    ["evicted", "Evicted"],
  ] as const)(
    "because it is %s stays the same while its containers are stopped, and then depends on their exit codes",
    (cause, reason) => {
      const succeeded = ["Succeeded", undefined];
      const failed = ["Failed", reason];
      expect(of(cause, "all well")).toEqual([RUNS, succeeded, succeeded]);
      expect(of(cause, "both well")).toEqual([RUNS, succeeded, succeeded]);
      expect(of(cause, "sidecar badly")).toEqual([RUNS, succeeded, succeeded]);
      expect(of(cause, "one killed")).toEqual([RUNS, failed, failed]);
      expect(of(cause, "one of two badly")).toEqual([RUNS, failed, failed]);
      expect(of(cause, "one before, badly")).toEqual([RUNS, failed, failed]);
      expect(of(cause, "initializing, well")).toEqual([["Pending", undefined], failed, failed]);
      expect(of(cause, "nothing started")).toEqual([["Pending", undefined], failed, failed]);
    },
  );
  test("is Failed for a static pod even with exit code 0, unless its restartPolicy lets it end", () => {
    const failed = ["Failed", "Preempting"];
    expect(of("preempted", "all well", "file")).toEqual([RUNS, failed, failed]);
    const succeeded = ["Succeeded", undefined];
    expect(of("preempted", "all well", "file", "OnFailure")).toEqual([RUNS, succeeded, succeeded]);
  });
  test("because of its deadline is Failed, whatever its containers' exit codes", () => {
    const failed = ["Failed", "DeadlineExceeded"];
    expect(of("deadline", "all well")).toEqual([RUNS, failed, failed]);
    expect(of("deadline", "one killed")).toEqual([RUNS, failed, failed]);
  });
  test("has the DisruptionTarget condition only once no container runs, even if it Succeeded", () => {
    const course = courses.find((c) => titleOf(c) === "preempted Always api: all well");
    expect(course && STAGES.map((stage) => disruptionOf(course, stage))).toEqual([false, false, true, true]);
  });
});
