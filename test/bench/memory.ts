import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { install, pack } from "../cli/packed.ts";
import { changing } from "./api.ts";
import { type ApiProcess, startApiProcess } from "./api-process.ts";
import { load } from "./load.ts";
import { node110 } from "./node110.ts";
import { usedBy } from "./used.ts";

/**
 * Resident memory of the installed package's API, in megabytes (10^6 bytes), as the kernel counts it, including pages
 * of Node's own executable.
 */
export interface MemoryFigure {
  readonly name: string;
  readonly residentMB: number;
  /** The part that is not backed by a file; every other process of the same Node shares the rest. */
  readonly ownMB: number;
  readonly aimMB: number;
}
export interface SoakFigure {
  readonly seconds: number;
  readonly requestsPerSecond: number;
  /** Resident memory at the end of the interval, and its maximum during the interval. */
  readonly residentMB: number;
  readonly peakMB: number;
}

const CONNECTIONS = 16;
/** By then, threads that worked during the start are idle and have collected garbage. */
const IDLE_MS = 50_000;
const LOAD_MS = 30_000;
const AFTER_MS = 60_000;
const SAMPLE_MS = 50;
const INTERVAL_MS = 30_000;
/** The fraction by which the peak of a soak's second half may exceed that of its first half. */
const NOISE = 0.05;

/**
 * Runs `use` on an API of the package that `npm run build` and `npm pack` make, in its own process with a new history.
 */
async function withInstalled<T>(use: (pid: number, port: number) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "nodewise-bench-"));
  let api: ApiProcess | undefined;
  try {
    const launcher = install(pack(join(folder, "packed")), join(folder, "installed"));
    api = await startApiProcess(launcher, ["--data-dir", join(folder, "data")]);
    return await use(api.pid, api.port);
  } finally {
    await api?.stop();
    rmSync(folder, { recursive: true });
  }
}

/**
 * Posts bodies that change each time on all connections for `ms`, and returns the maximum of resident memory meanwhile.
 */
async function loaded(pid: number, port: number, ms: number): Promise<SoakFigure & { readonly ownMB: number }> {
  let peak = usedBy(pid);
  const look = (): void => {
    const now = usedBy(pid);
    if (now.rssBytes > peak.rssBytes) peak = now;
  };
  const looking = setInterval(look, SAMPLE_MS);
  const { requestsPerSecond } = await load(port, changing(node110()), CONNECTIONS, ms).finally(() =>
    clearInterval(looking),
  );
  look();
  const sizes = { residentMB: usedBy(pid).rssBytes / 1e6, peakMB: peak.rssBytes / 1e6, ownMB: peak.ownBytes / 1e6 };
  return { seconds: ms / 1000, requestsPerSecond, ...sizes };
}

/** Measures the API idle, the maximum under load, and the API a minute later. Takes two and a half minutes. */
export async function benchMemory(): Promise<readonly MemoryFigure[]> {
  return withInstalled(async (pid, port) => {
    const resting = (name: string, aimMB: number): MemoryFigure => {
      const { rssBytes, ownBytes } = usedBy(pid);
      return { name, residentMB: rssBytes / 1e6, ownMB: ownBytes / 1e6, aimMB };
    };
    await sleep(IDLE_MS);
    const figures = [resting(`idle for ${IDLE_MS / 1000} s`, 120)];
    const { peakMB, ownMB, requestsPerSecond } = await loaded(pid, port, LOAD_MS);
    const name = `at most, ${CONNECTIONS} connections (${requestsPerSecond} posts/s)`;
    figures.push({ name, residentMB: peakMB, ownMB, aimMB: 250 });
    await sleep(AFTER_MS);
    figures.push(resting(`${AFTER_MS / 1000} s after the load`, 160));
    return figures;
  });
}

/**
 * Repeats the same load for `seconds`. Calls `onFigure` at the end of each half minute (in a short soak: of each
 * quarter).
 */
export async function benchSoak(
  seconds: number,
  onFigure: (figure: SoakFigure) => void,
): Promise<{ readonly isBounded: boolean }> {
  const everyMs = Math.min(INTERVAL_MS, seconds * 250);
  return withInstalled(async (pid, port) => {
    const peaks: number[] = [];
    for (let ms = everyMs; ms <= seconds * 1000; ms += everyMs) {
      const figure = await loaded(pid, port, everyMs);
      peaks.push(figure.peakMB);
      onFigure({ ...figure, seconds: ms / 1000 });
    }
    const half = Math.ceil(peaks.length / 2);
    const [first, second] = [Math.max(...peaks.slice(0, half)), Math.max(...peaks.slice(half))];
    return { isBounded: second <= first * (1 + NOISE) };
  });
}
