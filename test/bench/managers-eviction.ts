import { evictionThresholds } from "../../api/decide/eviction/configuration.ts";
import { measureOf, rank } from "../../api/decide/eviction/rank.ts";
import { type PassInput, synchronise } from "../../api/decide/eviction/synchronise.ts";
import { statsByUid } from "../../api/decide/eviction/usage.ts";
import { decideEviction } from "../../api/decide/kinds/eviction.ts";
import type { EvictionSignal } from "../../api/model/eviction.ts";
import type { Snapshot } from "../../api/model/snapshot.ts";
import { epochMs } from "../../api/model/units.ts";
import { effectiveSnapshot } from "../../api/profiles/effective.ts";
import { container } from "../kit/containers.ts";
import { pod } from "../kit/pods.ts";
import { decoded } from "../kit/snapshots.ts";

interface BenchCase {
  readonly name: string;
  readonly run: () => void;
}
const PODS = 500;
const GI = 2 ** 30;

/** A node with memory and disk pressure whose pods all differ and have five priorities. */
function fullNode(): Snapshot {
  const number = (i: number, below: number): number => (i * 2_654_435_761) % below;
  const numbers = Array.from({ length: PODS }, (_, i) => i);
  const memory = { availableBytes: GI / 2, workingSetBytes: 64 * GI };
  const fs = { availableBytes: GI, capacityBytes: 100 * GI, inodesFree: 10, inodes: 1000 };
  return decoded({
    observedAt: "2026-01-31T12:00:00Z",
    kubeletConfiguration: {
      evictionHard: { "memory.available": "1Gi", "nodefs.available": "10%", "pid.available": "5%" },
    },
    pods: numbers.map((i) =>
      pod(`p${i}`, {
        spec: {
          priority: number(i, 5) * 1000,
          containers: ["a", "b"].map((name) => container(name, { cpu: "10m", memory: `${number(i, 900)}Mi` })),
          volumes: [{ name: "d", emptyDir: {} }],
        },
      }),
    ),
    stats: {
      node: { memory, fs, runtime: { imageFs: fs, containerFs: fs }, rlimit: { maxpid: 32_768, curproc: 3000 } },
      pods: numbers.map((i) => ({
        podRef: { name: `p${i}`, uid: `uid-p${i}` },
        containers: ["a", "b"].map((name) => ({
          name,
          rootfs: { usedBytes: number(i, GI) },
          logs: { usedBytes: number(i, 4096) },
        })),
        memory: { workingSetBytes: number(i, 2 * GI) },
        volume: [{ name: "d", usedBytes: number(i, GI) }],
        process_stats: { process_count: number(i, 50) },
      })),
    },
  });
}

const snapshot = fullNode();
const pods = snapshot.pods ?? [];
function rankCase(signal: EvictionSignal): BenchCase {
  const measure = measureOf(signal, "one");
  return {
    name: `rank ${PODS} pods, ${signal}`,
    run: () => {
      if (rank(pods, statsByUid(snapshot.stats), measure).length !== PODS) throw new Error("pods are missing");
    },
  };
}
function passInput(): PassInput {
  const config = effectiveSnapshot(snapshot).kubeletConfiguration;
  const thresholds = evictionThresholds(config);
  if (!thresholds.ok) throw new Error(thresholds.error.message);
  const stats = snapshot.stats ?? {};
  return {
    config,
    thresholds: thresholds.value,
    stats,
    statsAfterReclaim: null,
    pods,
    before: undefined,
    now: epochMs(0),
  };
}
const input = passInput();
const ask = { pod: null, statsAfterReclaim: null, images: null };

/**
 * The input is decoded before the measurement. The last case includes every ranking, the forecast and the
 * counterfactuals.
 */
export const EVICTION_CASES: readonly BenchCase[] = [
  rankCase("memory.available"),
  rankCase("nodefs.available"),
  rankCase("pid.available"),
  {
    name: `one pass, ${PODS} pods`,
    run: () => {
      if (synchronise(input).evicted.length !== 1) throw new Error("nobody goes");
    },
  },
  {
    name: "the whole answer",
    run: () => {
      if (!decideEviction({ snapshot: effectiveSnapshot(snapshot), facts: {}, ask, explain: "reasons" }).ok)
        throw new Error("refused");
    },
  },
];
