import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { NEWEST } from "../../api/profiles/index.ts";
import { captured, capturedText, realNode } from "../kit/real-node.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { manifest, NO_VERSION, run } from "./run.ts";

const scratch = scratchFolder();
const file = (name: string, value: unknown): string => {
  const path = join(scratch, name);
  writeFileSync(path, typeof value === "string" ? value : JSON.stringify(value));
  return path;
};

const FILES = ["--pods", realNode("pods.json"), "--stats", realNode("stats-summary.json")];
const CALM = [...FILES, "--config", realNode("configz.json")];
const TAKEN = Date.parse("2026-11-21T06:24:50Z");
const at = (seconds: number): string => new Date(TAKEN + seconds * 1000).toISOString();
const widest = (lines: readonly string[]): number => Math.max(...lines.map((line) => line.length));

/** The captured summary some seconds later, with less available memory or disk. */
function statsAfter(seconds: number, less: { readonly memory?: number; readonly fs?: number }): string {
  const stats = JSON.parse(capturedText("stats-summary.json"), (key, value) => (key === "time" ? at(seconds) : value));
  const { node } = stats;
  node.memory.availableBytes -= less.memory ?? 0;
  node.memory.workingSetBytes += less.memory ?? 0;
  for (const fs of [node.fs, node.runtime.imageFs, node.runtime.containerFs]) fs.availableBytes -= less.fs ?? 0;
  return JSON.stringify(stats);
}

describe.concurrent("decide eviction", () => {
  test("exits with 0 for a calm node, and shows each threshold's distance and who would be next", async () => {
    const ran = await run(["decide", "eviction", ...CALM]);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(ran.stdout.split("\n").slice(0, 24).join("\n")).toBe(`(no node given) · eviction · ${NEWEST.policyVersion}
assumed: observedAt 2026-11-21T06:24:50Z (the latest time in the stats); --observed-at takes another; ${NO_VERSION}
CALM  no condition holds, no pod is evicted
nodefs, imagefs and containerfs are one file system

SIGNAL                        AVAILABLE  THRESHOLD              DISTANCE  STATE        CAPACITY
memory.available               22.8 GiB      500Mi  hard        22.3 GiB  above        23.5 GiB  ▒██████████████████████·
memory.available               22.8 GiB      700Mi  soft 30s    22.1 GiB  above        23.5 GiB  ▒██████████████████████·
nodefs.available               63.3 GiB         5%  hard        50.7 GiB  above         252 GiB  ▒█████··················
nodefs.inodesFree            16,066,164         5%  hard      15,227,304  above      16,777,216  ▒██████████████████████·
imagefs.available              63.3 GiB         5%  hard        50.7 GiB  above         252 GiB  ▒█████··················
pid.available                    32,444         5%  hard          30,806  above          32,768  ▒██████████████████████·
allocatableMemory.available    22.5 GiB      500Mi  hard          22 GiB  above        22.5 GiB  ▒██████████████████████·
containerfs.available          63.3 GiB         5%  hard        50.7 GiB  unwatched     252 GiB  ▒█████··················
containerfs.inodesFree       16,066,164         5%  hard      15,227,304  unwatched  16,777,216  ▒██████████████████████·
▒ available, below the threshold   █ available above it   · in use
unwatched: not checked in a kubelet's first pass, which this is without --facts

   EVICTION ORDER FOR MEMORY  PRIORITY    USAGE  REQUEST  ABOVE REQUEST
1  default/besteffort                0  1.3 MiB      0 B        1.3 MiB
2  default/burst-nolim               0  608 KiB      0 B        608 KiB
3  default/inits                     0  888 KiB   48 MiB      -47.1 MiB
4  default/sidecar                   0  988 KiB   56 MiB        -55 MiB
5  default/podlevel                  0  1.1 MiB   64 MiB      -62.9 MiB`);
    expect(ran.stdout).toContain(
      "- with a request of 712.1 KiB for memory, default/besteffort would rank 2nd: default/burst-nolim would be evicted first\n",
    );
  });

  test("ranks for the resource that is short, or memory, and names the others in one line", async () => {
    const ranked = async (...args: readonly string[]): Promise<readonly string[]> => {
      const { stdout } = await run(["decide", "eviction", ...FILES, ...args]);
      return stdout.split("\n").filter((line) => /EVICTION ORDER FOR|not ranked here/.test(line));
    };
    const memory = expect.stringContaining("EVICTION ORDER FOR MEMORY");
    const idle = expect.stringMatching(
      /^not short, and not ranked here: ephemeral-storage \(\S+ would be evicted first\), inodes .*--explain full ranks all$/,
    );
    expect(await ranked()).toEqual([memory, idle]);
    const full = await ranked("--explain", "full");
    expect(full.length).toBeGreaterThan(2);
    expect(full.filter((line) => !line.includes("EVICTION ORDER FOR"))).toEqual([]);
    const short = file("short.yaml", "evictionHard: { memory.available: 23Gi }\n");
    expect(await ranked("--config", short)).toEqual([memory]);
    const disk = file(
      "disk.yaml",
      "evictionSoft: { nodefs.available: 64Gi }\nevictionSoftGracePeriod: { nodefs.available: 2m }\n",
    );
    expect((await ranked("--config", disk))[0]).toContain("EVICTION ORDER FOR EPHEMERAL-STORAGE");
  });

  test("exits with 1 when it evicts a pod, with the kubelet's message and reasons", async () => {
    const config = file(
      "low.yaml",
      "evictionHard: { memory.available: 23Gi }\nevictionSoft: { nodefs.available: 64Gi }\nevictionSoftGracePeriod: { nodefs.available: 2m }\n",
    );
    const ran = await run(["decide", "eviction", ...FILES, "--config", config, "--explain", "reasons"]);
    expect(ran).toMatchObject({ code: 1, stderr: "" });
    expect(ran.stdout).toContain(`
EVICTS  default/besteffort under MemoryPressure and DiskPressure
for allocatableMemory.available<23Gi (a kubelet may choose memory.available<23Gi): EvictionThresholdMet: Attempting to reclaim memory
`);
    expect(ran.stdout).toMatch(
      /^default\/besteffort +threshold +1 s +DisruptionTarget\n {2}The node was low on resource: memory\. Threshold quantity: 23Gi, available: 23624800Ki\. Container c .* \n {2}evicted: the first in the ranking that is not critical$/m,
    );
    expect(ran.stdout).toMatch(
      /^nodefs\.available +63\.3 GiB +64Gi +soft 2m +-714\.7 MiB +below +2m +252 GiB +▒+×·+\n/m,
    );
    expect(ran.stdout).toContain("\n  64Gi: 2m left of its grace period of 2m\n");
    expect(ran.stdout).not.toContain("tied with others");
    expect(ran.stdout).toMatch(/^MemoryPressure +now +2026-11-21T06:29:50Z\n/m);
    expect(ran.stdout).toMatch(/^10 +default\/critical .* critical, stays$/m);
  });

  test("prints node-level reclaim first, and takes from --ask whether it is enough", async () => {
    const disk = [...FILES, "--config", file("disk.yaml", "evictionHard: { nodefs.available: 64Gi }\n")];
    const unknown = await run(["decide", "eviction", ...disk]);
    expect(unknown).toMatchObject({ code: 1, stderr: "" });
    expect(unknown.stdout).toContain(
      " under DiskPressure, if the node-level reclaim is not enough\nfor nodefs.available<64Gi: ",
    );
    expect(unknown.stdout).toContain(
      "\ntied with others in the ranking: a kubelet may evict any of them, as their order is random\n",
    );
    expect(unknown.stdout).toContain("not known: ask.statsAfterReclaim (give --ask)\n");
    const after = JSON.parse(statsAfter(1, { fs: -(2 ** 33) }));
    const enough = await run(["decide", "eviction", ...disk, "--ask", file("ask.json", { statsAfterReclaim: after })]);
    expect(enough.code).toBe(1);
    expect(enough.stdout).toMatch(
      /^RECLAIMS {2}ephemeral-storage under DiskPressure; no pod is evicted\n.*\nbefore any pod is evicted: delete-unused-containers, delete-unused-images; enough: no pod is evicted\nmust be reached: nodefs\.available 64 GiB/m,
    );
    expect(enough.stdout).not.toContain("EVICTED");
  });

  test("evicts a pod above its own limit, whatever the node has left", async () => {
    const pods = captured("pods.json");
    const [pod] = pods.items.filter((p: { metadata: { name: string } }) => p.metadata.name === "burst-lim");
    pod.spec.containers[0].resources.limits["ephemeral-storage"] = "1";
    const args = ["--pods", file("pods.json", pods), ...FILES.slice(2)];
    const ran = await run(["decide", "eviction", ...args, "--explain", "full"]);
    expect(ran.code).toBe(1);
    expect(ran.stdout).toMatch(/^EVICTS {2}default\/burst-lim\n/m);
    expect(ran.stdout).toMatch(
      /^default\/burst-lim +pod-ephemeral-storage +1 s\n {2}Pod ephemeral local storage usage exceeds the total limit of containers 1\. \n {2}evicted: it takes more local storage than its containers' limits together, so it is evicted even if the node is not short \[/m,
    );
  });

  test("prints exact amounts in one notation with --explain full", async () => {
    const config = file("exact.yaml", "evictionHard: { memory.available: 23Gi, nodefs.available: 10% }\n");
    const { stdout } = await run(["decide", "eviction", ...FILES, "--config", config, "--explain", "full"]);
    const [, row = "", reason = ""] = /^(memory\.available .*)\n {2}(.*below_threshold.*)$/m.exec(stdout) ?? [];
    expect(row).toMatch(/^memory\.available +\d+ +24696061952 +hard +-\d+ /);
    expect(reason).toMatch(
      /^[\d.]+ GiB available is less than 23 GiB \[below_threshold available=\d+ quantity=24696061952\]$/,
    );
    expect(stdout).toMatch(/^nodefs\.available +\d+ +10% +hard /m);
  });

  test("with --pod also says what would change that pod's rank", async () => {
    const ran = await run(["decide", "eviction", ...CALM, "--pod", "default/guar-int"]);
    expect(ran.code).toBe(0);
    expect(ran.stdout).toMatch(/^8 {2}default\/guar-int .*\n5 more; by allocatableMemory\.available, /m);
    expect(ran.stdout).toMatch(/^- with a priority of \d+, default\/guar-int would rank \d+(st|nd|rd|th): /m);
  });
});

describe.concurrent("eviction from pass to pass", () => {
  test("takes the last answer or its `next`, and forecasts from them", async () => {
    let facts: readonly string[] = [];
    for (const [i, less] of [0, 3e8, 6e8].entries()) {
      const stats = ["--stats", file(`stats-${i}.json`, statsAfter(10 * i, { memory: less, fs: less / 4 }))];
      const ran = await run([
        "decide",
        "eviction",
        ...CALM.slice(0, 2),
        ...CALM.slice(4),
        ...stats,
        ...facts,
        "-o",
        "json",
      ]);
      expect(ran).toMatchObject({ code: 0, stderr: "" });
      const answer = JSON.parse(ran.stdout);
      expect(answer.assumed).toEqual({ observedAt: at(10 * i) });
      facts = ["--facts", file(`facts-${i}.json`, i === 0 ? answer : answer.next)];
    }
    const stats = ["--stats", file("stats-3.json", statsAfter(30, { memory: 9e8, fs: 225e6 }))];
    const args = ["decide", "eviction", ...CALM.slice(0, 2), ...CALM.slice(4), ...stats, ...facts];
    const ran = await run(args);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(ran.stdout).not.toContain("unwatched");
    expect(ran.stdout).toMatch(
      /^memory\.available<500Mi +-1\.7 GiB\/min +12m47s +12m47s +default\/besteffort under 1s, .* 4 obs\.$/m,
    );
    expect(ran.stdout).toMatch(/^memory\.available<700Mi +-1\.7 GiB\/min +12m40s +13m10s /m);
    expect(ran.stdout).toMatch(/^nodefs\.available<5% +-429\.2 MiB\/min +2h /m);
    expect(ran.stdout).toMatch(/^\d other thresholds not coming nearer$/m);
    const narrow = await run(args, { env: { COLUMNS: "60" } });
    expect(narrow.stdout).toMatch(
      /^memory\.available<500Mi +-1\.7 GiB\/min +12m47s +12m47s\n {2}EVICTED FIRST, GAINS default\/besteffort under 1s,\n.*\n {2}FROM 4 obs\.$/m,
    );
    // the narrow layout still has every threshold and every rank
    expect(narrow.stdout).toMatch(/^memory\.available +soft 30s .*above\n {2}AVAILABLE .* THRESHOLD 700Mi$/m);
    expect(narrow.stdout).toMatch(/^3 {2}default\/inits .*\n {2}REQUEST 48 MiB$/m);
  });

  test("evicts nobody on stats as old as the last pass's, and says that they are", async () => {
    const config = ["--config", file("pressed.yaml", "evictionHard: { memory.available: 23Gi }\n")];
    const first = await run(["decide", "eviction", ...FILES, ...config, "-o", "json"]);
    expect(JSON.parse(first.stdout).verdict).toBe("evicts");
    const facts = ["--facts", file("pressed.json", first.stdout), "--observed-at", at(10)];
    const ran = await run(["decide", "eviction", ...FILES, ...config, ...facts]);
    expect(ran).toMatchObject({ code: 1, stderr: "" });
    expect(ran.stdout).toContain("UNDER PRESSURE  MemoryPressure: no pod is evicted in this pass\n");
    expect(ran.stdout).toMatch(/^memory\.available .* below, old stats +0s /m);
  });

  test.each([120, 80, 60])("keeps within %d columns", async (columns) => {
    const config = ["--config", file("both.yaml", "evictionHard: { memory.available: 23Gi, nodefs.available: 5% }\n")];
    const { stdout } = await run(["decide", "eviction", ...FILES, ...config], { env: { COLUMNS: String(columns) } });
    const rows = stdout
      .split("\n")
      .filter((line) => /^( *\d+ {2}|[a-zM]+\.[a-zF]+\S* {2,}|SIGNAL|default\/)/.test(line));
    expect(rows.length).toBeGreaterThan(10);
    expect(widest(rows)).toBeLessThanOrEqual(columns);
    expect(stdout).toMatch(/^memory\.available .* -?233\.1 MiB +below/m);
  });
});

describe.concurrent("decide eviction with faulty input", () => {
  test.each([
    [
      "facts that are pods",
      ["--facts", realNode("pods.json")],
      /pods\.json: is an object of kind `List`, and --facts needs an earlier answer of eviction, or its `next`$/,
    ],
    [
      "a pod's file",
      ["--pod", manifest("trader.yaml")],
      /^nodewise: --pod .*trader\.yaml: eviction needs NAMESPACE\/NAME /,
    ],
    ["no such file", ["--facts", "/nowhere"], /^nodewise: \/nowhere: no such file: check the path$/],
    ["an ask and a pod", ["--ask", "-", "--pod", "a/b"], /^nodewise: --ask holds the pod too: leave --pod out$/],
    [
      "a manifest as the ask",
      ["--ask", manifest("trader.yaml")],
      /is an object of kind `Pod`, and --ask needs what the API accepts as `ask`/,
    ],
    ["no time", ["--observed-at", "soon"], /^nodewise: observedAt: must be an RFC 3339 time such as /],
    ["standard input twice", ["--ask", "-", "--facts", "-"], /^nodewise: standard input can be read once/],
  ])("reports %s in one line, with exit code 2", async (_, args, message) => {
    const ran = await run(["decide", "eviction", ...CALM, ...args], { input: "{}" });
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr.trimEnd().split("\n")).toEqual([expect.stringMatching(message)]);
  });

  test("reports faults in facts with file, line and path, also inside a whole answer or ask", async () => {
    const { stdout } = await run(["decide", "eviction", ...CALM, "-o", "json"]);
    const answer = JSON.parse(stdout);
    const broken = { ...answer, next: { ...answer.next, fileSystems: "many" } };
    const whole = await run(["decide", "eviction", ...CALM, "--facts", file("answer.json", broken)]);
    expect(whole).toMatchObject({ code: 2, stdout: "" });
    expect(whole.stderr).toMatch(/answer\.json:1:\d{4,}: facts\.fileSystems: /);
    const ask = await run(["decide", "eviction", ...CALM, "--ask", file("ask-2.json", { facts: broken.next })]);
    expect(ask).toMatchObject({ code: 2, stdout: "" });
    expect(ask.stderr).toMatch(/ask-2\.json:1:\d+: ask\.facts\.fileSystems: /);
    const good = file("ask-3.json", { facts: answer.next });
    const twice = await run(["decide", "eviction", ...CALM, "--ask", good, "--facts", file("facts.json", answer)]);
    expect(twice.stderr).toMatch(/^nodewise: --ask holds facts too: leave --facts out/);
    const once = await run(["decide", "eviction", ...CALM, "--ask", good]);
    expect(once.code).toBe(0);
    expect(once.stdout).not.toContain("unwatched");
  });

  test("refuses facts from the answer of another kind", async () => {
    const { stdout } = await run(["decide", "allocatable", "--node", realNode("node.json"), "-o", "json"]);
    const ran = await run(["decide", "eviction", ...CALM, "--facts", file("other.json", stdout)]);
    expect(ran.stderr).toMatch(
      /other\.json: is an answer of allocatable, and --facts needs an earlier answer of eviction/,
    );
    const none = await run(["decide", "allocatable", "--node", realNode("node.json"), "--facts", "x.json"]);
    expect(none).toMatchObject({ code: 2, stdout: "" });
    expect(none.stderr).toBe(
      "nodewise: --facts: allocatable remembers nothing: leave it out; eviction and image-gc do\n",
    );
  });

  test("refuses a configuration that the kubelet does not start with, in its words", async () => {
    const config = file("soft.yaml", "evictionSoft: { memory.available: 1Gi }\n");
    const ran = await run(["decide", "eviction", ...FILES, "--config", config]);
    expect(ran).toMatchObject({ code: 1, stdout: "" });
    expect(ran.stderr).toBe(
      'nodewise: eviction refused (invalid_configuration): kubeletConfiguration.evictionSoft["memory.available"]: grace period must be specified for the soft eviction threshold memory.available\n',
    );
  });

  test("names the option for missing input", async () => {
    const ran = await run(["decide", "eviction", "--pods", realNode("pods.json")]);
    expect(ran).toMatchObject({ code: 1, stdout: "" });
    expect(ran.stderr).toMatch(/^nodewise: eviction refused \(needs_input\): .*; here: --observed-at, --stats\n$/);
  });
});
