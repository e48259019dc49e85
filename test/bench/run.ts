import { cpus } from "node:os";
import type { DecisionFigure } from "./decisions.ts";

const row = (...cells: readonly (string | number)[]): void =>
  console.log(cells.map((c, i) => (i === 0 ? String(c).padEnd(24) : String(c).padStart(16))).join(""));
const nanos = (n: number): string => `${Math.round(n).toLocaleString("en")} ns`;
const percent = (part: number): string => `${(part * 100).toFixed(1)} %`;
const megabytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

function table(title: string, figures: readonly DecisionFigure[], beside = "JSON.parse"): void {
  console.log(`\n${title}`);
  row("", "decide", beside, "ratio");
  for (const f of figures) row(f.name, nanos(f.decideNanos), nanos(f.parseNanos), f.ratio.toFixed(2));
}

// each part is loaded only when it is measured: loading all of them takes seconds of CPU time
async function decisions(): Promise<void> {
  const { benchProfiles, benchRealNode, benchSuites } = await import("./decisions.ts");
  table("a vector case: deciding the checked input", benchSuites());
  table("the captured node (11 pods)", benchRealNode());
  table("the same node as each version's kubelet decides", benchProfiles(), "as 1.36");
}

async function managers(): Promise<void> {
  const { benchManagers } = await import("./managers.ts");
  console.log("\nthe managers on large machines, beside what an answer may take");
  console.log("".padEnd(64) + ["median", "aim", "ratio"].map((c) => c.padStart(16)).join(""));
  for (const { name, nanos: median, aimNanos } of benchManagers()) {
    const aim = aimNanos === null ? ["", ""] : [nanos(aimNanos), (median / aimNanos).toFixed(2)];
    console.log(name.padEnd(64) + [nanos(median), ...aim].map((c) => c.padStart(16)).join(""));
  }
}

async function pods(): Promise<void> {
  const { benchPods } = await import("./pods.ts");
  console.log("\npods on a simulated node: CPU time of one turn of the daemon, beside what it may take");
  console.log("".padEnd(64) + ["median", "aim", "ratio"].map((c) => c.padStart(16)).join(""));
  for (const { name, cpuMs, aimMs } of await benchPods()) {
    const cells = [`${cpuMs.toFixed(1)} ms`, `${aimMs} ms`, (cpuMs / aimMs).toFixed(2)];
    console.log(name.padEnd(64) + cells.map((c) => c.padStart(16)).join(""));
  }
}

async function podsDaemon(): Promise<void> {
  const { benchPodsDaemon } = await import("./pods-daemon.ts");
  console.log(
    "\nthe real daemon with pods on a real containerd: its memory, beside what it may take, and its CPU time of a core",
  );
  console.log("".padEnd(64) + ["resident", "aim", "own", "peak", "all threads"].map((c) => c.padStart(16)).join(""));
  for (const { name, residentMB, aimMB, ownMB, peakMB, share } of await benchPodsDaemon()) {
    const sizes = [residentMB, aimMB, ownMB, peakMB].map((size) => `${size.toFixed(1)} MB`);
    console.log(name.padEnd(64) + [...sizes, `${(share * 100).toFixed(1)} %`].map((c) => c.padStart(16)).join(""));
  }
}

async function devicePlugins(): Promise<void> {
  const { benchDevicePlugins } = await import("./device-plugins.ts");
  console.log("\ndevice plugins: CPU time of the event loop as a part of one core, beside what it may take");
  const DEVICE_COLUMNS = ["loop", "aim", "all threads", "flips/s", "lists/s", "RSS grew", "in use grew"];
  console.log("".padEnd(76) + DEVICE_COLUMNS.map((c) => c.padStart(13)).join(""));
  for (const f of await benchDevicePlugins()) {
    const shares = [f.loopShare, f.aimShare, f.processShare].map(percent);
    const rates = [f.flipsPerSecond, f.listsPerSecond].map((n) => n.toFixed(0));
    const cells = [...shares, ...rates, megabytes(f.rssGrowthBytes), megabytes(f.heldGrowthBytes)];
    console.log(f.name.padEnd(76) + cells.map((c) => c.padStart(13)).join(""));
  }
}

async function probes(): Promise<void> {
  const { benchProbes } = await import("./probes.ts");
  console.log(
    "\nprobes: how late workers have their turn, and the daemon's CPU time as a part of one core, beside what they may",
  );
  const PROBE_TITLES = ["late p50", "p99", "max", "aim", "idle process", "share", "aim", "RSS", "at the end"];
  console.log("".padEnd(48) + PROBE_TITLES.map((c) => c.padStart(13)).join(""));
  for (const figure of await benchProbes()) {
    const { lateMs, aimLateMs, machineLateMs, share, aimShare, rssBytes, attemptsPerSecond, failures } = figure;
    const late = [lateMs.p50, lateMs.p99, lateMs.max, aimLateMs, machineLateMs].map((ms) => `${Math.round(ms)} ms`);
    const cells = [...late, percent(share), percent(aimShare), ...rssBytes.map(megabytes)];
    console.log(figure.name.padEnd(48) + cells.map((c) => c.padStart(13)).join(""));
    console.log(
      `  ${attemptsPerSecond.toFixed(0)} attempts/s, ${failures} failed, in use ${figure.heldBytes.map(megabytes).join(" -> ")}`,
    );
  }
}

async function history(): Promise<void> {
  const { benchHistory } = await import("./history.ts");
  console.log("\nrows into the history");
  for (const [name, value] of Object.entries(await benchHistory()))
    row(name, typeof value === "number" ? Math.round(value).toLocaleString("en") : String(value));
}

async function replay(): Promise<void> {
  const { benchReplay } = await import("./replay.ts");
  console.log("\nreplaying the history of the captured node, beside deciding alone and posting; CPU time a decision");
  for (const [name, value] of Object.entries(await benchReplay()))
    row(name, value.toLocaleString("en", { maximumFractionDigits: 2 }));
}

async function pages(): Promise<void> {
  const { benchPages } = await import("./pages.ts");
  console.log(
    "\npages over 500 nodes and a million decisions: from the request to the last byte, beside what they may",
  );
  console.log(
    "".padEnd(48) + ["median", "worst", "aim", "on the wire", "aim", "first paint"].map((c) => c.padStart(13)).join(""),
  );
  for (const { path, median, worst, aimMs, wireBytes, aimBytes, paintMs } of await benchPages()) {
    const times = [median, worst, aimMs].map((ms) => `${ms.toFixed(0)} ms`);
    const sizes = [wireBytes, aimBytes].map((bytes) => `${(bytes / 1024).toFixed(1)} KiB`);
    const paint = paintMs === null ? "no browser" : `${paintMs.toFixed(0)} ms`;
    console.log(path.padEnd(48) + [...times, ...sizes, paint].map((c) => c.padStart(13)).join(""));
  }
}

async function api(): Promise<void> {
  const { benchApi } = await import("./api.ts");
  console.log("\nposts of whole snapshots to /v1/decisions/cgroups, beside a server that only parses the same bodies");
  const titles = ["body", "posts/s", "of parsing", "mean", "of parsing"];
  console.log("".padEnd(32) + titles.map((c) => c.padStart(13)).join(""));
  for (const { name, bodyBytes, postsPerSecond, ratio, meanMs, meanRatio } of await benchApi()) {
    const many = [`${(bodyBytes / 1000).toFixed(0)} kB`, postsPerSecond.toFixed(0), percent(ratio)];
    const cells = [...many, `${meanMs.toFixed(2)} ms`, meanRatio.toFixed(1)];
    console.log(name.padEnd(32) + cells.map((c) => c.padStart(13)).join(""));
  }
}

async function turns(): Promise<void> {
  const { benchTurns } = await import("./turns.ts");
  console.log("\nturns of a node, beside posts of its whole snapshot and beside a server that only parses those");
  console.log("".padEnd(56) + ["CPU time", "of the post", "of parsing"].map((c) => c.padStart(16)).join(""));
  for (const { name, cpuMs, ofPost, ofBare } of await benchTurns())
    console.log(
      name.padEnd(56) +
        [`${cpuMs.toFixed(2)} ms`, percent(ofPost), ofBare.toFixed(1)].map((c) => c.padStart(16)).join(""),
    );
}

async function memory(): Promise<void> {
  const { benchMemory } = await import("./memory.ts");
  console.log(
    "\nthe installed API's memory, beside what it may take: posts of 463 KB (110 pods) that change each time",
  );
  console.log("".padEnd(64) + ["resident", "aim", "own"].map((c) => c.padStart(16)).join(""));
  for (const { name, residentMB, aimMB, ownMB } of await benchMemory()) {
    const sizes = [residentMB, aimMB, ownMB].map((size) => `${size.toFixed(1)} MB`);
    console.log(name.padEnd(64) + sizes.map((c) => c.padStart(16)).join(""));
  }
}

async function soak(): Promise<void> {
  const { benchSoak } = await import("./memory.ts");
  console.log("\nthe installed API under that load, on and on");
  row("", "resident", "at most", "posts/s");
  const { isBounded } = await benchSoak(sizes?.[0] ?? 600, ({ seconds, residentMB, peakMB, requestsPerSecond }) =>
    row(`after ${seconds} s`, `${residentMB.toFixed(1)} MB`, `${peakMB.toFixed(1)} MB`, requestsPerSecond),
  );
  console.log(isBounded ? "bounded: the second half is no higher than the first" : "NOT bounded: it grows");
  if (!isBounded) process.exitCode = 1;
}

const tellProgress = (progress: string): void =>
  void (process.stderr.isTTY && process.stderr.write(`\r\x1b[K${progress}`));

const FLEETS = [1000, 2000, 5000, 10_000];
async function fleet(): Promise<void> {
  const { benchFleet } = await import("./fleet.ts");
  console.log("\na fleet over loopback: a turn of each node each 10 s with new stats, a pod that changes each minute");
  const titles = [
    "joins/s",
    "turns/s",
    "CPU",
    "p50",
    "p99",
    "RSS",
    "history a day",
    "fleet page",
    "quiet rows",
    "bytes",
  ];
  console.log("nodes".padEnd(8) + titles.map((c) => c.padStart(14)).join(""));
  for (const nodes of sizes ?? FLEETS) {
    const f = await benchFleet({ nodes, seconds: 30, everyMs: 10_000, tell: tellProgress });
    tellProgress("");
    const rates = [f.joinsPerSecond, f.turnsPerSecond].map((n) => n.toFixed(0));
    const ms = [f.p50Ms, f.p99Ms].map((n) => `${n.toFixed(1)} ms`);
    const sizesOf = [f.rssBytes, f.bytesADay].map(megabytes);
    const quiet = [f.quietRows, f.quietBytes].map((part) => `${(part * 100).toFixed(2)} %`);
    const cells = [...rates, percent(f.share), ...ms, ...sizesOf, `${f.pageMs.toFixed(0)} ms`, ...quiet];
    console.log(String(nodes).padEnd(8) + cells.map((c) => c.padStart(14)).join(""));
  }
}

const RATES = [50, 100, 150, 200, 250, 300, 400];
async function scale(): Promise<void> {
  const { benchScale } = await import("./scale.ts");
  console.log(
    "\nthe same fleet over Postgres, behind nginx, with so many API processes: milliseconds of CPU that a turn takes",
  );
  const titles = ["offered/s", "answered/s", "p50", "p99", "API", "Postgres", "nginx", "nodes", "RSS of APIs"];
  console.log("processes".padEnd(10) + titles.map((c) => c.padStart(12)).join(""));
  const history = await benchScale({
    processes: sizes ?? [1, 2, 4],
    rates: RATES,
    seconds: 20,
    tell: tellProgress,
    found: ({ processes, offered, answered, p50Ms, p99Ms, cpu, rssBytes }) => {
      tellProgress("");
      const times = answered === null ? [] : [p50Ms, p99Ms, cpu.api, cpu.postgres, cpu.nginx, cpu.nodes];
      const cells = [String(offered), answered?.toFixed(0) ?? "too late", ...times.map((ms) => `${ms.toFixed(2)} ms`)];
      const padded = [...cells, ...(answered === null ? [] : [megabytes(rssBytes)])];
      console.log(String(processes).padEnd(10) + padded.map((c) => c.padStart(12)).join(""));
    },
  });
  const a = (bytes: number): string => `${(bytes / history.turns / 1000).toFixed(2)} kB`;
  console.log(
    `a turn writes ${(history.rows / history.turns).toFixed(2)} rows, ${a(history.bytes)} of tables and indexes, ${a(history.walBytes)} of log`,
  );
}

async function worker(): Promise<void> {
  const { benchWorker } = await import("./worker.ts");
  console.log("\na Worker with an object for each node, in workerd: CPU time a request");
  for (const { name, cpuMs } of await benchWorker())
    console.log(name.padEnd(64) + `${cpuMs.toFixed(2)} ms`.padStart(16));
}

const parts = {
  decisions,
  managers,
  pods,
  podsDaemon,
  devicePlugins,
  probes,
  history,
  replay,
  pages,
  api,
  turns,
  fleet,
  scale,
  worker,
  memory,
  soak,
};
const names = Object.keys(parts).join(", ");
const given = process.argv.slice(2);
const asked = given.filter((arg) => !/^\d+$/.test(arg));
/** The numbers on the command line: nodes of the fleets, processes of the scale, or seconds of the soak. */
const sizes = given.length === asked.length ? null : given.filter((arg) => !asked.includes(arg)).map(Number);
if (asked.some((arg) => arg === "--help" || arg === "-h")) {
  console.log(
    `Usage: npm run bench [-- PART... [NUMBER...]]\n\nMeasures all of these parts but soak and scale, or those that are named: ${names}\nNUMBER: how many nodes the fleets have, or processes the scale; of soak, its seconds (600)`,
  );
  process.exit(0);
}
const unknown = asked.filter((name) => !Object.hasOwn(parts, name));
if (unknown.length > 0) {
  console.error(`no part ${unknown.join(", ")}; there are ${names}`);
  process.exit(2);
}
console.log(`${cpus()[0]?.model ?? "unknown CPU"}, ${cpus().length} CPUs, Node ${process.versions.node}; medians`);
for (const [name, part] of Object.entries(parts)) {
  if (asked.length > 0 ? !asked.includes(name) : name === "soak" || name === "scale") continue;
  try {
    await part();
  } catch (error) {
    // a loaded machine may fail one part; the remaining parts are measured all the same
    console.log(`not measured: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}
