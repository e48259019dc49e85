import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { stringify } from "yaml";
import { podExplanationForm, podExplanationListForm } from "../../api/model/why.ts";
import { NEWEST } from "../../api/profiles/index.ts";
import { startedApi } from "../kit/api.ts";
import { capturedText, realNode } from "../kit/real-node.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { admissionStories, evictionStories, type RealStory } from "../why/real-documents.ts";
import { type Ran, run } from "./run.ts";

const folder = scratchFolder();

const why = (args: readonly string[], input?: string): Promise<Ran> =>
  run(["why", ...args], { cwd: folder, ...(input === undefined ? {} : { input }) });
const file = (name: string, text: string): string => {
  mkdirSync(join(folder, name, ".."), { recursive: true });
  writeFileSync(join(folder, name), text);
  return name;
};
const full = admissionStories().find(({ name }) => name === "full-node/cpu") as RealStory;
const evicted = evictionStories("memory").find(({ name }) => name === "m-bu-over") as RealStory;
const json = (value: unknown): string => JSON.stringify(value);

describe("nodewise why", () => {
  test("explains piped kubectl output: finding, decision and what would change it, with exit code 1", async () => {
    const { code, stdout, stderr } = await why(["x-cpu"], json(full.documents[0]));
    expect([code, stderr]).toEqual([1, ""]);
    for (const line of [
      "default/x-cpu · n1 · Burstable · Failed · as of 2026-11-21T06:26:26Z",
      "REFUSED  the kubelet did not admit it: 500m cpu did not fit beside 1800m used of 1800m",
      "  status 2026-11-21T06:26:26Z  OutOfcpu: Pod was rejected: Node didn't have enough resource: cpu, requested: 500, used: 1800, capacity: 1800",
      `DECISION admission: refused, on these documents as of 2026-11-21T06:26:26Z · ${NEWEST.policyVersion} · agrees with the kubelet`,
      "- with no cpu (500m less) requested it would be admitted",
    ]) {
      expect(stdout).toContain(`${line}\n`);
    }
  });
  test("reads several files, also YAML with many documents, in any order", async () => {
    const [list, ...rest] = evicted.documents;
    const yaml = rest.map((value) => stringify(value)).join("---\n");
    const { stdout, code } = await why(["m-bu-over", "-f", file("rest.yaml", yaml), file("pods.json", json(list))]);
    expect(code).toBe(1);
    expect(stdout).toContain("EVICTED  the node was short of memory\n");
    expect(stdout).toContain(" · agrees with the kubelet\n");
    expect(stdout).toMatch(/EVICTED NEXT .*\n1 {2}default\/m-bu-over-low/);
  });
  test("prints the same as JSON and YAML, in the API's form", async () => {
    const pods = file("list.json", json(full.documents[0]));
    const asJson = await why(["default/x-cpu", "-f", pods, "-o", "json"]);
    const story = podExplanationForm.parse(JSON.parse(asJson.stdout));
    expect(story.findings[0]?.code).toBe("refused");
    expect((await why(["x-cpu", "-n", "default", "-f", pods, "-o", "yaml"])).stdout).toContain("code: refused");
  });
  test("exits with 0 for a healthy pod, and lists all pods, the worst first", async () => {
    const files = ["pods.json", "node.json", "stats-summary.json", "configz.json"].map(realNode);
    const healthy = await why(["guar-int", "-f", ...files]);
    expect(healthy.code).toBe(0);
    expect(healthy.stdout).toContain("HEALTHY  1 container of 1 ready\n");
    const none = await why(["-f", ...files]);
    expect([none.code, none.stdout]).toEqual([0, "no problem with 11 pods\n"]);
    const all = await why([], json(evicted.documents[0]));
    expect(all.stdout.split("\n")[1]).toMatch(/^EVICTED {2}default\/m-bu-over/);
    const list = podExplanationListForm.parse(JSON.parse((await why(["-o", "json"], json(evicted.documents))).stdout));
    expect(list.stories.map(({ code }) => code)).toEqual(["evicted", "evicted", "refused", "refused", "refused"]);
  });
  test("suggests commands with the same source", async () => {
    const files = ["pods.json", "node.json", "configz.json"].map(realNode);
    const commandIn = ({ stdout }: Ran) => /\n {2}nodewise why (.*)\n$/.exec(stdout)?.[1];
    expect(commandIn(await why(["-f", ...files]))).toBe(`default/burst-lim -f ${files.join(" ")}`);
    expect(commandIn(await why([], files.map((one) => readFileSync(one, "utf8")).join("\n")))).toBe(
      "default/burst-lim",
    );
    const dataDir = join(folder, "the history");
    const { url, close } = await startedApi({ dataDir });
    onTestFinished(close);
    const snapshot = capturedText("snapshot.json");
    const headers = { "content-type": "application/json" };
    await fetch(`${url}/v1/nodes/n1/snapshot`, { method: "PUT", headers, body: snapshot });
    const { stats: _, ...without } = JSON.parse(snapshot);
    const later = json({ ...without, observedAt: new Date().toISOString() });
    await fetch(`${url}/v1/nodes/n1/snapshot`, { method: "PUT", headers, body: later });
    expect(commandIn(await why(["--data-dir", dataDir]))).toBe(`--data-dir '${dataDir}' default/burst-lim`);
    expect(commandIn(await why(["--api", url]))).toBe(`--api ${url} default/burst-lim`);
    expect((await why(["--api", url, "default/burst-lim"])).stdout).toMatch(/^default\/burst-lim · n1 · /);
  });
  test("explains throttling from the text of a cpu.stat, from a file or piped in", async () => {
    const stat = "usage_usec 32000000\nnr_periods 1000\nnr_throttled 400\nthrottled_usec 12000000\n";
    const { stdout } = await why(["burst-lim", "-f", realNode("pods.json"), realNode("node.json"), "-"], stat);
    expect(stdout).toContain(
      "container c was throttled at its limit of 300m CPU in 400 of 1000 periods (40 %), for 12s in all; it used 320m of them on average",
    );
    expect(stdout).toContain("container c: 30000 us of CPU in each 100000 us, memory limit 128 MiB");
    expect(stdout).toContain(
      "with a limit of 600m CPU for container c the average throttled period would have been long enough; peaks need more",
    );
  });
});

describe("nodewise why with bad input", () => {
  test.each([
    [
      "no such pod",
      ["burst", "-f", realNode("pods.json")],
      "nodewise: no pod `burst` among the 11 pods that the documents tell of; there are default/burst-lim, default/burst-nolim\n",
    ],
    [
      "no pod at all",
      ["x", "-f", realNode("node.json")],
      "nodewise: no document is about a pod: give `kubectl get pods,nodes,events -A -o json`\n",
    ],
    ["no such file", ["x", "-f", "missing.json"], "nodewise: missing.json: no such file"],
    [
      "--node without a history",
      ["x", "-f", realNode("pods.json"), "--node", "n1"],
      "nodewise: --node is of the history: give --data-dir or --api too, or leave it out\n",
    ],
    [
      "files beside an API, and no node",
      ["x", "-f", "pods.json", "--api", "http://127.0.0.1:1"],
      "nodewise: with files, an API adds one node: name it with --node",
    ],
    ["standard input twice", ["x", "-f", "-", "-"], "nodewise: standard input can be read once"],
    ["no history", ["x", "--data-dir", "nowhere"], "nodewise: there is no history at nowhere/history.db"],
  ])("reports: %s", async (_, args, message) => {
    const { code, stderr, stdout } = await why(args);
    expect([code, stdout]).toEqual([args.includes("--data-dir") ? 4 : 2, ""]);
    expect(stderr.startsWith(message), stderr).toBe(true);
  });
  test.each([
    ["half a JSON", '{"kind": "Pod", ', /^nodewise: standard input:2?1?:?.*is not JSON/],
    ["nothing", "", /^nodewise: standard input: holds no object/],
    [
      "two clusters",
      json({ kind: "List", items: ["a", "b"].map((uid) => ({ kind: "Node", metadata: { name: "n1", uid } })) }),
      /both a node n1, with the uids b and a/,
    ],
    ["a table", "NAME READY\nweb 1/1\n", /^nodewise: no document is about a pod/],
  ])("reports %s on standard input", async (_, input, message) => {
    const { code, stderr } = await why(["web"], input);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });
});
