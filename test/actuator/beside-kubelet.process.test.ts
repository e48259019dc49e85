import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { basename, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Journal } from "../../actuator/apply/journal.ts";
import { openHierarchy } from "../../actuator/cgroupfs/open.ts";
import { localClient } from "../../actuator/client/local-client.ts";
import { type ActuatorConfig, actuatorConfig } from "../../actuator/core/config.ts";
import { FactsStore } from "../../actuator/core/facts-file.ts";
import type { Problem } from "../../actuator/core/interfaces.ts";
import { InterruptibleSleep, Notices } from "../../actuator/core/notices.ts";
import { readConfiguration } from "../../actuator/daemon/configuration-file.ts";
import { openMetrics } from "../../actuator/daemon/open-metrics.ts";
import { readStateFiles } from "../../actuator/machine/files.ts";
import { observeMachine } from "../../actuator/machine/observe.ts";
import { CgroupsDaemon } from "../../actuator/main.ts";
import { podsSource } from "../../actuator/manifests/pods-source.ts";
import { type PassReport, runPass } from "../../actuator/pass/loop.ts";
import { passLine } from "../../api/cli/actuator/pass-text.ts";
import { v1_36 } from "../../api/profiles/v1_36.ts";
import { ended, printed, run, start } from "../cli/run.ts";
import { freePort } from "../e2e/pods/port.ts";
import { podYaml } from "../kit/manifests.ts";
import { captured, capturedText, realNode } from "../kit/real-node.ts";
import { mountinfoV1 } from "./cgroups/sim-v1.ts";
import { plantMachine } from "./machine/plant.ts";
import { scratch } from "./manifests/scratch.ts";

const CONTROLLERS = ["cpu", "cpuset", "memory", "pids", "cpuacct"];
const TOKEN = "kubelet-token";

/** Writes the cgroups that a real kubelet 1.36.3 left with 11 pods, as directories and text files. */
function plantCgroups(): string {
  const root = scratch({});
  const tree = captured("cgroups.json") as Record<string, Record<string, unknown>>;
  for (const path of ["/", ...Object.keys(tree)])
    for (const controller of CONTROLLERS) {
      mkdirSync(join(root, controller, path), { recursive: true });
      writeFileSync(join(root, controller, path, "cgroup.procs"), "");
    }
  // the files of the root cgroup, which describe the machine
  writeFileSync(join(root, "cpuset/cpuset.cpus"), "0-1\n");
  writeFileSync(join(root, "cpuset/cpuset.mems"), "0\n");
  for (const [path, files] of Object.entries(tree))
    for (const [file, value] of Object.entries(files))
      if (typeof value === "string")
        writeFileSync(join(root, file.split(".")[0] as string, path, file), `${value.replaceAll("; ", "\n")}\n`);
  return root;
}
/** Every file with its content and its modification time. */
const fileStates = (root: string): readonly string[] =>
  readdirSync(root, { recursive: true, encoding: "utf8" }).map((name) => {
    const { mtimeMs, mode, ino } = statSync(join(root, name));
    return `${name} ${mode} ${ino} ${mtimeMs}`;
  });

/** Serves a kubelet's /pods to callers that send the token. */
async function kubelet(pods = capturedText("pods.json")): Promise<string> {
  const server = createServer((request, response) => {
    if (request.url !== "/pods" || request.headers.authorization !== `Bearer ${TOKEN}`) response.writeHead(401).end();
    else response.writeHead(200, { "content-type": "application/json" }).end(pods);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/pods`;
}

/** The ports of a daemon in observe mode. */
async function portsOver(
  cgroups: string,
  onProblem: (problem: Problem) => void,
  settings: Parameters<typeof actuatorConfig>[0] = {},
) {
  const files = scratch({ token: TOKEN });
  const checked = actuatorConfig({
    mode: "observe",
    cgroupRoot: "/",
    stateDir: scratch({}),
    nodeName: "n1",
    podsUrl: await kubelet(),
    podsTokenFile: join(files, "token"),
    kubeletConfiguration: realNode("configz.json"),
    ...settings,
  });
  if (!checked.ok) throw new Error(checked.error);
  const config: ActuatorConfig = checked.value;
  const hierarchy = openHierarchy({ mountRoot: cgroups, root: "/", access: "read", mountinfo: mountinfoV1(cgroups) });
  const journal = Journal.open(join(config.stateDir, "journal.jsonl"), "boot");
  if (!hierarchy.ok || !journal.ok) throw new Error("no hierarchy or journal");
  const machine = plantMachine("kubelet-n1");
  const ports = {
    observeMachine: () => observeMachine({ root: machine }),
    readPods: podsSource(config),
    readConfiguration: () => readConfiguration(config.kubeletConfiguration, v1_36),
    readStateFiles: () => readStateFiles(realNode("")),
    client: localClient(new FactsStore(config.stateDir, (message) => onProblem({ from: "memory", message }))),
    hierarchy: hierarchy.value,
    journal: journal.value,
    lastPassCgroups: { current: null },
  };
  return { config, ports };
}

/** The result of one pass of the daemon. */
async function observed(cgroups: string) {
  const problems: Problem[] = [];
  const onProblem = (problem: Problem): void => void problems.push(problem);
  const { config, ports } = await portsOver(cgroups, onProblem);
  const stopping = new AbortController();
  let report: PassReport | undefined;
  const onPass = (seen: PassReport): void => {
    report = seen;
    stopping.abort();
  };
  const notices = new Notices(onProblem);
  const turns = { notices, pace: new InterruptibleSleep(stopping.signal), metrics: await openMetrics(config) };
  const observer = await CgroupsDaemon.open(ports, { config, onPass, onProblem }, turns);
  await observer.runUntil(stopping.signal);
  if (report === undefined) throw new Error("no pass");
  return { report, status: observer.status(), problems };
}

test("an observer finds no drift in a real kubelet's cgroups, and changes nothing", async () => {
  const cgroups = plantCgroups();
  const before = fileStates(cgroups);
  const { report, status, problems } = await observed(cgroups);
  expect(problems.filter(({ from }) => from !== "pods" && from !== "state-files")).toEqual([]);
  expect(report.cgroups?.cgroups.length).toBe(28);
  expect(report.drift).toEqual([]);
  expect(report.applied?.results).toEqual([]);
  expect(fileStates(cgroups)).toEqual(before);
  expect(status).toMatchObject({ mode: "observe", runsPods: false, nodeName: "n1" });
  const shown = status.pods.find(({ name }) => name === "burst-lim");
  expect(shown).toMatchObject({ namespace: "default", phase: "Running", qos: "Burstable", state: "active" });
  expect(shown?.containers[0]).toMatchObject({ state: "running", ready: true });
  expect(shown?.cgroups[0]?.files.find(({ file }) => file === "cpu.shares")).toEqual({
    file: "cpu.shares",
    wanted: "102",
    actual: "102",
  });
});

test("an observer reports a foreign change with file and both values, and leaves it", async () => {
  const cgroups = plantCgroups();
  const file = join(cgroups, "cpu/kubepods/burstable/podf81371c9-58da-410f-a56f-5314242fe74f/cpu.shares");
  expect(readFileSync(file, "utf8")).toBe("102\n");
  writeFileSync(file, "77\n");
  const before = fileStates(cgroups);
  const { report, status, problems } = await observed(cgroups);
  const [drift, ...others] = report.drift;
  expect(drift).toMatchObject({ file: "cpu.shares", wanted: "102", actual: "77" });
  expect(others).toEqual([]);
  expect(report.applied?.results.map((result) => result.status)).toEqual(["planned"]);
  expect(fileStates(cgroups)).toEqual(before);
  expect(status.pass?.drift).toBe(1);
  const path = "/kubepods/burstable/podf81371c9-58da-410f-a56f-5314242fe74f";
  const row = { path, file: "cpu.shares", actual: "77", wanted: "102", cause: "never_written" };
  expect(status.pass?.drifted).toEqual([row]);
  expect(problems.map(({ message }) => message)).toContain(
    `drift: ${path} cpu.shares: found 77, wanted 102 (never_written)`,
  );
  // drift is not a problem of the daemon
  expect(status.problems.filter((one) => one.includes("drift"))).toEqual([]);
  const shown = status.pods.find(({ name }) => name === "burst-lim");
  expect(shown?.cgroups[0]?.files.find((f) => f.file === "cpu.shares")?.actual).toBe("77");
});

test("with a standalone kubelet the QoS cgroups are compared only where standaloneKubelet is set", async () => {
  const cgroups = plantCgroups();
  // a higher value than the listed pods need; pods that are not listed could explain it
  writeFileSync(join(cgroups, "cpu/kubepods/burstable/cpu.shares"), "9999\n");
  const list = captured("pods.json");
  for (const { metadata } of list.items) metadata.annotations = { "kubernetes.io/config.source": "file" };
  const podsUrl = await kubelet(JSON.stringify(list));
  const drifted = async (standaloneKubelet: boolean) => {
    const { config, ports } = await portsOver(cgroups, () => {}, { podsUrl, standaloneKubelet });
    return (await runPass(ports, config, 1)).drift.map(({ path, file, actual }) => `${path} ${file} ${actual}`);
  };
  expect(await drifted(false)).toEqual([]);
  expect(await drifted(true)).toEqual(["/kubepods/burstable cpu.shares 9999"]);
});

test("new and just outdated values are no drift for one pass, a foreign change is drift at once", async () => {
  const cgroups = plantCgroups();
  const { config, ports } = await portsOver(cgroups, () => {});
  const pod = join(cgroups, "cpu/kubepods/burstable/podf81371c9-58da-410f-a56f-5314242fe74f");
  const reportOf = async () => {
    const report = await runPass(ports, config, 1);
    const differing = /(\d+) files? with a wrong value/.exec(passLine(report))?.[1] ?? "0";
    return [Number(differing), report.drift.map(({ cause }) => cause)];
  };
  const { cgroups: decided } = await runPass(ports, config, 1);
  const own = decided?.cgroups.find(({ path, level }) => level === "container" && path.includes(basename(pod)));
  const container = join(cgroups, "cpu", own?.path ?? "none");
  expect(readFileSync(join(container, "cpu.shares"), "utf8")).toBe("102\n");
  rmSync(container, { recursive: true });
  expect(await reportOf()).toEqual([0, []]);
  // the container is started, and the kubelet has not written its cgroup yet
  mkdirSync(container);
  writeFileSync(join(container, "cgroup.procs"), "");
  writeFileSync(join(container, "cpu.shares"), "1024\n");
  expect(await reportOf()).toEqual([0, ["new_cgroup"]]);
  expect(await reportOf()).toEqual([1, ["never_written"]]);
  writeFileSync(join(container, "cpu.shares"), "102\n");
  expect(await reportOf()).toEqual([0, []]);
  writeFileSync(join(pod, "cpu.shares"), "77\n");
  expect(await reportOf()).toEqual([1, ["never_written"]]);
});

test("`nodewise pods` of an observing daemon shows what it compares and which settings would run pods", async () => {
  const dir = scratch({ "pods/a.yaml": podYaml("a") });
  const places = ["--state-dir", join(dir, "state"), "--cgroup-mount", join(dir, "none"), "--node-name", "n1"];
  const child = start(["actuator", "--manifests", join(dir, "pods"), ...places, "--status-listen", "127.0.0.1:0"]);
  const end = ended(child);
  try {
    await printed(child, /cgroups decided/);
    child.kill("SIGTERM");
    expect((await end).code).toBe(0);
    const shown = await run(["pods", "--state-dir", join(dir, "state")]);
    expect(shown.stdout).toContain("n1 · observe: nothing is started or written · runs no pods · pass 1");
    // there are no cgroups to compare, and no pass has looked at the pod
    expect(shown.stdout).toContain("0 written, nothing compared, decided here\n");
    expect(shown.stdout).toMatch(/default +a-n1 +– +– +– +BestEffort +–\n/);
    expect(shown.stdout).toContain("With `mode: enforce` and `pods: enforce` in its settings it runs pods itself.");
  } finally {
    child.kill("SIGKILL");
  }
});

test("an observer serves its status on --status-listen, and is ready without a container runtime", async () => {
  const port = await freePort();
  const dir = scratch({});
  const places = ["--state-dir", join(dir, "state"), "--cgroup-mount", join(dir, "none")];
  const times = ["--interval-seconds", "3600"];
  const child = start(["actuator", ...places, ...times, "--status-listen", `127.0.0.1:${port}`]);
  const end = ended(child);
  try {
    await printed(child, /cgroups decided/);
    const get = async (path: string) => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`);
      return [response.status, await response.text()] as const;
    };
    expect(await get("/readyz")).toEqual([200, '{"ready":true,"reasons":[]}\n']);
    expect((await get("/metrics"))[1]).toMatch(/^nodewise_decisions_total\{kind="cgroups",by="here"\} 1$/m);
    child.kill("SIGTERM");
    expect((await end).code).toBe(0);
  } finally {
    child.kill("SIGKILL");
  }
});
