import type { TerminatedState } from "../../model/observed.ts";
import type { Change, Finding, Missing, PodExplanationDecision } from "../../model/why.ts";
import { cgroupOf } from "./cgroup.ts";
import {
  containerOf,
  containersNow,
  eventsOf,
  finding,
  isWord,
  missing,
  type PodContainer,
  statsOf,
  timeOf,
  type WhyContext,
  wordOf,
  wordOfEvent,
} from "./why-context.ts";

const OOM = "OOMKilled";
const CRASH_LOOP = "CrashLoopBackOff";

const restartsOf = ({ status }: PodContainer, ended: TerminatedState | undefined) => ({
  restarts: status?.restartCount ?? 0,
  exitCode: ended?.exitCode ?? null,
  endedBy: ended?.reason ?? null,
});
const terminationWord = (ended: TerminatedState) =>
  wordOf("container", ended.reason, ended.message, ended.finishedAt ?? null);

/** Findings about how containers ended: out of memory, by themselves, or repeatedly. */
export function endsOfContainers(of: WhyContext): readonly Finding[] {
  const all = containersNow(of);
  const found = all.flatMap((one) => {
    const { waiting, terminated } = one.status?.state ?? {};
    const before = one.status?.lastState?.terminated;
    const last = terminated ?? before;
    const oom = last?.reason === OOM ? [oomKilled(of, one, last)] : [];
    if (waiting?.reason === CRASH_LOOP) return [...oom, crashLoop(one, last)];
    if (oom.length > 0) return oom;
    if (terminated !== undefined && terminated.exitCode !== 0) return [endedAs("failed", one, terminated)];
    return before !== undefined && terminated === undefined && waiting === undefined
      ? [endedAs("restarted", one, before)]
      : [];
  });
  return found.length > 0 || of.subject.pod !== null ? found : fromEvents(of);
}

const endedAs = (code: "failed" | "restarted", one: PodContainer, ended: TerminatedState): Finding =>
  finding(code, {
    since: ended.finishedAt ?? null,
    container: one.name,
    words: [terminationWord(ended)],
    numbers: restartsOf(one, ended),
  });

function crashLoop(one: PodContainer, ended: TerminatedState | undefined): Finding {
  const { reason, message = "" } = one.status?.state?.waiting ?? {};
  const seconds = /back-off (?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?/.exec(message);
  const [hours, minutes, rest] = (seconds ?? []).slice(1).map((part) => Number(part ?? 0));
  const backOffSeconds = seconds === null ? null : (hours ?? 0) * 3600 + (minutes ?? 0) * 60 + (rest ?? 0);
  const words = [wordOf("container", reason, message), ...(ended === undefined ? [] : [terminationWord(ended)])];
  return finding("crash-loop", {
    since: ended?.finishedAt ?? null,
    container: one.name,
    words,
    numbers: { ...restartsOf(one, ended), backOffSeconds },
  });
}

/** The node's own OOM event counts if it is this close to the kill. */
const NEAR_MS = 60_000;

function oomKilled(of: WhyContext, one: PodContainer, ended: TerminatedState): Finding {
  const since = ended.finishedAt ?? null;
  const nodeOom = of.evidence.events.some(
    ({ about, reason, last }) =>
      about.kind === "Node" &&
      about.name === of.subject.node &&
      reason === "SystemOOM" &&
      Math.abs(timeOf(last) - timeOf(since)) < NEAR_MS,
  );
  const { usageBytes, workingSetBytes } = memoryOf(of, one.name);
  const { limitBytes, decisions, missing: lacks } = of.decides ? memoryLimitOf(of, one.name) : NO_LIMIT;
  const raise: readonly Change[] =
    limitBytes === null ? [] : [{ code: "memory_limit", numbers: { container: one.name, limitBytes } }];
  return finding("oom-killed", {
    since,
    container: one.name,
    words: [terminationWord(ended)],
    numbers: { ...restartsOf(one, ended), limitBytes, usageBytes, workingSetBytes, nodeOom },
    decisions,
    whatWouldChange: raise,
    missing: [
      ...lacks,
      ...(of.decides && one.status?.state?.running !== undefined
        ? [missing(of, "memory.peak", "the most that it has used since it started, where it is of cgroup v2", one.name)]
        : []),
    ],
  });
}

interface MemoryLimit {
  readonly limitBytes: number | null;
  readonly decisions: readonly PodExplanationDecision[];
  readonly missing: readonly Missing[];
}
const NO_LIMIT: MemoryLimit = { limitBytes: null, decisions: [], missing: [] };

/** The memory limit of the container's cgroup, or else of the pod's cgroup. */
function memoryLimitOf(of: WhyContext, container: string): MemoryLimit {
  for (const level of [container, null]) {
    const decision = cgroupOf(of, level);
    if ("missing" in decision) return { ...NO_LIMIT, missing: decision.missing };
    const { memory } = decision.excerpt.values;
    if (memory !== undefined && memory > 0) return { limitBytes: memory, decisions: [decision], missing: [] };
  }
  return NO_LIMIT;
}

function memoryOf(of: WhyContext, container: string) {
  const { usageBytes, workingSetBytes } = statsOf(of)?.containers?.find(({ name }) => name === container)?.memory ?? {};
  return { usageBytes: usageBytes ?? null, workingSetBytes: workingSetBytes ?? null };
}

/** Without the Pod object, its events show which containers are restarted repeatedly. */
function fromEvents(of: WhyContext): readonly Finding[] {
  const held = eventsOf(of, "BackOff").filter(({ message }) => message.startsWith("Back-off restarting"));
  return [...Map.groupBy(held, containerOf)].map(([container, events]) => {
    const started = eventsOf(of, "Started").filter((event) => containerOf(event) === container);
    const restarts = Math.max(0, started.reduce((sum, { count }) => sum + count, 0) - 1);
    return finding("crash-loop", {
      since: events.at(-1)?.first ?? null,
      container,
      words: events.map(wordOfEvent).filter(isWord),
      numbers: { restarts, exitCode: null, endedBy: null, backOffSeconds: null },
      missing: [missing(of, "pod", "how the container ended")],
    });
  });
}
