import type { ProbeFindingCode } from "../../model/probes-decision.ts";
import { durationText } from "../time-text.ts";
import { many, type Sentences, type Words } from "./words.ts";

const s = (seconds: unknown): string => `${seconds} s`;

/** The sentence for each finding about a probe's settings. */
export const PROBE_FINDING: Readonly<Record<ProbeFindingCode, Words>> = {
  "unknown-port-name": (n) =>
    `the container has no port named \`${n["port"]}\`: every attempt is an error, which the kubelet ignores`,
  "liveness-before-started": (n) =>
    `without a startup probe a container that needs more than ${s(n["soonestSeconds"])} to start is restarted again and again${
      Number(n["readyDelaySeconds"]) > Number(n["soonestSeconds"])
        ? `; readiness itself waits ${s(n["readyDelaySeconds"])}`
        : ""
    }`,
  "startup-too-short": (n) => {
    const budget = `start-up may take ${s(n["soonestSeconds"])}`;
    if (Number(n["readyDelaySeconds"]) > Number(n["soonestSeconds"]))
      return `${budget}, and readiness waits ${s(n["readyDelaySeconds"])}: the container is restarted before it is asked whether it is ready`;
    if (Number(n["liveDelaySeconds"] ?? 0) > Number(n["soonestSeconds"]))
      return `${budget}, and liveness waits ${s(n["liveDelaySeconds"])}: the container is restarted before the time that liveness gives it`;
    return `${budget}: a container that once needs longer, as on a busy node, is restarted again and again`;
  },
  "liveness-not-after-readiness": (n) =>
    `a container that hangs is restarted (${s(n["restartSeconds"])} at the latest) no later than it is taken out of service (${s(n["unreadySeconds"])})`,
  "same-as-readiness": (n) =>
    `makes the same check as readiness: what should only take the pod out of service (${s(n["unreadySeconds"])} at the latest) restarts it too (${s(n["restartSeconds"])})`,
  "one-failure-restarts": (n) =>
    `one failure is enough to end the container, an answer that takes longer than ${s(n["timeoutSeconds"])} too`,
  "one-failure-unready": (n) =>
    `one failure takes the container out of service, an answer that takes longer than ${s(n["timeoutSeconds"])} too`,
  "timeout-over-period": (n) =>
    `the timeout is longer than the period: when nothing answers, attempts come every ${s(n["timeoutSeconds"])}, not every ${s(n["periodSeconds"])}`,
  "exec-often": (n) => `starts a process in the container ${n["perMinute"]} times a minute, in each pod`,
  "long-delay": (n) =>
    `nothing is probed for ${s(n["delaySeconds"])} after each start, however fast it is: a startup probe would end the wait as soon as possible`,
  "delay-beside-startup": (n) =>
    `counts from the container's start, as the startup probe does: it only matters when start-up takes less than ${s(n["delaySeconds"])}`,
  "success-threshold-carries": (n) =>
    `the run of successes outlives a restart: a new container may be ready after one answer, not ${n["successThreshold"]} (kubernetes #53530; strict counts from zero)`,
  "grace-over-pod": (n) =>
    `a failing container is given ${s(n["own"])} to end, longer than the pod's own ${s(n["podSeconds"])}`,
  "grace-below-least": (n) => `${s(n["own"])} is raised to ${s(n["least"])}, the least that the kubelet gives`,
  "long-grace": (n) =>
    `a container that hangs is given ${s(n["graceSeconds"])} to end: up to ${s(n["slowestEndSeconds"])} from the fault to its end; the probe's own terminationGracePeriodSeconds would shorten that`,
  "host-outside-pod": (n) => `probes \`${n["host"]}\` instead of the pod: the result says nothing about this container`,
  "never-restarted": () => "restartPolicy is Never: a failure ends the container for good",
};

const share: Words = (n) =>
  n["share"] === undefined ? "" : ` (${Math.round(Number(n["share"]) * 100)} % of them, two at least)`;
const counted: Words = (n) =>
  `liveness probes of ${many(n["failingGroups"], "unrelated group")} of ${n["groups"]} failed within ${n["windowSeconds"]} s`;

/** The sentences for the reasons of `probe-guard`. */
export const PROBE_GUARD_SENTENCES = {
  probe_storm: (n) => `${counted(n)}: from ${n["leastGroups"]} on${share(n)} it counts as a problem of the node`,
  no_probe_storm: (n) => `${counted(n)}: it would take ${many(n["leastGroups"], "group")}${share(n)} to hold kills`,
  kill_held: (n) => `its restart is held from now on, for ${n["holdSeconds"]} s at most: other containers fail too`,
  kill_held_on: (n) =>
    `it failed again; its restart has been held for ${durationText(Number(n["heldForMs"]))} of at most ${n["holdSeconds"]} s`,
  kill_not_held: () => "it is restarted: too few fail together",
  released_recovered: () => "it answers again: nothing is killed",
  released_gone: () => "it is not probed any more: nothing is killed",
  released_calm: () => "it failed again, and too few fail together now: it is restarted",
  released_held_long_enough: (n) => `it failed again, and was held for ${n["holdSeconds"]} s: it is restarted`,
} satisfies Partial<Sentences>;

const quirk =
  (kubelet: string, documented: string): Words =>
  (n) =>
    `${n["strict"] === true && documented !== "" ? documented : kubelet} (${many(n["times"], "time")})`;

/** The sentences for the reasons of `probes`. */
export const PROBES_SENTENCES = {
  started_at_once: () => "no startup probe: it is started as soon as it runs",
  ready_once_started: () => "no readiness probe: it is ready as long as it is started",
  slowest_detection: (n) =>
    `a fault is noticed within ${durationText(Number(n["slowestFailureMs"]))}: ${many(n["failureThreshold"], "failure")}, every ${n["periodSeconds"]} s, ${n["timeoutSeconds"]} s each`,
  ended_by_probe: (n) =>
    `${n["id"]} is ended ${n["endedAtMs"] === "" ? "" : `at ${durationText(Number(n["endedAtMs"]))} `}because ${n["endedBy"]} failed`,
  quirk_counters_carry_over: quirk("the run of results of the container before counted here too", ""),
  quirk_error_discarded: quirk("the probe could not be run, three times in a row: the result was ignored", ""),
  quirk_hang_discarded: quirk("the answer broke off, three times in a row: the result was ignored", ""),
  quirk_sleep_ignores_stop: quirk(
    "a probe worker that was stopped during its start jitter kept sleeping",
    "it ended at once",
  ),
  quirk_ready_kept_on_restart: quirk("the kubelet restarted: the container keeps its readiness until it is probed", ""),
} satisfies Partial<Sentences>;
