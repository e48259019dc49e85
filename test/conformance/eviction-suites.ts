import type { InputIssue } from "../../api/base/input-issue.ts";
import type { Result } from "../../api/base/result.ts";
import { evictionThresholds } from "../../api/decide/eviction/configuration.ts";
import { type PassInput, synchronise } from "../../api/decide/eviction/synchronise.ts";
import { isHard, SIGNALS, type Threshold, type ThresholdValue } from "../../api/decide/eviction/threshold.ts";
import { remembered, samplesWith } from "../../api/decide/kinds/eviction.ts";
import { value } from "../../api/model/amount.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { decodeEvictionAsk, type EvictionFacts, type FileSystems } from "../../api/model/eviction.ts";
import type { KubeletConfiguration } from "../../api/model/kubelet-configuration.ts";
import { epochMs } from "../../api/model/units.ts";
import { effectiveConfiguration } from "../../api/profiles/effective.ts";
import type { Profile } from "../../api/profiles/profile.ts";
import { decodedPod } from "../kit/pods.ts";
import { type Suite, suite } from "./suite.ts";

const thresholds = suite({
  read: (input: KubeletConfiguration) => input,
  decide: (config, profile) => evictionThresholds(effectiveConfiguration(profile, config)),
  show: (parsed) => {
    if (!parsed.ok) return { error: true };
    const shown = parsed.value.map(showThreshold).sort((a, b) => (sortText(a) < sortText(b) ? -1 : 1));
    return { thresholds: shown.length === 0 ? null : shown };
  },
});
const sortText = (shown: Record<string, unknown>): string => `${shown["signal"]} ${JSON.stringify(shown)}`;
/** The suite prints a percentage as the shortest decimal form of its float32. */
const percent = (p: number): number => Number(p.toPrecision(7));
const amountOf = (v: ThresholdValue): string => ("quantity" in v ? String(value(v.quantity.amount)) : "");
function showThreshold({ signal, value: limit, graceMs, minReclaim }: Threshold): Record<string, unknown> {
  return {
    graceSeconds: graceMs / 1000,
    ...(minReclaim === undefined
      ? {}
      : "quantity" in minReclaim
        ? { minReclaimQuantity: amountOf(minReclaim) }
        : { minReclaimPercentage: percent(minReclaim.percentage) }),
    operator: "LessThan",
    ...("quantity" in limit ? { quantity: amountOf(limit) } : { percentage: percent(limit.percentage) }),
    signal,
  };
}

type FileSystemNumbers = readonly [number, number, number, number];
interface PassCase {
  readonly evictionHard: Readonly<Record<string, string>>;
  readonly evictionMinimumReclaim: Readonly<Record<string, string>>;
  readonly memoryAvailableCapacity: readonly [number, number];
  readonly nodeFsAvailableCapacityInodesFreeInodes: FileSystemNumbers;
  readonly imageFsAvailableCapacityInodesFreeInodes: FileSystemNumbers;
  readonly dedicatedImageFs: boolean;
  readonly maxPidCurrentProcesses: readonly [number, number];
  readonly pods: readonly {
    readonly pod: unknown;
    readonly memoryWorkingSetBytes: number;
    readonly rootfsUsedBytes: number;
    readonly logsUsedBytes: number;
    readonly rootfsInodesUsed: number;
    readonly processCount: number;
  }[];
}
const fileSystem = ([availableBytes, capacityBytes, inodesFree, inodes]: FileSystemNumbers) => ({
  availableBytes,
  capacityBytes,
  inodesFree,
  inodes,
});

/**
 * With one disk, images and pods are on the same file system. A pod's first container has all of the pod's usage. The
 * suite's node-level reclaim frees nothing.
 */
function readPass(input: PassCase, profile: Profile): PassInput {
  const { evictionHard, evictionMinimumReclaim } = input;
  const config = effectiveConfiguration(profile, { evictionHard, evictionMinimumReclaim, enforceNodeAllocatable: [] });
  const configured = evictionThresholds(config);
  if (!configured.ok) throw new Error(configured.error.message);
  const pods = input.pods.map((p) => decodedPod(p.pod));
  const [availableBytes, capacity] = input.memoryAvailableCapacity;
  const [maxpid, curproc] = input.maxPidCurrentProcesses;
  const nodeFs = fileSystem(input.nodeFsAvailableCapacityInodesFreeInodes);
  const stats = {
    node: {
      memory: { availableBytes, workingSetBytes: capacity - availableBytes },
      fs: nodeFs,
      runtime: {
        imageFs: input.dedicatedImageFs ? fileSystem(input.imageFsAvailableCapacityInodesFreeInodes) : nodeFs,
      },
      rlimit: { maxpid, curproc },
      fileSystems: input.dedicatedImageFs ? ("dedicated" as const) : ("one" as const),
    },
    pods: pods.map(({ metadata: { name, uid = "" }, spec }, i) => {
      const p = input.pods[i] as PassCase["pods"][number];
      const memory = { workingSetBytes: p.memoryWorkingSetBytes };
      const rootfs = { usedBytes: p.rootfsUsedBytes, inodesUsed: p.rootfsInodesUsed };
      const logs = { usedBytes: p.logsUsedBytes };
      return {
        podRef: { name, uid },
        containers: [{ name: spec.containers[0]?.name ?? "", memory, rootfs, logs }],
        memory,
        process_stats: { process_count: p.processCount },
      };
    }),
  };
  return {
    config,
    thresholds: configured.value,
    stats,
    statsAfterReclaim: stats,
    pods,
    before: undefined,
    now: epochMs(0),
  };
}

const eviction = suite({
  read: readPass,
  decide: synchronise,
  show: ({ pressure, evicted: [first], reclaim }) => ({
    conditions: pressure.conditions.map((c) => c.type),
    evicted:
      first === undefined
        ? null
        : {
            gracePeriodSeconds: first.gracePeriodSeconds,
            message: first.message,
            pod: `${first.pod.namespace}/${first.pod.name}`,
            reason: first.reason,
          },
    nodeReclaim: reclaim === null || reclaim.nodeLevel.length === 0 ? null : reclaim.nodeLevel,
  }),
});

interface PassesInput extends Pick<PassCase, "evictionHard" | "evictionMinimumReclaim"> {
  readonly evictionSoft: Readonly<Record<string, string>>;
  readonly evictionSoftGracePeriod: Readonly<Record<string, string>>;
  readonly enforceNodeAllocatable: readonly string[];
  readonly transitionS: number;
  readonly maxPodGraceS: number;
  readonly layout: FileSystems;
  readonly pods: readonly unknown[];
  readonly passes: readonly {
    readonly atS: number;
    readonly stats: { readonly node: object };
    readonly after: { readonly node: object };
  }[];
}

interface PassesRead extends Pick<PassInput, "config" | "thresholds"> {
  readonly inputs: readonly Pick<PassInput, "stats" | "statsAfterReclaim" | "pods" | "now">[];
}
const checked = <T>(decoded: Result<T, readonly InputIssue[]>): T => {
  if (!decoded.ok) throw new Error(decoded.error.map((i) => `${i.path}: ${i.message}`).join("; "));
  return decoded.value;
};

/**
 * The requests as they would be posted: a snapshot for each pass, and for the request after the node-level reclaim the
 * new stats.
 */
function readPasses(
  { transitionS, maxPodGraceS, layout, pods, passes, ...settings }: PassesInput,
  profile: Profile,
): PassesRead {
  const kubeletConfiguration = {
    ...settings,
    evictionPressureTransitionPeriod: `${transitionS}s`,
    evictionMaxPodGracePeriod: maxPodGraceS,
  };
  const onDisks = (summary: { readonly node: object }) => ({
    ...summary,
    node: { ...summary.node, fileSystems: layout },
  });
  const config = effectiveConfiguration(
    profile,
    checked(decodeSnapshot({ kubeletConfiguration })).kubeletConfiguration,
  );
  const thresholds = evictionThresholds(config);
  if (!thresholds.ok) throw new Error(thresholds.error.message);
  const inputs = passes.map(({ atS, stats, after }) => {
    const snapshot = checked(decodeSnapshot({ pods, stats: onDisks(stats) }));
    const { statsAfterReclaim } = checked(decodeEvictionAsk({ statsAfterReclaim: onDisks(after) }));
    return { stats: snapshot.stats ?? {}, statsAfterReclaim, pods: snapshot.pods ?? [], now: epochMs(atS * 1000) };
  });
  return { config, thresholds: thresholds.value, inputs };
}

const passes = suite({
  read: readPasses,
  decide: ({ config, thresholds, inputs }) => {
    let before: EvictionFacts | undefined;
    return inputs.map((input) => {
      const pass = synchronise({ config, thresholds, ...input, before });
      before = remembered(pass, samplesWith(before, pass.seen, input.now), input.now);
      return pass;
    });
  },
  show: (list) => ({
    passes: list.map(({ pressure, reclaim, evicted }) => ({
      calls: reclaim?.nodeLevel ?? [],
      conditions: pressure.conditions.map((c) => c.type),
      events: reclaim === null ? [] : [reclaim.event.message],
      evicted: evicted.map(({ pod, message, reason, gracePeriodSeconds }) => ({
        Pod: `${pod.namespace}/${pod.name}`,
        Msg: message,
        Reason: reason,
        Grace: gracePeriodSeconds,
      })),
    })),
  }),
  // The kubelet iterates over evictionHard as a Go map, in an order that starts anywhere; memory comes first in every
  // order.
  alike: (read) => {
    const isDisk = (t: Threshold): boolean => isHard(t) && SIGNALS[t.signal].resource !== "memory";
    const disks = read.thresholds.filter(isDisk);
    const others = read.thresholds.filter((t) => !isDisk(t));
    return disks.map((_, i) => ({ ...read, thresholds: [...disks.slice(i), ...disks.slice(0, i), ...others] }));
  },
});

export const EVICTION_SUITES: Readonly<Record<string, Suite>> = {
  "eviction-thresholds": thresholds,
  eviction,
  "x-evict-passes": passes,
};
