import { byText } from "../../base/order.ts";
import type { RuntimeContainer } from "../../model/runtime.ts";
import type { GcPlan, RemoveReason } from "./gc-plan.ts";
import { type PodState, podRemovalReason, uidOf } from "./pod-states.ts";
import { type ContainerTarget, containerTarget } from "./targets.ts";
import { byAge, isAfter, isTied, oldEnoughAt, sortedByAge } from "./unix-nanos.ts";

interface ContainerPass {
  readonly containers: readonly RuntimeContainer[];
  readonly stateOf: (uid: string) => PodState;
  readonly allSourcesReady: boolean;
  /** True: the eviction manager asked; pods that have ended count as removed. */
  readonly underPressure: boolean;
  readonly minAgeMs: number;
  /** The latest creation time of a container that is old enough: see `newestOldEnough`. */
  readonly newest: string | null;
  /** The maximum per container name and pod; negative: no limit. */
  readonly maxPerPodContainer: number;
  readonly maxContainers: number;
}

/** The containers of one name in one pod, to which the limit per container applies. kubelet 1.36: evictUnit. */
interface Unit {
  readonly pod: PodState;
  /** Containers of every state, oldest first. */
  readonly containers: readonly ContainerTarget[];
  /** The dead containers, oldest first; the first `taken` of them are removed. */
  readonly dead: readonly ContainerTarget[];
  taken: number;
}
type RemoveContainer = (list: readonly ContainerTarget[], i: number, because: RemoveReason) => void;

/**
 * Selects the dead containers that a pass removes: all of removed pods; then those above the limit of each unit; then
 * those above the total, first down to an equal share of each unit (at least 1), then the oldest of all. Like the
 * kubelet, this counts a container as removed even if its removal fails. Returns the containers that remain, in no
 * order: the kept ones and the failed removals.
 * Where the kubelet follows Go maps, this order applies: units by pod uid, then container name; containers oldest
 * first, and of equal age the smaller id first. kubelet 1.36: evictContainers.
 */
export function evictContainers(pass: ContainerPass, ledger: GcPlan): readonly RuntimeContainer[] {
  const left: RuntimeContainer[] = [];
  const take: RemoveContainer = (list, i, because) => {
    const entry = list[i] as ContainerTarget;
    if (!ledger.take(entry, because, entry.state === "CONTAINER_UNKNOWN", isTied(list, i))) left.push(entry.made);
  };
  const all = unitsOf(pass);
  const limited = pass.allSourcesReady ? all.filter((unit) => !removePod(unit, pass.underPressure, take)) : all;
  const { maxPerPodContainer, maxContainers } = pass;
  if (maxPerPodContainer >= 0) {
    for (const unit of limited) {
      if (unit.dead.length <= maxPerPodContainer) continue;
      const numbers = { dead: unit.dead.length, maxPerPodContainer };
      cut(unit, maxPerPodContainer, { why: "per-container-limit", code: "over_container_limit", numbers }, take);
    }
  }
  if (maxContainers >= 0) enforceTotal(limited, maxContainers, take);
  for (const unit of all) leaveRest(unit, pass.minAgeMs, ledger, left);
  return left;
}

function removePod(unit: Unit, underPressure: boolean, take: RemoveContainer): boolean {
  const because = podRemovalReason(unit.pod, underPressure);
  if (because !== null) cut(unit, 0, because, take);
  return because !== null;
}

/** Removes the oldest containers of a unit until `left` remain. */
function cut(unit: Unit, left: number, because: Parameters<RemoveContainer>[2], take: RemoveContainer): void {
  for (; unit.dead.length - unit.taken > left; unit.taken++) take(unit.dead, unit.taken, because);
}

function enforceTotal(units: readonly Unit[], maxContainers: number, take: RemoveContainer): void {
  let total = 0;
  const filled: Unit[] = [];
  for (const unit of units) {
    if (unit.dead.length === 0) continue;
    filled.push(unit);
    total += unit.dead.length - unit.taken;
  }
  if (total <= maxContainers) return;
  const share = Math.max(1, Math.floor(maxContainers / filled.length));
  const shared = { total, maxContainers, share };
  for (const unit of filled) cut(unit, share, { why: "total-limit", code: "over_total_share", numbers: shared }, take);
  const rest: ContainerTarget[] = [];
  for (const { dead, taken } of filled) for (let i = taken; i < dead.length; i++) rest.push(dead[i] as ContainerTarget);
  if (rest.length <= maxContainers) return;
  const oldest = sortedByAge(rest);
  const numbers = { total: rest.length, maxContainers };
  const over = rest.length - maxContainers;
  for (let i = 0; i < over; i++) take(oldest, i, { why: "total-limit", code: "over_total_limit", numbers });
  const last = oldest[over - 1];
  if (last === undefined) return;
  for (const unit of filled)
    while (unit.taken < unit.dead.length && byAge(unit.dead[unit.taken] as ContainerTarget, last) <= 0) unit.taken++;
}

function leaveRest(
  { containers, dead, taken, pod }: Unit,
  minAgeMs: number,
  ledger: GcPlan,
  left: RuntimeContainer[],
): void {
  // most often all containers are taken
  if (taken === containers.length) return;
  const staying = dead.length - taken;
  let seen = 0;
  for (const entry of containers) {
    if (entry === dead[seen]) {
      if (seen++ < taken) continue;
      const numbers = { dead: staying, newer: dead.length - seen };
      if (pod.presence === "unsynced") ledger.leave(entry, { why: "sources-not-ready", code: pod.because });
      else ledger.leave(entry, { why: "within-limits", code: "within_limits", numbers });
    } else if (entry.state === "CONTAINER_RUNNING") ledger.leave(entry, RUNNING);
    else {
      const because = { why: "too-young", code: "too_young", numbers: { minAgeMs } } as const;
      ledger.leave(entry, because, oldEnoughAt(entry.made.createdAt, minAgeMs));
    }
    left.push(entry.made);
  }
}
const RUNNING = { why: "running", code: "running" } as const;

function unitsOf({ containers, stateOf, newest }: ContainerPass): readonly Unit[] {
  const byUid = new Map<string, ContainerTarget[]>();
  // containers of one pod are mostly adjacent
  let lastUid: string | undefined;
  let last: ContainerTarget[] | undefined;
  for (const c of containers) {
    const uid = uidOf(c);
    if (uid !== lastUid) last = byUid.get(uid);
    const entry = containerTarget(c, last?.[0]?.pod ?? null);
    if (last === undefined) {
      last = [entry];
      byUid.set(uid, last);
    } else last.push(entry);
    lastUid = uid;
  }
  const mayGo = ({ made }: ContainerTarget): boolean =>
    newest !== null && made.state !== "CONTAINER_RUNNING" && !isAfter(made.createdAt, newest);
  const units: Unit[] = [];
  for (const uid of [...byUid.keys()].sort()) {
    const pod = stateOf(uid);
    for (const list of byName(byUid.get(uid) as ContainerTarget[])) {
      const dead = list.every(mayGo) ? list : list.filter(mayGo);
      units.push({ pod, containers: list, dead, taken: 0 });
    }
  }
  return units;
}

/** The containers of each name, sorted by name; oldest first. */
function byName(list: ContainerTarget[]): readonly (readonly ContainerTarget[])[] {
  const name = list[0]?.name;
  if (list.every((e) => e.name === name)) return [sortedByAge(list)];
  list.sort((a, b) => (a.name === b.name ? byAge(a, b) : byText(a.name, b.name)));
  const lists: (readonly ContainerTarget[])[] = [];
  let from = 0;
  for (let i = 1; i <= list.length; i++) {
    if (list[i]?.name === list[from]?.name) continue;
    lists.push(list.slice(from, i));
    from = i;
  }
  return lists;
}
