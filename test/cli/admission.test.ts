import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { NEWEST } from "../../api/profiles/index.ts";
import { v1_36 } from "../../api/profiles/v1_36.ts";
import { realCases } from "../decide/admission/real-cases.ts";
import { captured, realNode } from "../kit/real-node.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { manifest, NO_VERSION, run } from "./run.ts";

const scratch = scratchFolder();
const file = (name: string, value: unknown): string => {
  const path = join(scratch, name);
  writeFileSync(path, typeof value === "string" ? value : JSON.stringify(value));
  return path;
};

/** `--node`, `--pods` and `--pod` as kubectl prints them, of a case that a real kubelet decided. */
function filesOf(dir: "real-admission" | "real-preemption", name: string): readonly string[] {
  const real = realCases(dir).find((one) => one.name === name);
  if (real === undefined) throw new Error(`no case ${name}`);
  const { node, pods } = real.snapshot as { node: object; pods: readonly object[] };
  const prefix = name.replace("/", "-");
  return [
    ...["--node", file(`${prefix}.node.json`, { apiVersion: "v1", kind: "Node", ...node })],
    ...["--pods", file(`${prefix}.pods.json`, { apiVersion: "v1", kind: "List", items: pods })],
    ...["--pod", file(`${prefix}.pod.json`, { apiVersion: "v1", kind: "Pod", ...real.applied })],
  ];
}
const REAL = ["--node", realNode("node.json"), "--pods", realNode("pods.json")];
const TRADER = ["--pod", manifest("trader.yaml")];
const widest = (text: string): number => Math.max(...text.split("\n").map((line) => line.length));
/** The text without messages and sentences, which a terminal may wrap anywhere. */
const tablesOf = (text: string): string =>
  text
    .split("\n")
    .filter((line) => /^( {2,}|▶|█|\S+ {2,}|[A-Z])/.test(line) && !/^(ADMITTED|REFUSED|Node|Unexpected)/.test(line))
    .join("\n");

describe.concurrent("decide admission", () => {
  test("prints the verdict in the first line in the kubelet's words, from what kubectl prints alone", async () => {
    const ran = await run(["decide", "admission", ...REAL, ...TRADER]);
    expect(ran).toMatchObject({ code: 1, stderr: "" });
    expect(ran.stdout).toBe(`n1 · admission · ${v1_36.policyVersion}
assumed: the kubelet's default configuration; --config takes another; requests from limits, as the API server does: ask.pod.spec.initContainers[0] (cpu 2, memory 1Gi), ask.pod.spec.containers[0] (cpu 6, memory 8Gi) and ask.pod.spec.containers[1] (cpu 500m, memory 1Gi)
REFUSED  prod/trader: OutOfcpu
Node didn't have enough resource: cpu, requested: 6500, used: 1800, capacity: 1800

   WOULD REFUSE  REASON    MESSAGE
▶  predicates    OutOfcpu  above

RESOURCE  REQUESTED     USED  CAPACITY      LEFT  SHORT BY
pods              1       11        20         9            █████████████▓··········
cpu           6500m    1800m     1800m         0     6500m  █████×××××××××××××××××××
memory        9 GiB  492 MiB  22.1 GiB  21.6 GiB            █▓▓▓▓▓▓▓▓▓▓·············
█ used   ▓ requested and free   × requested but missing   · free after that

WHAT WOULD CHANGE IT
- with no cpu (6500m less) requested it would be admitted
`);
  });

  test("exits with 0 for an admitted pod, and shows what the managers would give it", async () => {
    const ran = await run([
      ...["decide", "admission", "--snapshot", realNode("snapshot.json"), "--pod", "default/guar-int"],
      ...["--explain", "reasons"],
    ]);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(ran.stdout).toContain(`
ADMITTED  default/guar-int (on the node already)
  onNode: it is on the node already: checked as at a kubelet's restart, with what is allocated to it, and not counted twice
`);
    expect(ran.stdout).toMatch(/^cpu +1 +800m +1800m +1 .*\n {2}requested: 1 fits beside 800m used of 1800m$/m);
    expect(ran.stdout).toMatch(/^c +1 +1 +its own +128 MiB of 0$/m);
  });

  test("lists every reason, marks the one that is reported, and groups what must change together", async () => {
    const ran = await run(["decide", "admission", ...filesOf("real-admission", "with-room/cpu-and-memory")]);
    expect(ran.code).toBe(1);
    expect(ran.stdout).toMatch(
      /^▶ {2}predicates +OutOfcpu +above\n {3}predicates +OutOfmemory +Node didn't have enough resource: memory, /m,
    );
    expect(ran.stdout).toContain("▶ the kubelet shows the first of them; each alone would refuse the pod\n");
    expect(ran.stdout).toContain(
      "- with at most 50m cpu (4950m less) and at most 21.5 GiB memory (78.4 GiB less) requested it would be admitted\n",
    );
  });

  test("names the pods preempted for a critical pod, in order, and the other candidates", async () => {
    const ran = await run(["decide", "admission", ...filesOf("real-preemption", "crit-150m"), "--explain", "full"]);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(ran.stdout).toContain("ADMITTED  default/crit (critical): 1 pod preempted for it\n");
    expect(ran.stdout).toMatch(
      /^1 {2}default\/bu3 +Burstable +0 +cpu 300m\n {2}preempt: the nearest of 3 Burstable pods to what is still to be freed \(cpu 150m\): distance 0 \[nearest /m,
    );
    expect(ran.stdout).toContain(`
- 1 pod would be enough: default/gu1 (200m cpu for the 150m needed); the kubelet preempts 1: default/bu3 (300m cpu)
- 2 pods would be enough: default/bu1 and default/gu2 (150m cpu for the 150m needed); the kubelet preempts 1: default/bu3 (300m cpu)
- with no cpu (150m less) requested no pod would have to be preempted
`);
  });

  test("refuses a pod for which others are preempted in vain, and says so", async () => {
    const [, , , , , pod] = filesOf("real-preemption", "crit-150m");
    const wanted = JSON.parse(readFileSync(pod as string, "utf8"));
    wanted.spec.containers[0].securityContext = { appArmorProfile: { type: "RuntimeDefault" } };
    const whole = captured("snapshot.json");
    const snapshot = file("no-app-armor.json", { ...whole, kubelet: { appArmor: false } });
    const ran = await run(["decide", "admission", "--snapshot", snapshot, "--pod", file("confined.json", wanted)]);
    expect(ran.code).toBe(1);
    expect(ran.stdout).toContain("REFUSED  default/crit (critical): AppArmor\nCannot enforce AppArmor: ");
    expect(ran.stdout).toMatch(/^1 pod preempted for it in vain: it is refused after that\n {3}PREEMPTED/m);
  });

  test("admits no pod on a kubelet that does not start, whatever its handlers say", async () => {
    const ran = await run([
      ...["decide", "admission", "--snapshot", realNode("snapshot.json"), "--pod", "default/guar-int"],
      ...["--cpu-manager-state", file("cut", '{"policyName":"sta')],
    ]);
    expect(ran.code).toBe(1);
    expect(ran.stdout).toMatch(
      /^REFUSED {2}default\/guar-int \(on the node already\): the kubelet does not start\n {2}admit: no pod is admitted, .*unexpected end of JSON input/m,
    );
    expect(ran.stdout).not.toContain("ADMITTED");
  });

  test.each([120, 90, 70, 50])("keeps within %d columns", async (columns) => {
    const args = ["decide", "admission", ...filesOf("real-admission", "with-room/cpu-and-memory")];
    const { stdout } = await run(args, { env: { COLUMNS: String(columns) } });
    expect(widest(tablesOf(stdout).replace(/^▶ what.*$/m, ""))).toBeLessThanOrEqual(columns);
    expect(stdout).toMatch(/^cpu +5 +/m);
    expect(stdout).toMatch(/^▶ {2}predicates +OutOfcpu/m);
  });

  test("escapes names so that they cannot control the terminal", async () => {
    const pod = { metadata: { name: "a" }, spec: { containers: [{ name: "c" }], nodeSelector: { "\u001b[31m": "x" } } };
    const ran = await run(["decide", "admission", ...REAL, "--pod", file("odd.json", pod), "--explain", "full"]);
    expect(ran.code).toBe(1);
    expect(ran.stdout).not.toContain("\u001b");
  });
});

describe.concurrent("decide preemption", () => {
  test("shows the rounds with each candidate's distance, and better sets beside the kubelet's choice", async () => {
    const ran = await run(["decide", "preemption", ...filesOf("real-preemption", "crit-600m-needs-guaranteed")]);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(ran.stdout).toBe(`n1 · preemption · ${NEWEST.policyVersion}
assumed: ${NO_VERSION}
ADMITTED  default/crit: 1 pod preempted for it
critical: 8 pods may be preempted for it; to be freed: cpu 600m

RESOURCE  REQUESTED   USED  CAPACITY  LEFT  SHORT BY
cpu            600m  1800m     1800m     0      600m  ██████████████████××××××
█ used   × requested but missing

   PREEMPTED, IN ORDER  QOS         PRIORITY  FREES
1  default/gi           Guaranteed   1000000  cpu 1

ROUND       TO FREE                 DISTANCE             CANDIDATE     MEMORY   CPU
Guaranteed  cpu 100m                       0  preempted  default/gi    64 MiB     1
                                           0             default/gu1  128 MiB  200m
                                        0.25             default/gu2   32 MiB   50m
Burstable   BestEffort free enough
BestEffort  nothing is left

SET             PODS  FREES
the kubelet's      1  cpu 1     default/gi
least requests     3  cpu 600m  default/bu1 default/bu3 default/gu1

WHAT WOULD CHANGE IT
- 3 pods would be enough: default/bu1, default/bu3 and default/gu1 (600m cpu for the 600m needed); the kubelet preempts 1: default/gi (1 cpu)
- with no cpu (600m less) requested no pod would have to be preempted
`);
  });

  test("marks candidates that only the order of a list puts behind the chosen one", async () => {
    const { stdout } = await run(["decide", "preemption", ...filesOf("real-preemption", "crit-pods-count")]);
    expect(stdout).toMatch(/^BestEffort +pods 1 +0 {2}preempted {2}default\/f10 /m);
    expect(stdout.match(/^ +0 {2}tied +default\//gm)).toHaveLength(4);
    expect(stdout).toContain("(4 more, up to 0)\n");
    expect(stdout).toContain("- no lower request helps: every pod counts as one of the node's pods\n");
  });

  test.each([
    ["crit-1800m-impossible", /^REFUSED {2}default\/crit: preemption: error finding a set of pods to preempt: /m],
    ["crit-nodeaffinity-and-cpu", /^REFUSED {2}default\/crit: NodeAffinity\n(.*\n)+Burstable +cpu 100m +0 {2}chosen /m],
    [
      "high-priority-not-critical",
      /^REFUSED {2}default\/highp: OutOfcpu\nnot critical: the kubelet preempts no pod for it; /m,
    ],
  ])("exits with 1 for %s", async (name, text) => {
    const ran = await run(["decide", "preemption", ...filesOf("real-preemption", name)]);
    expect(ran).toMatchObject({ code: 1, stderr: "" });
    expect(ran.stdout).toMatch(text);
    expect(ran.stdout).not.toContain("PREEMPTED, IN");
  });

  test("takes the failures from --ask instead of computing them", async () => {
    const [node, nodeFile, pods, podsFile, , podFile] = filesOf("real-preemption", "crit-150m") as readonly string[];
    const pod = JSON.parse(readFileSync(podFile as string, "utf8"));
    const failure = { resourceName: "cpu", requested: 2000, used: 1800, capacity: 2000 };
    const ask = file("ask.json", { pod, failureReasons: [failure] });
    const files = [node, nodeFile, pods, podsFile] as readonly string[];
    const ran = await run(["decide", "preemption", ...files, "--ask", ask]);
    expect(ran.code).toBe(1);
    expect(ran.stdout).toContain("to be freed: cpu 1800m\n");
    const bad = file("bad.json", { pod, failureReasons: [{ ...failure, used: -1 }] });
    const refused = await run(["decide", "preemption", ...files, "--ask", bad]);
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toMatch(/bad\.json:1:\d+: ask\.failureReasons\[0\]\.used: /);
  });

  test.each([100, 70])("keeps within %d columns", async (columns) => {
    const args = ["decide", "preemption", ...filesOf("real-preemption", "crit-600m-needs-guaranteed")];
    const { stdout } = await run(args, { env: { COLUMNS: String(columns) } });
    const tables = stdout.split("\n").filter((line) => !/^[-·]|^(assumed|ADMITTED|critical|█)/.test(line));
    expect(widest(tables.join("\n"))).toBeLessThanOrEqual(columns);
    expect(stdout).toMatch(/^Guaranteed +cpu 100m +0 {2}preempted {2}default\/gi/m);
  });
});

/** Options for two nodes: `--node` of worker-1, and `--pods` with pods of n1, or of both nodes. */
function ofTwoNodes() {
  const read = (name: string) => captured(name);
  const { metadata, ...node } = read("node.json");
  const { items, ...list } = read("pods.json");
  const [{ metadata: named, spec, ...first }] = items;
  const own = { ...first, metadata: { ...named, uid: "own", name: "own" }, spec: { ...spec, nodeName: "worker-1" } };
  return {
    worker: ["--node", file("worker.json", { ...node, metadata: { ...metadata, name: "worker-1" } })],
    others: ["--pods", realNode("pods.json")],
    both: ["--pods", file("both.json", { ...list, items: [...items, own] })],
    burst: items.find((one: { metadata: { name: string } }) => one.metadata.name === "burst-lim"),
  };
}
test.each([["allocatable"], ["allocatable", "--set", "maxPods=7"], ["probes", "--pod", "default/burst-lim"], ["cpus"]])(
  "a node with the pods of another one is refused by decide %s %s %s",
  async (kind, ...options) => {
    const { worker, others } = ofTwoNodes();
    const refused = await run(["decide", kind, ...options, ...worker, ...others]);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain(
      `nodewise: ${kind} refused (needs_input): 11 pods belong to n1, the node is worker-1: `,
    );
    const { stdout } = await run(["decide", kind, ...worker, ...others, "-o", "json"]);
    expect(JSON.parse(stdout)).toMatchObject({ node: "worker-1", refusal: { code: "needs_input" } });
  },
);
test("a pod of another node is decided as a new one, with a notice", async () => {
  const { worker, both, burst } = ofTwoNodes();
  const asked = (kind: string, ...options: readonly string[]) => run(["decide", kind, ...worker, ...both, ...options]);
  for (const pod of ["default/burst-lim", file("burst-lim.json", burst)]) {
    const { code, stdout } = await asked("admission", "--pod", pod);
    expect([code, stdout]).toEqual([0, expect.stringContaining("ADMITTED  default/burst-lim\n")]);
    expect(stdout).toMatch(/^assumed: .*default\/burst-lim is bound to n1: checked as a new pod on worker-1$/m);
  }
  const probes = await asked("probes", "--pod", "default/burst-lim", "-o", "json");
  expect(JSON.parse(probes.stdout)).toMatchObject({ node: "worker-1", assumed: { pod: { boundTo: "n1" } } });
  // an admission question and its answer have the API's format
  const exact = await asked("admission", "--ask", file("ask.json", { pod: burst }));
  expect(exact).toMatchObject({ code: 1, stdout: expect.stringContaining("REFUSED  default/burst-lim: NodeName") });
});
