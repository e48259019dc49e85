import { manyPods, PodsNode } from "./pods-node.ts";

export interface PodsFigure {
  readonly name: string;
  /** Median of the CPU time of one turn, all threads, in milliseconds. */
  readonly cpuMs: number;
  readonly aimMs: number;
}
const PODS = 110;
const WARM_UP = 40;
const RUNS = 41;
/** Shorter than every period of the daemon. */
const SOON_MS = 10;
/** Long enough that the daemon checks again what has changed. */
const LATER_MS = 3_000;

async function medianCpu(turn: () => Promise<void>, prepare: () => Promise<void>): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < WARM_UP + RUNS; i++) {
    await prepare();
    const before = process.cpuUsage();
    await turn();
    const { user, system } = process.cpuUsage(before);
    if (i >= WARM_UP) times.push((user + system) / 1000);
  }
  return times.sort((a, b) => a - b)[RUNS >> 1] as number;
}

/** Measures a node of 110 pods with 220 containers. Throws if a turn does not do what the case's name says. */
export async function benchPods(): Promise<readonly PodsFigure[]> {
  const figures: PodsFigure[] = [];
  for (const version of [1, 2] as const) {
    const node = new PodsNode(version);
    try {
      figures.push(...(await benchOn(node, `cgroup v${version}`)));
    } finally {
      node.close();
    }
  }
  return figures;
}

async function benchOn(node: PodsNode, on: string): Promise<readonly PodsFigure[]> {
  node.wants(manyPods(PODS));
  for (let i = 0; i < 10; i++) await node.turn(LATER_MS);
  const passesOf = async (turn: () => Promise<void>): Promise<number> => {
    const before = node.passes.length;
    await turn();
    return node.passes.length - before;
  };
  const expectPasses = (made: number, wanted: number): void => {
    const cgroups = node.passes.at(-1)?.cgroups?.cgroups.length ?? 0;
    if (made !== wanted || cgroups < 3 * PODS || node.problems.length > 0)
      throw new Error(`${made} passes over ${cgroups} cgroups: ${node.problems.slice(0, 3).join("; ")}`);
  };
  const full = await medianCpu(
    async () => expectPasses(await passesOf(() => node.turn(LATER_MS)), 1),
    () => node.restart("pod-7"),
  );
  await node.turn(LATER_MS);
  const idle = await medianCpu(
    async () => expectPasses(await passesOf(() => node.turn(SOON_MS)), 0),
    async () => {},
  );
  return [
    { name: `${PODS} pods, ${on}: a pass after a change`, cpuMs: full, aimMs: 250 },
    { name: `${PODS} pods, ${on}: an idle turn`, cpuMs: idle, aimMs: 50 },
  ];
}
