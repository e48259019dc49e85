import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { must } from "./containerd/pods.ts";
import { NODE_NAME, podOf, SERVES } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";
import { until } from "./pods/until.ts";

const LONG_MS = 300_000;
const CPUS = availableParallelism();
const ALL = `0-${CPUS - 1}`;
const why = noPods("exclusive CPUs") ?? (CPUS < 2 ? "one CPU alone can be nobody's" : undefined);

const exact = (cpu: number) => ({ requests: { cpu, memory: "16Mi" }, limits: { cpu, memory: "16Mi" } });

describe.skipIf(why !== undefined)("exclusive CPUs on live containers", { timeout: LONG_MS }, () => {
  let node: PodNode;
  beforeAll(async () => {
    node = await PodNode.start({
      isMeddled: true,
      configuration: { cpuManagerPolicy: "static", reservedSystemCPUs: "0" },
      settings: { intervalSeconds: 1 },
    });
  }, LONG_MS);
  afterAll(() => node?.stop(), LONG_MS);

  /** A pod whose container first prints which CPUs the shared pod has at that moment, and then its own. */
  const exclusive = async (name: string, cpu: number): Promise<object> => {
    const [shared] = await node.containersOf("shared");
    const looks = `cat /cpusets/kubepods/besteffort/pod*/${shared?.id}/cpuset.cpus; grep Cpus_allowed_list /proc/self/status`;
    return podOf(name, {
      volumes: [{ name: "cpusets", hostPath: { path: join("/sys/fs/cgroup/cpuset", node.cgroupRoot) } }],
      containers: [
        {
          script: `${looks}; ${SERVES}`,
          ...exact(cpu),
          volumeMounts: [{ name: "cpusets", mountPath: "/cpusets", readOnly: true }],
        },
      ],
    });
  };
  /** The content of cpuset.cpus in the kernel. */
  const cpusOf = async (name: string): Promise<string> => {
    const [newest] = await node.containersOf(name);
    const path = node.hierarchy.paths().find((one) => one.endsWith(`/${newest?.id}`)) ?? "/none";
    return node.cgroupFile(path, "cpuset.cpus");
  };
  const cpusBecome = (name: string, cpus: string): Promise<true> =>
    until(`${name} on ${cpus}`, async () => ((await cpusOf(name)) === cpus ? true : undefined));
  /** The first lines that the container printed: the shared pod's CPUs, and its own. */
  const firstOutput = async (name: string): Promise<readonly string[]> => {
    const lines = await until(`the first words of ${name}`, async () => {
      const [newest] = await node.containersOf(name);
      const lines = readFileSync(newest?.logPath ?? "", "utf8").split("\n");
      return lines.length > 2 ? lines : undefined;
    });
    return lines.slice(0, -1).map((line) => line.replace(/^\S+ stdout F (?:Cpus_allowed_list:\s*)?/, ""));
  };
  /** The container runtime's record of RunPodSandbox. */
  const sandboxOf = async (name: string): Promise<object> => {
    const { connection } = node.containerd;
    const { items } = await must(connection.call("ListPodSandbox", {}));
    const { id = "" } = items.find(({ metadata }) => metadata?.name === `${name}-${NODE_NAME}`) ?? {};
    const { info } = await must(connection.call("PodSandboxStatus", { podSandboxId: id, verbose: true }));
    const { resources, overhead } = JSON.parse(info["info"] ?? "{}").config.linux;
    return { resources, overhead };
  };
  const state = () => JSON.parse(readFileSync(join(node.dir, "state/managers/cpu_manager_state"), "utf8"));
  const without = (taken: string): string => {
    const rest = Array.from({ length: CPUS }, (_, i) => i).filter((i) => String(i) !== taken);
    return rest.length === 1 ? `${rest[0]}` : rest.join(",");
  };
  const sameCpus = (list: string): string =>
    list
      .split(",")
      .flatMap((range) => {
        const [from = 0, to = from] = range.split("-").map(Number);
        return Array.from({ length: to - from + 1 }, (_, i) => from + i);
      })
      .join(",");
  let taken = "";

  test("are taken from the other containers before the new container starts", async () => {
    node.put("shared", podOf("shared", { overhead: { memory: "8Mi" } }));
    const daemon = node.startDaemon();
    await daemon.running("shared");
    await cpusBecome("shared", ALL);
    node.put("engine", await exclusive("engine", 1));
    const [engine] = await daemon.running("engine");
    const [others = "", own = ""] = await firstOutput("engine");
    taken = own;
    expect(own).toMatch(/^[1-9]\d*$/);
    expect(sameCpus(others)).toBe(without(own));
    expect([sameCpus(await cpusOf("shared")), await cpusOf("engine")]).toEqual([without(own), own]);
    expect(state()).toMatchObject({ policyName: "static", entries: { [engine?.uid ?? ""]: { app: own } } });
    expect(engine?.containers[0]?.cpuset).toBe(own);
  });

  test("are passed to the sandbox without a CPU quota, and the pod's overhead separately", async () => {
    expect(await sandboxOf("engine")).toEqual({
      resources: { cpu_period: 100_000, cpu_quota: -1, cpu_shares: 1024, memory_limit_in_bytes: 16 * 2 ** 20 },
      overhead: {},
    });
    expect(await sandboxOf("shared")).toEqual({
      resources: { cpu_period: 100_000, cpu_shares: 2 },
      overhead: { cpu_period: 100_000, cpu_shares: 2, memory_limit_in_bytes: 8 * 2 ** 20 },
    });
  });

  test("are restored after a foreign change", async () => {
    const [shared] = await node.containersOf("shared");
    const path = node.hierarchy.paths().find((one) => one.endsWith(`/${shared?.id}`)) ?? "";
    const written = await node.hierarchy.write(path, "cpuset.cpus", ALL);
    expect(written.ok).toBe(true);
    await until("the shared CPUs", async () =>
      sameCpus(await cpusOf("shared")) === without(taken) ? true : undefined,
    );
  });

  test("are refused in the kubelet's words when too few are free, and granted once they are", async () => {
    const { daemon } = node;
    const rest = CPUS - 1;
    node.put("second", await exclusive("second", rest));
    const refused = await daemon.pod("second", "refused", ({ refusal }) => refusal !== null);
    expect([refused.phase, refused.state, refused.reason]).toEqual(["Pending", "pending", "UnexpectedAdmissionError"]);
    const words = `Allocate failed due to not enough cpus available to satisfy request: requested=${rest}, available=${rest - 1}, which is unexpected`;
    expect(refused.refusal?.message).toBe(words);
    expect(refused.message).toMatch(
      /^Pod was rejected: Allocate failed due to .* \(after \d+ tr(?:y|ies); it is tried again /,
    );
    expect(await node.containersOf("second")).toEqual([]);
    node.remove("engine");
    await daemon.running("second");
    const [others = "", own = ""] = await firstOutput("second");
    expect(sameCpus(own)).toBe(without("0"));
    expect(others).toBe("0");
    node.remove("second");
    await daemon.gone("second");
    await cpusBecome("shared", ALL);
    expect(state().entries).toBeUndefined();
  });

  test("are given to nobody else when the daemon is killed during a start", async () => {
    const reached = node.hangAt("CreateContainer", "before");
    node.put("engine", await exclusive("engine", 1));
    await reached;
    const { entries } = state();
    expect(Object.values(entries)).toEqual([{ app: taken }]);
    expect(sameCpus(await cpusOf("shared"))).toBe(without(taken));
    await node.daemon.kill();
    node.meddling = {};
    const daemon = node.startDaemon();
    await daemon.running("shared", "engine");
    const [others = "", own = ""] = await firstOutput("engine");
    expect([own, sameCpus(others)]).toEqual([taken, without(taken)]);
    expect(state().entries).toEqual(entries);
    node.remove("engine");
    await daemon.gone("engine");
    await cpusBecome("shared", ALL);
  });

  test("are kept by a daemon that plays another kubelet version, with that version's state format", async () => {
    node.put("engine", await exclusive("engine", 1));
    const [engine] = await node.daemon.running("engine");
    const [before] = await node.containersOf("engine");
    const { entries } = state();
    expect(Object.keys(entries)).toEqual([engine?.uid]);
    for (const kubeletVersion of ["1.34", "1.37", "1.35", "1.36", "1.37"]) {
      await node.daemon.stop();
      const daemon = node.startDaemon({ kubeletVersion });
      await daemon.running("engine", "shared");
      // a pod is added and removed, so that the daemon writes the file
      node.put("guest", podOf("guest", { containers: [{ script: SERVES }] }));
      await daemon.running("guest");
      node.remove("guest");
      await daemon.gone("guest");
      await until(`the form of ${kubeletVersion}`, async () =>
        "data" in state() === (kubeletVersion === "1.37") ? true : undefined,
      );
      expect(state()).toMatchObject({ policyName: "static", entries });
      const [now] = await node.containersOf("engine");
      expect([now?.id, now?.attempt, await cpusOf("engine")]).toEqual([before?.id, 0, taken]);
      expect((await (await fetch(`${node.statusUrl}/v1/status`)).json()) as object).toMatchObject({ problems: [] });
    }
    node.remove("engine");
    await node.daemon.gone("engine");
  });
});
