import type { ProbeFindingCode } from "../../model/probes-decision.ts";
import type { Words } from "./words.ts";

const s = (seconds: unknown): string => `${seconds} s`;

/** What each finding about a probe's settings says to a person. */
export const PROBE_FINDING: Readonly<Record<ProbeFindingCode, Words>> = {
  "unknown-port-name": (n) =>
    `the container has no port named \`${n["port"]}\`: every attempt is an error, which the kubelet throws away`,
  "liveness-before-started": (n) =>
    `without a startup probe a container that needs more than ${s(n["soonestSeconds"])} to start is restarted, each time anew${
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
    return `${budget}: a container that once needs longer, as on a busy node, is restarted, each time anew`;
  },
  "liveness-not-after-readiness": (n) =>
    `a container that hangs is restarted (${s(n["restartSeconds"])} at the latest) no later than it is taken out of service (${s(n["unreadySeconds"])})`,
  "same-as-readiness": (n) =>
    `asks the same as readiness: what should only take the pod out of service (${s(n["unreadySeconds"])} at the latest) restarts it too (${s(n["restartSeconds"])})`,
  "one-failure-restarts": (n) =>
    `one failure is enough to end the container, an answer that takes longer than ${s(n["timeoutSeconds"])} too`,
  "one-failure-unready": (n) =>
    `one failure takes the container out of service, an answer that takes longer than ${s(n["timeoutSeconds"])} too`,
  "timeout-over-period": (n) =>
    `the timeout is longer than the period: when nothing answers, attempts come every ${s(n["timeoutSeconds"])}, not every ${s(n["periodSeconds"])}`,
  "exec-often": (n) => `starts a process in the container ${n["perMinute"]} times a minute, in each pod`,
  "long-delay": (n) =>
    `nothing is asked for ${s(n["delaySeconds"])} after each start, however fast it is: a startup probe would end the wait as soon as it can`,
  "delay-beside-startup": (n) =>
    `counts from the container's start, as the startup probe does: it only matters when start-up takes less than ${s(n["delaySeconds"])}`,
  "success-threshold-carries": (n) =>
    `the run of successes outlives a restart: a new container may be ready after one answer, not ${n["successThreshold"]} (kubernetes #53530; strict counts anew)`,
  "grace-over-pod": (n) =>
    `a failing container is given ${s(n["own"])} to end, longer than the pod's own ${s(n["podSeconds"])}`,
  "grace-below-least": (n) => `${s(n["own"])} is raised to ${s(n["least"])}, the least that the kubelet gives`,
  "long-grace": (n) =>
    `a container that hangs is given ${s(n["graceSeconds"])} to end: up to ${s(n["slowestEndSeconds"])} from the fault to its end; the probe's own terminationGracePeriodSeconds would shorten that`,
  "host-outside-pod": (n) => `asks \`${n["host"]}\` instead of the pod: its answer says nothing of this container`,
  "never-restarted": () => "restartPolicy is Never: a failure ends the container for good",
};
