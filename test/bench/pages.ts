import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startApi } from "../../api/server.ts";
import { fillHistory, NODE } from "./pages-history.ts";
import { firstPaints } from "./paint.ts";

export interface PageFigure {
  readonly path: string;
  /** Milliseconds from the request to the last byte of the response, over loopback. */
  readonly median: number;
  readonly worst: number;
  readonly aimMs: number;
  /** The size of the page on the wire, and its decompressed size. */
  readonly wireBytes: number;
  readonly aimBytes: number;
  /** Time until a browser paints something; null: this machine has no browser. */
  readonly paintMs: number | null;
}

const AIM_MS = 100;
const AIM_BYTES = 150 * 1024;
const TIMES = 15;
/** `BENCH_DECISIONS=100000` makes the history smaller. */
const DECISIONS = Number(process.env["BENCH_DECISIONS"] ?? 1_000_000);

/** Requests every page over a large history as a browser does. Throws if a response is not a page. */
export async function benchPages(): Promise<readonly PageFigure[]> {
  const dataDir = mkdtempSync(join(tmpdir(), "nodewise-pages-"));
  try {
    const id = await fillHistory(dataDir, DECISIONS);
    const api = await startApi({
      dataDir,
      port: 0,
      warm: true,
      log: { info() {}, warn() {}, error() {}, debug() {} } as never,
    });
    if (!api.ok) throw new Error(api.error.message);
    try {
      const paths = [
        "/",
        "/?show=pressure&sort=refused",
        "/?hours=168&page=3",
        `/nodes/${NODE}`,
        `/nodes/${NODE}/decisions?kind=eviction`,
        `/decisions/${id}`,
        "/what-if",
        `/what-if?node=${NODE}`,
        "/replay",
        "/lint",
        `/lint?node=${NODE}`,
        "/docs",
        "/nodes/node-9999",
      ];
      const figures: Omit<PageFigure, "paintMs">[] = [];
      for (const path of paths) figures.push(await figureOf(api.value.url, path));
      const paints = await firstPaints(paths.map((path) => api.value.url + path));
      return figures.map((figure, i) => ({ ...figure, paintMs: paints?.[i] ?? null }));
    } finally {
      await api.value.close();
    }
  } finally {
    rmSync(dataDir, { recursive: true });
  }
}

async function figureOf(url: string, path: string): Promise<Omit<PageFigure, "paintMs">> {
  const times: number[] = [];
  let wireBytes = 0;
  for (let i = 0; i < TIMES; i++) {
    const started = performance.now();
    const response = await fetch(url + path, { headers: { accept: "text/html", "accept-encoding": "gzip" } });
    const { length } = await response.text();
    times.push(performance.now() - started);
    if (!response.headers.get("content-type")?.startsWith("text/html") || length < 500)
      throw new Error(`${path} is no page`);
    wireBytes = Number(response.headers.get("content-length") ?? 0);
  }
  times.sort((a, b) => a - b);
  const median = times[Math.floor(TIMES / 2)] as number;
  return { path, median, worst: times.at(-1) as number, aimMs: AIM_MS, wireBytes, aimBytes: AIM_BYTES };
}
