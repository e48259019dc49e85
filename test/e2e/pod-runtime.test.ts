import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { containerLayers, KnownReadiness, openPodRuntime, runtimeVersion } from "../../actuator/containerd/pods.ts";
import { giveAddresses } from "./containerd/cni.ts";
import { APP, NAMESPACES, type OwnPod, PodRuntimeFixture } from "./containerd/pod-runtime-kit.ts";
import { must } from "./containerd/pods.ts";
import { whyNoContainerd } from "./containerd/start.ts";
import { openOwn } from "./own-cgroups.ts";
import { until, WAITS } from "./pods/until.ts";

const START_MS = 300_000;
const TEST_MS = 300_000;
const MIB = 1024 * 1024;
const GONE = "0".repeat(64);
const SLEEP = ["sleep", "1000000"];

const opened = openOwn("pods");
const cgroupV1 = opened.ok && opened.value.version === 1;
const why = whyNoContainerd() ?? (cgroupV1 ? undefined : "no cgroup v1 is mounted");
if (why !== undefined) {
  if (process.env["CI"] === "true") throw new Error(`CI must run the tests of pods on containerd: ${why}`);
  console.warn(`skipped pods on containerd end to end: ${why}`);
}

describe.skipIf(why !== undefined)("pods on a real containerd", { timeout: TEST_MS }, () => {
  let ground: PodRuntimeFixture;
  /** The values of its cgroup were written before the sandbox started. */
  let web: OwnPod;
  beforeAll(async () => {
    if (!opened.ok) throw new Error(opened.error.message);
    ground = await PodRuntimeFixture.start(opened.value);
    web = await ground.pod("web", { "cpu.shares": "512", "memory.limit_in_bytes": String(256 * MIB) });
  }, START_MS);
  afterAll(() => ground?.stop(), START_MS);

  test("the runtime is ready, and its network is not without CNI", async () => {
    const { connection } = ground.containerd;
    const { name, version } = await must(runtimeVersion(connection));
    expect(name).toBe("containerd");
    expect(version).toMatch(/^v?\d+\.\d+\.\d+/);
    const readiness = new KnownReadiness(connection);
    await readiness.refresh(true);
    expect(readiness.faults).toEqual([expect.stringMatching(/NetworkReady=false reason:NetworkPluginNotReady/)]);
  });

  test("a pod with its own network is refused without CNI, and its leftovers are removed later", async () => {
    const { runtime } = ground;
    const named = (name: string) => ({
      ...web.config,
      metadata: { ...web.config.metadata, name, uid: `uid-${name}` },
      linux: { ...web.config.linux, securityContext: { namespaceOptions: { ...NAMESPACES, network: "POD" } as const } },
    });
    const refused = await runtime.runSandbox(named("early"));
    expect(refused).toMatchObject({ ok: false, error: { call: "RunPodSandbox", code: "UNKNOWN" } });
    expect(refused.ok ? "" : refused.error.message).toMatch(/cni plugin not initialized/);
    const left = (await must(runtime.pods())).get("uid-early")?.sandboxes ?? [];
    expect(left.map(({ isReady, ips }) => [isReady, ips])).toEqual(left.map(() => [false, []]));

    await giveAddresses(ground.containerd, "10.9.8.7", "fd00::7");
    for (const { id } of left) {
      await must(runtime.stopSandbox(id));
      await must(runtime.removeSandbox(id));
    }
    const id = await must(runtime.runSandbox(named("late")));
    const pods = await must(runtime.pods());
    expect(pods.has("uid-early")).toBe(false);
    expect(pods.get("uid-late")?.sandboxes).toMatchObject([{ id, isReady: true, ips: ["10.9.8.7", "fd00::7"] }]);
    await must(runtime.stopSandbox(id));
    const stopped = await must(runtime.pods());
    expect(stopped.get("uid-late")?.sandboxes).toMatchObject([{ id, isReady: false, ips: [] }]);
    await must(runtime.removeSandbox(id));
  });

  test("resources are set in the container's cgroup below the pod's, which stays as it was written", async () => {
    const cpus = ground.file("/", "cpuset.cpus");
    const id = await ground.run(web, {
      name: "sized",
      command: SLEEP,
      linux: {
        resources: {
          cpuShares: 204,
          cpuQuota: 20_000,
          cpuPeriod: 100_000,
          memoryLimitInBytes: 64 * MIB,
          cpusetCpus: "0",
          cpusetMems: "0",
          oomScoreAdj: 999,
        },
      },
    });
    const cgroup = `${web.cgroup}/${id}`;
    const values = (...files: string[]) => files.map((file) => ground.file(cgroup, file));
    const cpuAndMemory = ["cpu.shares", "cpu.cfs_quota_us", "cpu.cfs_period_us", "memory.limit_in_bytes"];
    expect(values(...cpuAndMemory, "cpuset.cpus", "cpuset.mems")).toEqual([
      "204",
      "20000",
      "100000",
      String(64 * MIB),
      "0",
      "0",
    ]);
    expect(ground.hierarchy.processes(cgroup)).toBe(1);
    expect(await ground.print(id, "cat", "/proc/1/oom_score_adj")).toBe("999");
    expect(ground.file(web.cgroup, "cpu.shares")).toBe("512");
    expect(ground.file(web.cgroup, "memory.limit_in_bytes")).toBe(String(256 * MIB));

    await must(ground.runtime.updateContainer(id, { cpuShares: 512, cpusetCpus: cpus }));
    // the update keeps limits that it does not name
    expect(values(...cpuAndMemory, "cpuset.cpus")).toEqual(["512", "20000", "100000", String(64 * MIB), cpus]);
    await must(
      ground.runtime.updateContainer(id, { cpuQuota: 50_000, cpuPeriod: 100_000, memoryLimitInBytes: 96 * MIB }),
    );
    expect(values(...cpuAndMemory)).toEqual(["512", "50000", "100000", String(96 * MIB)]);
    await must(ground.runtime.updateContainer(id, { cpuQuota: -1 }));
    expect(values("cpu.cfs_quota_us")).toEqual(["-1"]);
    const wrong = await ground.runtime.updateContainer(id, { cpusetCpus: "999" });
    expect(wrong).toMatchObject({ ok: false, error: { call: "UpdateContainerResources" } });
    expect(values("cpuset.cpus")).toEqual([cpus]);
    expect(await ground.reportOf(id)).toMatchObject({ state: "running" });
  });

  test("a container sees its environment, directories and mounts, and its log has CRI's format", async () => {
    const files = join(dirname(ground.containerd.podLogs), "files");
    mkdirSync(files);
    writeFileSync(join(files, "greeting"), "hello");
    const id = await ground.run(web, {
      name: "inside",
      command: ["sh", "-c", "echo out; echo err >&2; printf part; exec /bin/busybox sleep $0"],
      args: ["1000000"],
      workingDir: "/bin",
      envs: [
        { key: "PLAIN", value: "a=b c" },
        { key: "ODD", value: "ümlaut\n$(PLAIN)" },
        { key: "EMPTY", value: "" },
      ],
      mounts: [
        { containerPath: "/read", hostPath: files, readonly: true },
        { containerPath: "/written", hostPath: files },
        { containerPath: "/etc/hosts", hostPath: join(files, "greeting"), readonly: true },
      ],
    });
    const print = (...command: string[]) => ground.print(id, ...command);
    const shell = (line: string) => print("sh", "-c", line);
    expect(await print("pwd")).toBe("/bin");
    expect(await shell('printf "%s|%s|" "$PLAIN" "$ODD"; env | grep EMPTY')).toBe("a=b c|ümlaut\n$(PLAIN)|EMPTY=");
    expect(await print("cat", "/read/greeting", "/etc/hosts")).toBe("hellohello");
    expect(await shell("echo more >/read/no")).toContain("Read-only file system");
    expect(await shell("echo more >/written/file; cat /read/file")).toBe("more");
    expect(readFileSync(join(files, "file"), "utf8")).toBe("more\n");
    const reported = await ground.reportOf(id);
    expect(reported?.logPath).toBe(join(web.config.logDirectory ?? "", "inside/0.log"));
    // the runtime writes a line after the process has written it
    const log = await until("both lines in the log", () => {
      const lines = readFileSync(reported?.logPath ?? "", "utf8").split("\n");
      return lines.length > 2 ? lines.slice(0, -1) : undefined;
    });
    expect(log.filter((line) => !/^\d{4}-\d\d-\d\dT\S+ std(?:out|err) [FP] \S+$/.test(line))).toEqual([]);
    expect(log.map((line) => line.split(" ").slice(1).join(" ")).toSorted()).toEqual(["stderr F err", "stdout F out"]);
  });

  test("the security context is in force inside the container", async () => {
    const id = await ground.run(web, {
      name: "secure",
      command: SLEEP,
      linux: {
        securityContext: {
          namespaceOptions: NAMESPACES,
          runAsUser: { value: 1234 },
          runAsGroup: { value: 3000 },
          supplementalGroups: [4000],
          readonlyRootfs: true,
          noNewPrivs: true,
          capabilities: { addCapabilities: [], dropCapabilities: ["ALL"] },
          seccomp: { profileType: "RuntimeDefault" },
          maskedPaths: ["/proc/keys"],
          readonlyPaths: ["/proc/sys"],
        },
      },
    });
    expect(await ground.print(id, "id")).toMatch(/^uid=1234 gid=3000 groups=3000,4000$/);
    expect(await ground.print(id, "touch", "/tmp-file")).toContain("Read-only file system");
    const status = await ground.print(id, "grep", "-E", "^(CapEff|CapBnd|NoNewPrivs|Seccomp):", "/proc/1/status");
    expect(status.split("\n").map((line) => line.split(/\s+/))).toEqual([
      ["CapEff:", "0000000000000000"],
      ["CapBnd:", "0000000000000000"],
      ["NoNewPrivs:", "1"],
      ["Seccomp:", "2"],
    ]);
    expect(await ground.print(id, "cat", "/proc/keys")).toBe("");

    const plain = await ground.run(web, {
      name: "plain",
      command: SLEEP,
      linux: {
        securityContext: {
          namespaceOptions: NAMESPACES,
          capabilities: { addCapabilities: ["NET_ADMIN"], dropCapabilities: [] },
          seccomp: { profileType: "Unconfined" },
        },
      },
    });
    expect(await ground.print(plain, "id", "-u")).toBe("0");
    expect(await ground.print(plain, "touch", "/tmp-file")).toBe("");
    const more = await ground.print(plain, "grep", "-E", "^(CapEff|Seccomp):", "/proc/1/status");
    const [, effective = "0", seccomp] = /CapEff:\s+(\w+)\s+Seccomp:\s+(\d)/.exec(more) ?? [];
    expect(seccomp).toBe("0");
    expect((BigInt(`0x${effective}`) >> 12n) & 1n).toBe(1n);
  });

  test("a container's end is reported with exit code and reason: success, failure and OOM kill", async () => {
    const [well, badly, hungry] = await Promise.all([
      ground.run(web, { name: "well", command: ["true"] }),
      ground.run(web, { name: "badly", attempt: 4, command: ["sh", "-c", "exit 3"] }),
      ground.run(web, {
        name: "hungry",
        // the runtime watches for OOM events only after the container has started
        command: ["sh", "-c", "sleep 3; exec tail /dev/zero"],
        linux: { resources: { memoryLimitInBytes: 16 * MIB, memorySwapLimitInBytes: 16 * MIB } },
      }),
    ]);
    const end = await ground.ended(well);
    expect(end).toMatchObject({ state: "exited", exitCode: 0, reason: "Completed", attempt: 0, name: "well" });
    expect(end.createdAtMs).toBeLessThanOrEqual(end.startedAtMs ?? 0);
    // containerd 2.x takes the start time after the process has started, so a short life may end milliseconds before it
    expect(end.createdAtMs).toBeLessThanOrEqual(end.finishedAtMs ?? 0);
    expect(Math.abs(Date.now() - (end.finishedAtMs ?? 0))).toBeLessThan(TEST_MS);
    expect(await ground.ended(badly)).toMatchObject({ exitCode: 3, reason: "Error", attempt: 4 });
    // the runtime may report the exit first and its cause later
    await expect.poll(async () => (await ground.ended(hungry)).reason, WAITS).toBe("OOMKilled");
    expect(await ground.ended(hungry)).toMatchObject({ exitCode: 137, reason: "OOMKilled" });
  });

  test("a stop is signalled within the grace period, and a kill follows it", async () => {
    const waits = "echo ready; while true; do /bin/busybox sleep 0.05; done";
    const trap = (then: string) => ["sh", "-c", `trap '${then}' TERM; ${waits}`];
    /** A line of the container's log, as soon as it has been written. */
    const says = async (id: string, line: string): Promise<string> => {
      const { logPath = "" } = (await ground.reportOf(id)) ?? {};
      return until(line, () => readFileSync(logPath, "utf8").match(`stdout F ${line}\n`)?.[0]);
    };
    const [polite, deaf, next] = await Promise.all([
      ground.run(web, { name: "polite", command: trap("echo bye; exit 7") }),
      ground.run(web, { name: "deaf", command: trap("echo no") }),
      ground.run(web, { name: "next", command: SLEEP }),
    ]);
    for (const id of [polite, deaf]) await says(id, "ready");
    const stopMs = async (id: string, graceSeconds: number) => {
      const from = performance.now();
      await must(ground.runtime.stopContainer(id, graceSeconds));
      return performance.now() - from;
    };
    expect(await stopMs(polite, 30)).toBeLessThan(20_000);
    expect(await ground.reportOf(polite)).toMatchObject({ state: "exited", exitCode: 7, reason: "Error" });
    expect(await stopMs(deaf, 1)).toBeGreaterThan(990);
    expect(await ground.reportOf(deaf)).toMatchObject({ state: "exited", exitCode: 137, reason: "Error" });
    await says(deaf, "no");
    await must(ground.runtime.stopContainer(next, 0));
    expect(await ground.reportOf(next)).toMatchObject({ state: "exited", exitCode: 137 });
  });

  test("exec returns output and exit code, and an error on timeout or for a missing program", async () => {
    const id = await ground.run(web, { name: "host", command: SLEEP });
    const exec = (timeoutSeconds: number, ...command: string[]) => ground.runtime.exec(id, command, timeoutSeconds);
    const script = "echo out; echo ümlaut >&2; exit 5";
    expect(await must(exec(10, "/bin/busybox", "sh", "-c", script))).toEqual({
      exitCode: 5,
      stdout: "out\n",
      stderr: "ümlaut\n",
    });
    const late = await exec(1, "/bin/busybox", "sleep", "20");
    expect(late).toMatchObject({ ok: false, error: { call: "ExecSync", code: "DEADLINE_EXCEEDED" } });
    expect(late.ok ? "" : late.error.message).toMatch(/timeout 1s exceeded/);
    expect(late.ok ? "" : late.error.message).not.toMatch(/hangs/);
    const missing = await exec(10, "/bin/nothing");
    expect(missing).toMatchObject({ ok: false, error: { call: "ExecSync" } });
    expect(missing.ok ? "" : missing.error.message).toMatch(/\/bin\/nothing.*no such file/);
  });

  test("images are found, reported as missing, or fail to be pulled with the reason", async () => {
    const { runtime, containerd } = ground;
    const numbered = await containerd.importImage({ name: "nodewise.test/numbered:1", sizeBytes: 9, user: "1234:5" });
    await containerd.importImage({ name: "nodewise.test/named:1", sizeBytes: 9, user: "nobody" });
    const here = await must(runtime.image("nodewise.test/numbered:1"));
    expect(here).toEqual({ id: numbered.id, user: "1234", sizeBytes: expect.any(Number) });
    expect(await must(runtime.image(numbered.id))).toEqual(here);
    expect(await must(runtime.image("nodewise.test/named:1"))).toMatchObject({ user: "nobody" });
    expect(await must(runtime.image(APP))).toMatchObject({ user: null });
    expect(await must(runtime.image("nodewise.test/never:1"))).toBeNull();
    // the container is created with the image's id, as the kubelet does, and reported with the image's name
    const app = (await must(runtime.image(APP)))?.id ?? "";
    const image = { image: app, userSpecifiedImage: APP };
    const held = await ground.create(web, { name: "by-id", command: SLEEP, image });
    expect(await ground.reportOf(held)).toMatchObject({ image: APP, imageId: app, state: "created" });
    const pulled = await runtime.pull("localhost:1/never:1");
    expect(pulled).toMatchObject({ ok: false, error: { call: "PullImage" } });
    expect(pulled.ok ? "" : pulled.error.message).toMatch(/localhost:1\/never:1.*connection refused/);
  });

  test("creating a container fails for a missing image, and starting one for a missing program", async () => {
    const { runtime } = ground;
    const named = (name: string) => ({ metadata: { name, attempt: 0 }, logPath: `${name}.log` });
    const noImage = await runtime.createContainer(
      web.sandboxId,
      { ...named("no-image"), image: { image: "nodewise.test/never:1" } },
      web.config,
    );
    expect(noImage).toMatchObject({ ok: false, error: { call: "CreateContainer", code: "NOT_FOUND" } });
    const program = { ...named("no-program"), image: { image: APP }, command: ["/bin/nothing"] };
    const id = await must(runtime.createContainer(web.sandboxId, program, web.config));
    expect(await ground.reportOf(id)).toMatchObject({ state: "created", startedAtMs: null, finishedAtMs: null });
    const started = await runtime.startContainer(id);
    expect(started).toMatchObject({ ok: false, error: { call: "StartContainer" } });
    expect(started.ok ? "" : started.error.message).toMatch(/\/bin\/nothing.*no such file/);
    expect(await ground.reportOf(id)).toMatchObject({
      state: "exited",
      exitCode: 128,
      reason: "StartError",
      message: expect.stringContaining("/bin/nothing"),
    });
    expect(await runtime.createContainer(GONE, program, web.config)).toMatchObject({ ok: false });
  });

  test("stopping and removing a container or sandbox that is gone succeeds", async () => {
    const { runtime } = ground;
    const pod = await ground.pod("gone");
    const id = await ground.run(pod, { name: "app", command: SLEEP });
    for (let i = 0; i < 2; i++) {
      await must(runtime.stopContainer(id, 0));
      await must(runtime.removeContainer(id));
      await must(runtime.stopSandbox(pod.sandboxId));
      expect((await must(runtime.pods())).get("uid-gone")?.sandboxes.map(({ isReady }) => isReady)).toEqual(
        i === 0 ? [false] : undefined,
      );
      await must(runtime.removeSandbox(pod.sandboxId));
    }
    await must(runtime.stopContainer(GONE, 0));
    await must(runtime.stopSandbox(GONE));
    // the runtime leaves the directories of the pod's cgroup to the actuator
    expect(ground.hierarchy.paths()).toContain(pod.cgroup);
    expect(ground.hierarchy.processes(pod.cgroup)).toBe(0);
  });

  test("the bytes that a container wrote are measured as its writable layer", async () => {
    const id = await ground.run(web, {
      name: "writer",
      command: ["sh", "-c", "dd if=/dev/zero of=/big bs=1M count=3; exec /bin/busybox sleep 1000000"],
    });
    const measured = async () => (await must(containerLayers(ground.containerd.connection))).get(id)?.usedBytes ?? 0;
    await expect.poll(measured, WAITS).toBeGreaterThanOrEqual(3 * MIB);
    expect(await measured()).toBeLessThan(4 * MIB);
    await must(ground.runtime.stopContainer(id, 0));
    expect(await measured()).toBeGreaterThanOrEqual(3 * MIB);
  });

  test("a runtime that was killed and restarted reports the same pods to the same client", async () => {
    const { containerd, runtime } = ground;
    const before = await must(runtime.pods());
    expect([...before.keys()]).toEqual(["uid-web"]);
    const pod = before.get("uid-web");
    expect(pod).toMatchObject({ namespace: "shop", name: "web", uid: "uid-web" });
    expect(pod?.sandboxes).toEqual([
      {
        id: web.sandboxId,
        attempt: 0,
        isReady: true,
        createdAtMs: expect.any(Number),
        ips: [],
        labels: web.config.labels,
        annotations: web.config.annotations,
      },
    ]);
    expect(pod?.containers.length).toBeGreaterThan(10);
    expect(pod?.containers.map(({ createdAtMs }) => createdAtMs)).toEqual(
      pod?.containers.map(({ createdAtMs }) => createdAtMs).toSorted((a, b) => b - a),
    );
    expect(await must(runtime.pods())).toBe(before);

    await containerd.halt("SIGKILL");
    expect(await runtime.pods()).toMatchObject({ ok: false, error: { code: "UNAVAILABLE" } });
    await containerd.resume();
    expect(await must(runtime.pods())).toBe(before);
    const fresh = openPodRuntime({ endpoint: containerd.endpoint });
    if (!fresh.ok) throw new Error(fresh.error);
    const again = await must(fresh.value.pods());
    fresh.value.close();
    expect(again).toEqual(before);
    // the pods are not requested while the runtime is stopped
    await containerd.halt("SIGKILL");
    await containerd.resume();
    expect(await must(runtime.pods())).toBe(before);
    const running = pod?.containers.find(({ state }) => state === "running");
    expect(await ground.print(running?.id ?? "", "echo", "here")).toBe("here");
  });
});
