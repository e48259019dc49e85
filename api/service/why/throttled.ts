import { perObject } from "../../base/cache.ts";
import { own } from "../../base/own.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { milliValue } from "../../model/amount.ts";
import { parseQuantity } from "../../model/quantity.ts";
import type { Change, Finding, FindingOf, Unused } from "../../model/why.ts";
import { cgroupOf, quotaOf } from "./cgroup.ts";
import { between, type CpuStat } from "./cpu-stat.ts";
import { observedNode } from "./evidence.ts";
import { podsIn } from "./find-pod.ts";
import { containersNow, finding, missing, type PodContainer, statsOf, type WhyContext } from "./why-context.ts";

/** A container throttled in less than this share of its periods is not reported. */
const LEAST_SHARE = 0.01;
/** A container that uses this share of its limit over some seconds is very likely throttled at times. */
export const NEAR_LIMIT = 0.9;

/** Findings about containers throttled at their CPU limit, by cpu.stat or, without it, by their usage. */
export function throttledOf(of: WhyContext): readonly Finding[] {
  const { read } = readingsOf(of);
  return limitedIn(of).flatMap((one) => throttledContainer(of, one, statIn(read.get(one.name))));
}

/** The running containers with a CPU limit for which neither cpu.stat nor /stats/summary shows throttling. */
export function notChecked(of: WhyContext): readonly PodContainer[] {
  const { read } = readingsOf(of);
  return limitedIn(of).filter(
    (one) =>
      one.status?.state?.running !== undefined &&
      !read.has(one.name) &&
      usageOf(of, one)?.usageNanoCores === undefined &&
      (!of.decides || quotaFor(of, one).cpuQuota !== -1),
  );
}

/** The pod's containers with a CPU limit; none if the pod has ended or is unknown. */
function limitedIn(of: WhyContext): readonly PodContainer[] {
  const phase = of.subject.pod?.status?.phase;
  if (phase === "Succeeded" || phase === "Failed") return [];
  return containersNow(of).filter((one) => limitOf(of, one) !== null);
}

/** Thousandths of a CPU: the container's own limit, or else the pod's; null if there is none. */
function limitOf({ subject: { pod } }: WhyContext, { spec }: PodContainer): number | null {
  const text = spec?.resources?.limits?.["cpu"] ?? pod?.spec?.resources?.limits?.["cpu"];
  return text === undefined ? null : milliOf(text);
}
function milliOf(text: string | number): number | null {
  const parsed = parseQuantity(String(text));
  return parsed.ok ? milliValue(parsed.value.amount) : null;
}

const usageOf = (of: WhyContext, { name }: PodContainer) =>
  statsOf(of)?.containers?.find((container) => container.name === name)?.cpu;

/** The readings of cpu.stat by container, latest last, and those that belong to no container. */
interface Readings {
  readonly read: ReadonlyMap<string, readonly CpuStat[]>;
  readonly unused: readonly Unused[];
}
export const readingsOf = perObject((of: WhyContext): Readings => {
  const read = new Map<string, CpuStat[]>();
  const unused: Unused[] = [];
  for (const { origin, stat } of of.evidence.cpuStats) {
    const whose = containerOfStat(of, origin);
    if (!whose.ok) unused.push({ origin, what: "a cgroup's cpu.stat", why: whose.error });
    else read.set(whose.value, [...(read.get(whose.value) ?? []), stat]);
  }
  return { read, unused };
});

/**
 * The container with a CPU limit that a cpu.stat belongs to. A container id or name in the file's path identifies it; without one,
 * the file belongs to the only container with a limit. Errors: why it belongs to none.
 */
function containerOfStat(of: WhyContext, origin: string): Result<string, string> {
  const { subject, evidence, decides } = of;
  const uid = /pod([0-9a-f]{8}[-_][0-9a-f_-]{27})/.exec(origin)?.[1]?.replaceAll("_", "-");
  if (uid !== undefined && subject.ref.uid !== "" && uid !== subject.ref.uid) return err(`it is of the pod ${uid}`);
  const containers = containersNow(of);
  const idOf = ({ status }: PodContainer): string => (status?.containerID ?? "").replace(/^.*:\/\//, "");
  const limited = limitedIn(of);
  const pod = `${subject.ref.namespace}/${subject.ref.name}`;
  const byId = containers.find((one) => idOf(one) !== "" && origin.includes(idOf(one)));
  const words = origin.split(/[^\w-]+/);
  const isOnly = decides || podsIn(evidence).length === 1;
  const named = byId ?? (isOnly ? containers.find(({ name }) => words.includes(name)) : undefined);
  if (named !== undefined)
    return limited.some(({ name }) => name === named.name)
      ? ok(named.name)
      : err(`container ${named.name} has no CPU limit, or has ended`);
  if (!isOnly) return err("whose it is does not stand in it: ask for one pod");
  if (subject.pod === null) return err(`the pod ${pod} itself is not there: whose limit it is about is not known`);
  const [first, second] = limited;
  if (first === undefined) return err(`no container of ${pod} runs with a CPU limit`);
  if (second === undefined) return ok(first.name);
  const names = limited.map(({ name }) => name).join(", ");
  return err(
    `${names} have a CPU limit, and whose it is does not stand in it (the pod as a whole has one too): put a container's name or id into its path, such as ${first.name}.cpu.stat`,
  );
}

/** The reading; with several, the difference of the last two. */
function statIn(readings: readonly CpuStat[] = []): CpuStat | null {
  const [last, before] = readings.toReversed();
  if (last === undefined) return null;
  return (before === undefined ? null : between(before, last)) ?? last;
}

function throttledContainer(of: WhyContext, one: PodContainer, stat: CpuStat | null): readonly Finding[] {
  const limitMilli = limitOf(of, one);
  const cpu = usageOf(of, one);
  const usageMilli = cpu?.usageNanoCores === undefined ? null : cpu.usageNanoCores / 1_000_000;
  const isNear = usageMilli !== null && limitMilli !== null && usageMilli >= NEAR_LIMIT * limitMilli;
  const isThrottled = stat === null ? isNear : stat.throttledPeriods > LEAST_SHARE * stat.periods;
  if (!isThrottled) return [];
  const { cgroup, cpuQuota, cpuPeriod } = quotaFor(of, one);
  // a container with exclusive CPUs has no quota, whatever its limit
  if (cpuQuota === -1) return [];
  const counted = countedIn(stat, limitMilli, cpuPeriod ?? null, nodeMilliOf(of));
  const numbers = {
    limitMilli,
    quotaMicros: cpuQuota ?? null,
    periodMicros: cpuPeriod ?? null,
    usageMilli,
    pressureAvg10: cpu?.psi?.some?.avg10 ?? null,
    ...counted,
  };
  const changes: readonly Change[] = [
    ...(limitMilli === null
      ? []
      : [{ code: "cpu_limit" as const, numbers: changeNumbers(one.name, limitMilli, counted.enoughMilli) }]),
    { code: "no_cpu_limit", numbers: { container: one.name } },
  ];
  const lacks =
    stat === null && of.decides
      ? [missing(of, "cpu.stat", "in how many periods it was stopped, and for how long", one.name)]
      : [];
  return [
    finding("throttled", {
      since: one.status?.state?.running?.startedAt ?? null,
      container: one.name,
      numbers,
      decisions: "missing" in cgroup ? [] : [cgroup],
      whatWouldChange: changes,
      missing: [...lacks, ...("missing" in cgroup ? cgroup.missing : [])],
    }),
  ];
}

/** The CFS quota that the kubelet sets, with the decision that shows it if one can be made. */
function quotaFor(of: WhyContext, one: PodContainer) {
  const cgroup = of.decides ? cgroupOf(of, one.name) : { missing: [] };
  const byLimit = quotaOf(of, limitOf(of, one) ?? 0);
  // a node that enforces no limit sets none
  const isOwn = !("missing" in cgroup) && byLimit.cpuQuota !== -1;
  const { cpuQuota, cpuPeriod } = isOwn ? cgroup.excerpt.values : byLimit;
  return { cgroup, cpuQuota, cpuPeriod };
}

const changeNumbers = (container: string, limitMilli: number, enoughMilli: number | null) =>
  enoughMilli === null ? { container, limitMilli } : { container, limitMilli, enoughMilli };

/** Thousandths of a CPU that the node has: a limit of this size or more is never reached. */
function nodeMilliOf({ evidence, subject }: WhyContext): number | null {
  const held = evidence.nodes.get(subject.node ?? "");
  const read = held === undefined ? undefined : observedNode(held);
  const cpu = read?.ok === true ? own(read.value.status?.capacity, "cpu") : undefined;
  return cpu === undefined ? null : milliOf(cpu);
}

type Counted = Pick<
  FindingOf<"throttled">["numbers"],
  "periods" | "throttledPeriods" | "throttledMicros" | "averageMilli" | "enoughMilli"
>;

/**
 * The counts of cpu.stat. A cgroup's wait on a CPU is at most the time that it would have run there, so the average wait per
 * throttled period, added to the quota, would have been enough. Peaks are not visible.
 */
function countedIn(
  stat: CpuStat | null,
  limitMilli: number | null,
  periodMicros: number | null,
  nodeMilli: number | null,
): Counted {
  if (stat === null)
    return { periods: null, throttledPeriods: null, throttledMicros: null, averageMilli: null, enoughMilli: null };
  const { periods, throttledPeriods, throttledMicros, usageMicros } = stat;
  const average =
    periodMicros === null || usageMicros === null || periods === 0 ? null : usageMicros / (periods * periodMicros);
  const waited =
    throttledMicros === null || periodMicros === null || throttledPeriods === 0
      ? null
      : throttledMicros / throttledPeriods / periodMicros;
  const enough = waited === null || limitMilli === null ? null : limitMilli + Math.ceil(waited * 1000);
  return {
    periods,
    throttledPeriods,
    throttledMicros,
    averageMilli: average === null ? null : Math.round(average * 1000),
    enoughMilli:
      enough === null || nodeMilli === null ? enough : Math.max(limitMilli ?? 0, Math.min(enough, nodeMilli)),
  };
}
