import { milliValue, value } from "./amount.ts";
import type { ResourceList } from "./fields.ts";
import { type InputIssue, joinPath } from "./input-issue.ts";
import { LIMITS } from "./limits.ts";
import type { Machine } from "./machine.ts";
import type { ContainerStatus, Pod, ResourceRequirements } from "./pod.ts";
import { parseQuantity } from "./quantity.ts";
import type { Snapshot } from "./snapshot.ts";

/** Whole units and thousandths of a CPU; beyond the limits they need not be exact, only large. */
type Total = { units: number; milliCpu: number };

/** Amounts that are fine one by one and together leave exact arithmetic. INVARIANT: after this no sum of a decision does. */
export function amountIssues(snapshot: Snapshot, at: string, podsAt: string): readonly InputIssue[] {
  const allocated: Total = { units: 0, milliCpu: 0 };
  for (const entry of Object.values(snapshot.assignments?.allocated_pods_state?.entries ?? {})) {
    addRequirements(allocated, entry.PodLevelResources);
    for (const resources of Object.values(entry.ContainerResources ?? {})) addRequirements(allocated, resources);
  }
  const found: InputIssue[] = [...amountsOfPods(snapshot.pods ?? [], podsAt)];
  if (isTooMuch(allocated)) found.push({ path: joinPath(at, ["assignments", "allocated_pods_state"]), message });
  if (snapshot.machine !== undefined && machineUnits(snapshot.machine) > LIMITS.units) {
    found.push({ path: joinPath(at, ["machine", "numaNodes"]), message });
  }
  return found;
}
/** The same of pods alone; `at`: their path. */
export function amountsOfPods(pods: readonly Pod[], at: string): readonly InputIssue[] {
  const total: Total = { units: 0, milliCpu: 0 };
  for (const pod of pods) addPod(total, pod);
  return isTooMuch(total) ? [{ path: at, message }] : [];
}
const message = "the amounts add up to more than exact arithmetic holds";
const isTooMuch = (t: Total): boolean => t.units > LIMITS.units || t.milliCpu > LIMITS.milliCpu;

function addPod(total: Total, pod: Pod): void {
  for (const c of pod.spec.containers) addRequirements(total, c.resources);
  for (const c of pod.spec.initContainers ?? []) addRequirements(total, c.resources);
  addRequirements(total, pod.spec.resources);
  addList(total, pod.spec.overhead);
  for (const s of pod.status?.containerStatuses ?? []) addStatus(total, s);
  for (const s of pod.status?.initContainerStatuses ?? []) addStatus(total, s);
  addList(total, pod.status?.allocatedResources);
  addRequirements(total, pod.status?.resources);
}
function addStatus(total: Total, status: ContainerStatus): void {
  addList(total, status.allocatedResources);
  addRequirements(total, status.resources);
}
function addRequirements(total: Total, r: ResourceRequirements | undefined): void {
  addList(total, r?.requests);
  addList(total, r?.limits);
}
function addList(total: Total, list: ResourceList | undefined): void {
  for (const name in list) {
    const amount = (list[name] as ResourceList[string]).amount;
    if (name === "cpu") total.milliCpu += milliValue(amount);
    else total.units += value(amount);
  }
}

/** Bytes of memory, and of huge pages of every size. */
function machineUnits({ numaNodes }: Machine): number {
  let units = 0;
  for (const { memoryBytes, hugepages } of numaNodes ?? []) {
    units += memoryBytes ?? 0;
    for (const [page, pages] of Object.entries(hugepages ?? {})) {
      const size = parseQuantity(page);
      if (size.ok) units += value(size.value.amount) * pages;
    }
  }
  return units;
}
