import { milliValue } from "../../model/amount.ts";
import { own } from "../../model/own.ts";
import { parseQuantity } from "../../model/quantity.ts";
import type { Change, Finding, FindingOf } from "../../model/why.ts";
import { type Case, type ContainerNow, containersNow, finding, missing, statsOf } from "./case.ts";
import { cgroupOf, quotaOf } from "./cgroup.ts";
import { between, type CpuStat } from "./cpu-stat.ts";
import { observedNode } from "./evidence.ts";

/** Below this share of its periods a container is not worth a word. */
const LEAST_SHARE = 0.01;
/** A container that uses so much of its limit over some seconds is most likely throttled now and then. */
const NEAR_LIMIT = 0.9;

/** Containers that are stopped at their CPU limit: by cpu.stat, or as far as their use tells. */
export function throttledOf(of: Case): readonly Finding[] {
  const phase = of.subject.pod?.status?.phase;
  if (of.subject.pod === null || phase === "Succeeded" || phase === "Failed") return [];
  const limited = containersNow(of).filter((one) => limitOf(of, one) !== null);
  return limited.flatMap((one) => throttledContainer(of, one, statFor(of, one, limited)));
}

/** Thousandths of a CPU: the container's own limit, else that of the pod; null: there is none. */
function limitOf({ subject: { pod } }: Case, { spec }: ContainerNow): number | null {
  const text = spec?.resources?.limits?.["cpu"] ?? pod?.spec?.resources?.limits?.["cpu"];
  return text === undefined ? null : milliOf(text);
}
function milliOf(text: string | number): number | null {
  const parsed = parseQuantity(String(text));
  return parsed.ok ? milliValue(parsed.value.amount) : null;
}

/**
 * The reading of a container: of several the difference of the last two. A file tells whose it is by the container's id or name in
 * its path; one that tells nothing is that of the only container with a limit.
 */
function statFor({ evidence, subject }: Case, one: ContainerNow, limited: readonly ContainerNow[]): CpuStat | null {
  const idOf = ({ status }: ContainerNow): string => (status?.containerID ?? "").replace(/^.*:\/\//, "");
  const isOf = (origin: string, container: ContainerNow): boolean =>
    (idOf(container) !== "" && origin.includes(idOf(container))) || origin.split(/[^\w-]+/).includes(container.name);
  const isOthers = (origin: string): boolean => {
    const uid = /pod([0-9a-f]{8}[-_][0-9a-f_-]{27})/.exec(origin)?.[1]?.replaceAll("_", "-");
    return uid !== undefined && subject.ref.uid !== "" && uid !== subject.ref.uid;
  };
  const readings = evidence.cpuStats.filter(({ origin }) => {
    if (isOthers(origin)) return false;
    if (limited.some((other) => isOf(origin, other))) return isOf(origin, one);
    return limited.length === 1;
  });
  const [last, before] = readings.map(({ stat }) => stat).toReversed();
  if (last === undefined) return null;
  return (before === undefined ? null : between(before, last)) ?? last;
}

function throttledContainer(of: Case, one: ContainerNow, stat: CpuStat | null): readonly Finding[] {
  const limitMilli = limitOf(of, one);
  const cpu = statsOf(of)?.containers?.find(({ name }) => name === one.name)?.cpu;
  const usageMilli = cpu?.usageNanoCores === undefined ? null : cpu.usageNanoCores / 1_000_000;
  const isNear = usageMilli !== null && limitMilli !== null && usageMilli >= NEAR_LIMIT * limitMilli;
  const isThrottled = stat === null ? isNear : stat.throttledPeriods > LEAST_SHARE * stat.periods;
  if (!isThrottled) return [];
  const cgroup = of.decides ? cgroupOf(of, one.name) : { missing: [] };
  const { cpuQuota, cpuPeriod } = "missing" in cgroup ? quotaOf(of, limitMilli ?? 0) : cgroup.excerpt.values;
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

const changeNumbers = (container: string, limitMilli: number, enoughMilli: number | null) =>
  enoughMilli === null ? { container, limitMilli } : { container, limitMilli, enoughMilli };

/** Thousandths of a CPU that the node has: no limit of as much is ever met. */
function nodeMilliOf({ evidence, subject }: Case): number | null {
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
 * What cpu.stat tells. The time that a cgroup waits on a CPU is at most the time that it would have run there, so the wait of the
 * average throttled period, added to the quota, would have been enough for it. Peaks are not told.
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
