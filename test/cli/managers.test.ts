import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { NEWEST } from "../../api/profiles/index.ts";
import { v1_36 } from "../../api/profiles/v1_36.ts";
import { captured, realNode } from "../kit/real-node.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { manifest, NO_VERSION, run } from "./run.ts";
import { storyStep } from "./story.ts";

const SNAPSHOT = ["--snapshot", realNode("snapshot.json")];
const TRADER = ["--pod", manifest("trader.yaml")];
const DEVICES = ["--devices", manifest("devices.yaml"), "--device-plugins", manifest("plugins.yaml")];
const CONFIG = `cpuManagerPolicy: static
reservedSystemCPUs: "0"
memoryManagerPolicy: Static
reservedMemory: [{ numaNode: 0, limits: { memory: 100Mi } }]
topologyManagerPolicy: single-numa-node
`;

const scratch = scratchFolder();
const file = (name: string, text: string): string => {
  writeFileSync(join(scratch, name), text);
  return join(scratch, name);
};

const linesOf = (text: string): string[] => text.trimEnd().split("\n");
/** The text without the lines of the title, the assumption and the verdict. */
const bodyOf = (text: string): string => linesOf(text).slice(3).join("\n");

describe.concurrent("decide cpus", () => {
  test("draws the machine, the holders of CPUs, and what the requested pod gets", async () => {
    const ran = await run(["decide", "cpus", "--machine", "epyc-uncore-split", ...TRADER]);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(bodyOf(ran.stdout)).toBe(`cpuManagerPolicy static: reserved 0, shared pool 0,4-32,36-63 (58 CPUs)

SOCKET  NUMA  CPUS
     0     0  ▒· ██ ██ ██ │ ·· ·· ·· ·· │ ·· ·· ·· ·· │ ·· ·· ·· ··  0-63
              ·· ·· ·· ·· │ ·· ·· ·· ·· │ ·· ·· ·· ·· │ ·· ·· ·· ··
█ prod/trader   ▒ reserved   · shared pool

CONTAINER  CPUS          COUNT  NUMA
warm-up    1,33              2  0     its own
engine     1-3,33-35         6  0     its own
logs       0,4-32,36-63     58  0     shared pool

   EXCLUSIVE CPUS OF  CONTAINER  CPUS       COUNT  NUMA
█  prod/trader        engine     1-3,33-35      6  0
█  prod/trader        warm-up    1,33           2  0`);
  });

  test("lists the cpusets to change, and letters for the pods that hold CPUs", async () => {
    const { stdout, code } = await run(["decide", "cpus", ...SNAPSHOT], { env: { COLUMNS: "60" } });
    expect(code).toBe(0);
    const lines = linesOf(stdout);
    expect(lines.slice(0, 13)).toEqual([
      `n1 · cpus · ${v1_36.policyVersion}`,
      "no pod is given (--pod): this is the current state",
      "cpuManagerPolicy static: reserved 0, shared pool 0 (1 CPU)",
      "",
      "SOCKET  NUMA  CPUS",
      "     0     0  ▒A    0-1",
      "A and on: the pods below   ▒ reserved",
      "",
      "   EXCLUSIVE CPUS OF  CONTAINER  CPUS  COUNT  NUMA",
      "A  default/guar-int   c          1         1  0",
      "",
      "CPUSETS TO CHANGE       CONTAINER        NOW      WANTED",
      "default/besteffort      c          not known  ->  0",
    ]);
  });

  test("shows an observed cpuset's old and new value", async () => {
    const whole = captured("snapshot.json");
    const { decision } = JSON.parse((await run(["decide", "cpus", ...SNAPSHOT, "-o", "json"])).stdout);
    const { containerId } = decision.reconcile.at(-1);
    const cgroup = { version: 2, cpusets: { [containerId]: "0-1" } };
    const observed = file("observed.json", JSON.stringify({ ...whole, cgroup }));
    const { stdout } = await run(["decide", "cpus", "--snapshot", observed]);
    expect(stdout).toMatch(new RegExp(`^default/guar-int +c +0-1 {2}-> {2}1 +${containerId}$`, "m"));
  });

  test("exits with 1 for a refused pod, in the kubelet's words", async () => {
    const ran = await run(["decide", "cpus", "--machine", "vm-small", ...TRADER, "--explain", "reasons"]);
    expect(ran).toMatchObject({ code: 1, stderr: "" });
    expect(linesOf(ran.stdout)[2]).toBe(
      "refused: prod/trader (container engine): UnexpectedAdmissionError: Allocate failed due to not enough cpus available to satisfy request: requested=6, available=3, which is unexpected",
    );
    expect(ran.stdout).toContain("  reserved: CPUs 0 are kept back: reservedSystemCPUs is 0;");
    expect(ran.stdout).toContain(
      "engine\n  cpus: nothing is given: UnexpectedAdmissionError of cpus; requested 6; free 1;",
    );
  });

  test("says when a kubelet gives away a reserved CPU", async () => {
    const { stdout } = await run(["decide", "cpus", "--machine", "desktop-hybrid", ...TRADER]);
    expect(stdout).toContain("\nreserved CPUs 0 are given to prod/trader (warm-up): ");
    expect(stdout).toContain(
      "\ncpu_manager_state: with the next one the kubelet does not start again: not all reserved",
    );
    const { stdout: even } = await run(["decide", "cpus", "--machine", "xeon-2s", ...TRADER]);
    expect(even).not.toContain("reserved CPUs");
  });
});

describe.concurrent("decide memory", () => {
  test("draws the NUMA nodes' memory and lists the blocks", async () => {
    const ran = await run(["decide", "memory", "--machine", "xeon-2s-snc2", ...TRADER]);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(bodyOf(ran.stdout)).toBe(`memoryManagerPolicy Static

NUMA  RESOURCE     TOTAL   SYSTEM   HELD      FREE
   0  memory    45.8 GiB  100 MiB  9 GiB  36.7 GiB  ▒████···················
   1  memory    47.2 GiB      0 B    0 B  47.2 GiB  ························
   2  memory    47.2 GiB      0 B    0 B  47.2 GiB  ························
   3  memory    47.2 GiB      0 B    0 B  47.2 GiB  ························
▒ reserved for the system   █ held by containers   · free

CONTAINER  RESOURCE  FROM NUMA NODES
warm-up    memory    0 B of 0 (handed on)
engine     memory    8 GiB of 0
logs       memory    1 GiB of 0

POD          CONTAINER  RESOURCE   SIZE  NUMA
prod/trader  warm-up    memory      0 B  0
prod/trader  engine     memory    8 GiB  0
prod/trader  logs       memory    1 GiB  0`);
  });

  test("leaves out bars and their legend in a narrow terminal", async () => {
    const args = ["decide", "memory", "--machine", "xeon-2s", ...TRADER, "--explain", "full"];
    const { stdout } = await run(args, { env: { COLUMNS: "50" } });
    expect(stdout).not.toMatch(/[█▒]/);
    expect(stdout.replace(/\s+/g, " ")).toContain(
      " memory: 8 GiB of NUMA node 0 [memory_given numaNodes=0 size=8589934592] ",
    );
    expect(stdout.split("\n").filter((line) => line.length > 50)).toEqual([]);
    expect(stdout).toMatch(/^ {3}1 {2}memory +192 GiB .*\n {2}memory: 192 GiB less 0 B for the system is\s/m);
  });

  test("says when the policy assigns no memory", async () => {
    const { stdout } = await run(["decide", "memory", "--machine", "xeon-2s", "--policy", "None", ...TRADER]);
    expect(stdout).toContain("memoryManagerPolicy None: memory is taken from any NUMA node\n");
    expect(stdout).toMatch(/^engine +any$/m);
  });
});

describe.concurrent("decide topology", () => {
  test("shows hints and their merge, what is assigned, and the room left", async () => {
    const args = ["decide", "topology", "--machine", "xeon-2s", "--policy", "single-numa-node", ...TRADER];
    const ran = await run(args);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(bodyOf(ran.stdout)).toBe(`topologyManagerPolicy single-numa-node, scope container

CONTAINER  CPUS          COUNT               MEMORY FROM
warm-up    1,49              2  its own      0 B of 0 (handed on)
engine     1-3,49-51         6  its own      8 GiB of 0
logs       0,4-48,52-95     90  shared pool  1 GiB of 0

HINTS OF  RESOURCE  PREFERRED NUMA NODES  OTHERS
warm-up   cpu       0 | 1                 0+1
          memory    0 | 1                 0+1
          merged    0                             admitted
engine    cpu       0                     0+1
          memory    0 | 1
          merged    0                             admitted
logs      memory    0 | 1
          merged    0                             admitted

NUMA  FREE CPUS  WHOLE CORES  SPLIT  LARGEST BLOCK  FREE MEMORY  LARGEST GUARANTEED POD
   0         41           20    2 %             41    182.9 GiB  41 CPUs, 182.9 GiB
   1         48           24    0 %             48      192 GiB  48 CPUs, 192 GiB
 all         89           44    1 %             48    374.9 GiB  48 CPUs, 192 GiB
46 % of the free CPUs lie outside the largest block`);
  });

  test("names lscpu's missing NUMA memory, and what to give instead", async () => {
    const lines = [
      ["CPU(s)", "16"],
      ["On-line CPU(s) list", "0-15"],
      ["Thread(s) per core", "1"],
      ["Socket(s)", "1"],
      ["NUMA node0 CPU(s)", "0-7"],
      ["NUMA node1 CPU(s)", "8-15"],
    ];
    const lscpu = file(
      "lscpu.json",
      JSON.stringify({ lscpu: lines.map(([field, data]) => ({ field: `${field}:`, data })) }),
    );
    const decide = (kind: string, ...args: string[]) => run(["decide", kind, "--machine", lscpu, ...TRADER, ...args]);
    const topology = (await decide("topology")).stdout;
    expect(topology.match(/ not known {2}not known$/gm)).toHaveLength(3);
    expect(topology).toMatch(
      /^not known: memoryBytes of each of machine\.numaNodes, which lscpu does not report \(give the machine that `nodewise snapshot` prints there, /m,
    );
    const memory = await decide("memory");
    expect(memory).toMatchObject({ code: 0, stderr: "" });
    expect(linesOf(memory.stdout)[1]).toMatch(
      /memoryManagerPolicy None \(the machine has no memoryBytes of its numaNodes, which lscpu does not report: give /,
    );
    expect((await decide("cpus")).stdout).not.toContain("memoryManagerPolicy");
    const refused = await decide("memory", "--policy", "Static");
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(
      /memoryBytes of each of machine\.numaNodes.*lscpu does not tell.*; here: --machine of a file that has it, in the place of lscpu's\n$/,
    );
  });

  test.each([100, 80, 60])("keeps within %d columns", async (columns) => {
    const args = ["decide", "topology", "--machine", "epyc-2s-nps4", "--policy", "restricted", ...TRADER];
    const { stdout } = await run(args, { env: { COLUMNS: String(columns) } });
    const [, , ...lines] = linesOf(stdout);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(columns);
    expect(stdout).toMatch(/^NUMA +FREE CPUS/m);
    expect(stdout).toMatch(/^ {10}merged +0 +admitted$/m);
  });

  test("refuses a container that fits on no NUMA node, with its hints", async () => {
    const pod = file(
      "large.yaml",
      "kind: Pod\nmetadata: { name: large }\nspec:\n  containers:\n  - name: c\n    resources: { limits: { cpu: 60, memory: 1Gi } }\n",
    );
    const args = ["decide", "topology", "--machine", "xeon-2s", "--policy", "single-numa-node", "--pod", pod];
    const ran = await run([...args, "--explain", "reasons"]);
    expect(ran).toMatchObject({ code: 1, stderr: "" });
    expect(linesOf(ran.stdout)[2]).toBe(
      "refused: default/large (container c): TopologyAffinityError: Resources cannot be allocated with Topology locality",
    );
    expect(ran.stdout).toMatch(/^c +cpu +0\+1$/m);
    expect(ran.stdout).toMatch(/^ +merged +any +refused\n {2}placement: the hints of cpu,memory merge to any NUMA/m);
  });
});

describe.concurrent("decide devices", () => {
  test("shows resources, assignments, holders, hints and the plugin's question", async () => {
    const snapshot = file("story.json", JSON.stringify({ ...storyStep("09-fuse-two"), assignments: undefined }));
    const { kubelet_internal_checkpoint: checkpoint } = storyStep("09-fuse-two").assignments;
    const ran = await run([
      ...["decide", "devices", "--snapshot", snapshot, "--machine", "xeon-2s"],
      ...["--config", file("config.yaml", CONFIG), "--device-checkpoint", file("checkpoint", checkpoint), ...DEVICES],
      ...["--pod", manifest("training.yaml")],
    ]);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(ran.stdout).toBe(`xeon-2s · devices · ${NEWEST.policyVersion}
assumed: requests from limits, as the API server does: ask.pod.spec.initContainers[0] (cpu 1, memory 1Gi, vendor.com/gpu 1) and ask.pod.spec.containers[0] (cpu 4, example.com/resource 1, memory 8Gi, vendor.com/gpu 2); ${NO_VERSION}
admitted: ml/train

RESOURCE              PLUGIN        CAPACITY  ALLOCATABLE  HELD  NODE STATUS
example.com/fuse      unregistered         0            0     2            2  ██
example.com/resource  registered           2            2     2               ██
vendor.com/gpu        registered           4            3     2               ██·×
vendor.com/nic        stopped              1            0     0               ×
█ held   · free   × not healthy

CONTAINER  RESOURCE              REUSED  ALIGNED  DEVICES
prepare    vendor.com/gpu                gpu-0
train      example.com/resource                   Dev-2
train      vendor.com/gpu        gpu-0   gpu-1

POD          CONTAINER  RESOURCE              DEVICES                                                                            ALSO GIVEN
default/dp1  c          example.com/resource  Dev-1                                                                              1 mount
default/fu1  c          example.com/fuse      88147f87fc92e69580ba38051f238b947269e059 a68db766f638034740111848aafee2d2dcd6b642  1 device node
ml/train     prepare    vendor.com/gpu        gpu-0                                                                              (its plugin has not answered)
ml/train     train      example.com/resource  Dev-2                                                                              (its plugin has not answered)
                        vendor.com/gpu        gpu-0 gpu-1                                                                        (its plugin has not answered)

HINTS OF  RESOURCE              PREFERRED NUMA NODES  OTHERS
prepare   vendor.com/gpu        0 | 1                 0+1
          cpu                   0 | 1                 0+1
          memory                0 | 1                 0+1
          merged                0                             admitted
train     example.com/resource  no preference
          vendor.com/gpu        0                     0+1
          cpu                   0                     0+1
          memory                0 | 1
          merged                0                             admitted

PLUGIN CALLED   SIZE  AVAILABLE
vendor.com/gpu     1  gpu-0 gpu-1
the natural order of ids is used instead; give the answers with --device-plugins ([].preferred)
not known: assignments.cpu_manager_state (give --cpu-manager-state)
not known: assignments.memory_manager_state (give --memory-manager-state)
`);
  });

  test("follows a preferred allocation given with --device-plugins", async () => {
    const plugins = JSON.stringify([
      {
        resource: "vendor.com/gpu",
        options: { getPreferredAllocationAvailable: true },
        preferred: [
          { available: ["gpu-0", "gpu-1", "gpu-3"], size: 1, deviceIds: ["gpu-3"] },
          { available: ["gpu-0", "gpu-1", "gpu-3"], mustInclude: ["gpu-3"], size: 2, deviceIds: ["gpu-3", "gpu-1"] },
        ],
      },
    ]);
    const args = ["--device-plugins", file("plugins.json", plugins), "--devices", manifest("devices.yaml")];
    const ran = await run(["decide", "devices", "--machine", "xeon-2s", ...args, "--pod", manifest("training.yaml")]);
    expect(ran.stdout).toMatch(/^prepare +vendor\.com\/gpu +gpu-3$/m);
    expect(ran.stdout).toMatch(/^train +vendor\.com\/gpu +gpu-3 +gpu-1$/m);
    expect(ran.stdout).not.toContain("PLUGIN CALLED");
  });

  test("ignores a truncated checkpoint as the kubelet does, and escapes its text", async () => {
    const { kubelet_internal_checkpoint: text } = storyStep("09-fuse-two").assignments;
    const devices = file("odd.json", JSON.stringify([{ resource: "a.com/x", id: "\u001b[31mred" }]));
    const odd =
      "kind: Pod\nmetadata: { name: p }\nspec:\n  containers: [{ name: c, resources: { limits: { a.com/x: 1 } } }]\n";
    const ran = await run([
      ...["decide", "devices", "--machine", "vm-small", "--devices", devices, "--pod", file("odd.yaml", odd)],
      ...["--device-checkpoint", file("cut", text.slice(0, 100))],
    ]);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(ran.stdout).toMatch(
      /^kubelet_internal_checkpoint: .*: the kubelet logs it, goes on as if no container held a device/m,
    );
    expect(ran.stdout).toMatch(/^c +a\.com\/x +␛\[31mred$/m);
  });

  test("says when no plugin has registered", async () => {
    const ran = await run(["decide", "devices", "--machine", "vm-small"]);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(ran.stdout).toContain("no plugin has registered a resource\nnot known: devices (give --devices)\n");
  });
});

describe.concurrent("the kubelet's state files", () => {
  test.each([
    ["cpus", "cpu-manager-state", "CPU manager", "cpu_manager_state"],
    ["memory", "memory-manager-state", "memory manager", "memory_manager_state"],
  ])("%s with an empty or truncated file is refused in the kubelet's words", async (kind, option, manager, name) => {
    for (const text of ["", '{"policyName":"static","def']) {
      const ran = await run([
        "decide",
        kind,
        "--machine",
        "vm-small",
        `--${option}`,
        file(`${option}-${text.length}`, text),
      ]);
      expect(ran).toMatchObject({ code: 1, stderr: "" });
      expect(linesOf(ran.stdout)[2]).toBe(
        `the kubelet does not start: could not restore state from checkpoint: unexpected end of JSON input, please drain this node and delete the ${manager} checkpoint file "/var/lib/kubelet/${name}" before restarting Kubelet`,
      );
    }
  });

  test("make decide cgroups refuse when one is empty", async () => {
    const pods = ["--pods", file("no-pods.json", "[]")];
    const args = ["decide", "cgroups", "--machine", "vm-small", "--cgroup-version", "2", ...pods];
    const ran = await run([...args, "--cpu-manager-state", file("none", "")]);
    expect(ran).toMatchObject({ code: 1, stdout: "" });
    expect(ran.stderr).toMatch(
      /^nodewise: cgroups refused \(invalid_state\): assignments\.cpu_manager_state: the file is /,
    );
  });

  test.each([
    ["device-checkpoint", manifest("devices.yaml"), "a list of devices", "devices"],
    ["device-checkpoint", realNode("cpu_manager_state"), "a cpu_manager_state", "cpu-manager-state"],
    ["devices", manifest("plugins.yaml"), "a list of device plugins", "device-plugins"],
    ["device-plugins", manifest("devices.yaml"), "a list of devices", "devices"],
  ])("--%s refuses %s", async (option, path, found, other) => {
    const ran = await run(["decide", "devices", "--machine", "vm-small", `--${option}`, path]);
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr).toMatch(new RegExp(`: is ${found}, and --${option} takes .*: give it with --${other}\n$`));
  });

  test("of the answer's next can be given back, and then contain the admitted pod", async () => {
    const pod = file(
      "with-uid.yaml",
      "kind: Pod\nmetadata: { name: a, uid: u1 }\nspec:\n  containers: [{ name: c, resources: { limits: { cpu: 2, memory: 1Gi } } }]\n",
    );
    const machine = ["decide", "cpus", "--machine", "xeon-2s", "-o", "json"];
    const first = JSON.parse((await run([...machine, "--pod", pod])).stdout);
    expect(first.decision.assigned).toEqual([{ container: "c", cpus: "1,49", exclusive: true }]);
    const { cpu_manager_state: cpus, memory_manager_state: memory } = first.next.assignments;
    const then = await run([
      ...machine,
      ...["--pods", pod, "--cpu-manager-state", file("cpus", cpus), "--memory-manager-state", file("memory", memory)],
    ]);
    const { decision, needs, next } = JSON.parse(then.stdout);
    expect([decision.startErrors, needs]).toEqual([[], []]);
    expect(decision.assignments).toEqual([
      { pod: { namespace: "default", name: "a", uid: "u1" }, container: "c", cpus: "1,49" },
    ]);
    expect(next).toEqual(first.next);
  });
});
