import { value, ZERO } from "../../model/amount.ts";
import type { CgroupPlan, CgroupValues } from "../../model/decision.ts";
import {
  type Container,
  type ContainerStatus,
  containersOf,
  isSidecar,
  type Pod,
  podNamespace,
} from "../../model/pod.ts";
import { bytes } from "../../model/units.ts";
import { gateOn } from "../config.ts";
import { oomScoreAdjuster } from "../resources/oom-score.ts";
import { statusesByName } from "./allocated.ts";
import { containerValues } from "./container-config.ts";
import type { TreeContext } from "./context.ts";
import { curveWeight, linearWeight } from "./cpu-convert.ts";
import { filesOf } from "./files.ts";
import { containerMemoryQos, podMemoryQos } from "./memory-qos.ts";
import type { NodePod } from "./node-pods.ts";
import { finishOwn, planOf } from "./node-tree.ts";
import { keepNodePages } from "./page-sizes.ts";
import { containerIdOf, containerLeaf } from "./paths.ts";
import { podCgroupValues, type Writable } from "./pod-config.ts";
import { containerSwap } from "./swap.ts";

interface PodContext extends NodePod {
  readonly identity: NonNullable<CgroupPlan["pod"]>;
  readonly oomScoreAdj: (c: Container) => number;
  readonly status: ReadonlyMap<string, ContainerStatus>;
}

/** A pod's cgroup and those of its containers that run or will run. */
export function podTree(context: TreeContext, nodePod: NodePod): CgroupPlan[] {
  const { pod, qos, uid } = nodePod;
  const own: PodContext = {
    ...nodePod,
    identity: { namespace: podNamespace(pod), name: pod.metadata.name, uid },
    oomScoreAdj: oomScoreAdjuster(pod, qos, context.memoryCapacity),
    status: statusesByName(pod),
  };
  const containers = containersOf(pod);
  return [podPlan(context, own), ...containers.flatMap((c) => containerPlan(context, own, c))];
}

function podPlan(context: TreeContext, own: PodContext): CgroupPlan {
  const values = podCgroupValues(
    own.pod,
    { qos: own.qos, requests: own.requests, quotaOff: quotaOff(context, own.uid), period: context.period },
    own.path,
    context.reasons,
  );
  const limit = context.config.podPidsLimit ?? -1;
  if (limit > 0) {
    values.pidsLimit = limit;
    context.reasons.add("pod_pids_limit", own.path, "pidsLimit", { podPidsLimit: limit });
  }
  if (context.memoryQos !== undefined) {
    const request = value(own.requests.get("memory") ?? ZERO);
    podMemoryQos(values, own.qos, request, context.memoryQos, own.path, context.reasons);
  }
  return { ...planOf(context, own.path, "pod", finishOwn(values, context, own.path, bytes(0))), pod: own.identity };
}

/** A quota on the pod would throttle the containers that own their CPUs. kubelet 1.36: podContainerManager EnsureExists. */
function quotaOff(context: TreeContext, uid: string): string | undefined {
  if (!context.cfsQuota) return "cpuCFSQuota is false";
  const exclusive = gateOn(context.config, "DisableCPUQuotaWithExclusiveCPUs") && context.cpuSets.hasExclusive(uid);
  return exclusive ? "the pod has exclusive CPUs" : undefined;
}

/** A finished container has no cgroup; one that does not run yet is shown under its name. */
function containerPlan(context: TreeContext, own: PodContext, c: Container): CgroupPlan[] {
  const status = own.status.get(c.name);
  const state = status?.state;
  const finished = state?.terminated !== null && state?.terminated !== undefined;
  const passedInit = !finished && !isSidecar(c) && isInit(own.pod, c) && started(own);
  if (finished || passedInit) return [];
  const running = state?.running !== null && state?.running !== undefined;
  const id = running ? containerIdOf(status?.containerID) : undefined;
  const path = context.paths.container(own.path, containerLeaf(context.driver, id ?? c.name));
  const values = valuesOf(context, own, c, path);
  return [
    {
      path,
      level: "container",
      pod: own.identity,
      container: c.name,
      containerId: id ?? null,
      values,
      files: filesOf(values, context.version),
    },
  ];
}
const isInit = (pod: Pod, c: Container): boolean => pod.spec.initContainers?.includes(c) === true;
/** Some regular container runs, so every init container has done its work (its status may be missing). */
const started = (own: PodContext): boolean =>
  own.pod.spec.containers.some((c) => (own.status.get(c.name)?.state?.running ?? null) !== null);

function valuesOf(context: TreeContext, own: PodContext, c: Container, path: string): CgroupValues {
  const { reasons } = context;
  const cpus = context.cpuSets.cpusOf(own.uid, c.name);
  const exclusiveCpus = cpus?.exclusive === true && gateOn(context.config, "DisableCPUQuotaWithExclusiveCPUs");
  const options = { cfsQuota: context.cfsQuota, period: context.period, exclusiveCpus, pageSizes: context.pageSizes };
  const values: Writable<CgroupValues> = containerValues(own.pod, c, options, path, reasons);
  keepNodePages(values, context, path);
  if (context.version === 2) addRuntimeWeight(values, context, path);
  containerSwap(values, own.pod, c, own.qos, context.version, context.swap, path, reasons);
  if (context.memoryQos !== undefined) containerMemoryQos(values, c, own.qos, context.memoryQos, path, reasons);
  if (cpus !== undefined) {
    values.cpusetCpus = cpus.cpus;
    reasons.add(cpus.exclusive ? "exclusive_cpus" : "shared_pool", path, "cpusetCpus", { cpus: cpus.cpus });
  }
  const mems = context.cpuSets.memsOf(own.uid, c.name);
  if (mems !== undefined) {
    values.cpusetMems = mems;
    reasons.add("memory_manager", path, "cpusetMems", { numaNodes: mems });
  }
  if (context.version === 2 && context.config.singleProcessOOMKill === false) {
    values.memoryOomGroup = true;
    reasons.add("oom_group", path, "memoryOomGroup", { because: "singleProcessOOMKill is false" });
  }
  values.oomScoreAdj = own.oomScoreAdj(c);
  reasons.add("oom_score_adj", path, "oomScoreAdj", { qosClass: own.qos, memoryCapacity: context.memoryCapacity });
  return values;
}

/** Containers' weights are the runtime's work, and its rule is not the kubelet's. */
function addRuntimeWeight(values: Writable<CgroupValues>, context: TreeContext, at: string): void {
  const rule = context.snapshot.cgroup?.runtimeCpuWeight ?? "curve";
  const shares = values.cpuShares ?? 0;
  values.cpuWeight = rule === "linear" ? linearWeight(shares) : curveWeight(shares);
  context.reasons.add("weight_from_shares", at, "cpuWeight", { rule, cpuShares: shares });
}
