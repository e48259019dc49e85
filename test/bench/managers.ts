import { IMAGE_GC_CASES } from "./gc.ts";
import { CONTAINER_GC_CASES } from "./gc-containers.ts";
import { ADMISSION_CASES } from "./managers-admission.ts";
import { CPU_CASES } from "./managers-cpus.ts";
import { DEVICES_CASE } from "./managers-devices.ts";
import { EVICTION_CASES } from "./managers-eviction.ts";
import { MEMORY_CASES } from "./managers-memory.ts";
import { PROBES_CASES } from "./managers-probes.ts";
import { TOPOLOGY_CASES } from "./managers-topology.ts";

export interface ManagerFigure {
  readonly name: string;
  /** Median of all runs. */
  readonly nanos: number;
  /** The most time that one run should take; null: no limit is set. */
  readonly aimNanos: number | null;
}
interface BenchCase {
  readonly name: string;
  readonly run: () => unknown;
}
const MS = 1e6;
/** Cases without a time limit: restarts, and machines larger than the kubelet accepts by default. */
const WITHOUT_AIM = /read and checked|16 nodes|whole answer/;
const GROUPS: readonly { readonly aimNanos: number; readonly cases: readonly BenchCase[] }[] = [
  { aimNanos: MS, cases: [...CPU_CASES, ...MEMORY_CASES, ...ADMISSION_CASES, ...EVICTION_CASES, ...PROBES_CASES] },
  { aimNanos: 10 * MS, cases: [...TOPOLOGY_CASES, DEVICES_CASE] },
  { aimNanos: 20 * MS, cases: [...IMAGE_GC_CASES, ...CONTAINER_GC_CASES] },
];
/** V8 needs time to compile: this many runs before the measurement, or as many as fit into one second. */
const WARM_UP = 500;
const WARM_UP_NANOS = 1e9;
const RUNS = 101;

/** Measures the resource managers on large machines, with the time that each answer may take. */
export function benchManagers(): readonly ManagerFigure[] {
  return GROUPS.flatMap(({ aimNanos, cases }) =>
    cases.map(({ name, run }) => {
      const begun = process.hrtime.bigint();
      for (let i = 0; i < WARM_UP && Number(process.hrtime.bigint() - begun) < WARM_UP_NANOS; i++) run();
      const times = Array.from({ length: RUNS }, () => {
        const start = process.hrtime.bigint();
        run();
        return Number(process.hrtime.bigint() - start);
      });
      const nanos = times.sort((a, b) => a - b)[RUNS >> 1] as number;
      return { name, nanos, aimNanos: WITHOUT_AIM.test(name) ? null : aimNanos };
    }),
  );
}
