import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CriMethod } from "../../actuator/containerd/messages.ts";
import { podOf, SERVES } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";
import { until } from "./pods/until.ts";

const LONG_MS = 300_000;
const COMING: readonly CriMethod[] = ["RunPodSandbox", "CreateContainer", "StartContainer"];
const LEAVING: readonly CriMethod[] = ["StopContainer", "StopPodSandbox", "RemoveContainer", "RemovePodSandbox"];
const momentsOf = (methods: readonly CriMethod[]) =>
  methods.flatMap((method) => (["before", "after"] as const).map((where) => ({ method, where })));
const MANY = ["one", "two", "three", "four"];
/** Milliseconds after the process was started: before it reads its settings, while it starts pods, and after that. */
const DELAYS_MS = [300, 800, 1300, 1900];
const why = noPods("a daemon that is killed");

describe.skipIf(why !== undefined)("a daemon that is killed", { timeout: LONG_MS }, () => {
  let node: PodNode;
  beforeAll(async () => {
    node = await PodNode.start({ isMeddled: true });
    mkdirSync(join(node.dir, "starts"));
  }, LONG_MS);
  afterAll(() => node?.stop(), LONG_MS);

  /** A pod whose container appends a line to a file on the node at each start. */
  const counting = (name: string): object =>
    podOf(name, {
      volumes: [{ name: "starts", hostPath: { path: join(node.dir, "starts") } }],
      containers: [
        {
          script: `echo start >> /starts/${name}; ${SERVES}`,
          volumeMounts: [{ name: "starts", mountPath: "/starts" }],
        },
      ],
    });
  const linesOf = (name: string): number => {
    const file = join(node.dir, "starts", name);
    return existsSync(file) ? readFileSync(file, "utf8").split("\n").length - 1 : 0;
  };
  /** The number of starts, as soon as the container has recorded the first one. */
  const startsOf = (name: string): Promise<number> => until(`a start of ${name}`, () => linesOf(name) || undefined);
  /** The number of the pod's sandboxes in the runtime, and of its running containers. */
  const instancesOf = async (name: string) => {
    const pods = [...(await node.held()).values()].filter((pod) => pod.name.startsWith(`${name}-`));
    const running = pods.flatMap(({ containers }) => containers.filter(({ state }) => state === "running"));
    return { sandboxes: pods.flatMap(({ sandboxes }) => sandboxes).length, running: running.length };
  };
  /** Starts one daemon after the other and kills each one step later than the one before. */
  const killAtEach = async (methods: readonly CriMethod[]): Promise<void> => {
    for (const { method, where } of momentsOf(methods)) {
      const reached = node.hangAt(method, where);
      const daemon = node.startDaemon();
      await Promise.race([reached, daemon.untilEnd(`${where} ${method}`)]);
      await daemon.kill();
    }
    node.meddling = {};
    node.startDaemon();
  };

  test("at each step of a pod's start starts nothing twice", async () => {
    node.put("web", counting("web"));
    await killAtEach(COMING);
    const [web] = await node.daemon.running("web");
    expect(await startsOf("web")).toBe(1);
    expect(await instancesOf("web")).toEqual({ sandboxes: 1, running: 1 });
    const pods = await node.daemon.until("its pods", (status) => status.pods);
    expect(pods.map(({ uid }) => uid)).toEqual([web?.uid]);
    // while a record is replaced, its new text exists in a temporary file beside it
    const records = readdirSync(join(node.dir, "state/pods")).filter((name) => name.endsWith(".json"));
    expect(records).toEqual([`${web?.uid}.pod.json`]);
    await node.daemon.kill();
  });

  test("at each step of a pod's end completes it, and leaves nothing behind", async () => {
    node.remove("web");
    await killAtEach(LEAVING);
    await node.daemon.gone("web");
    await until("nothing left", async () => ((await node.leftovers()).length === 0 ? true : undefined));
    expect(await startsOf("web")).toBe(1);
    await node.daemon.kill();
  });

  test("at any moment keeps track of many pods", async () => {
    for (const name of MANY) node.put(name, counting(name));
    for (const ms of DELAYS_MS) {
      const daemon = node.startDaemon();
      await sleep(ms);
      await daemon.kill();
      await node.runtimeAtRest();
    }
    await node.startDaemon().running(...MANY);
    for (const name of MANY) {
      expect([name, await startsOf(name)]).toEqual([name, 1]);
      expect(await instancesOf(name)).toEqual({ sandboxes: 1, running: 1 });
    }
    await node.daemon.kill();

    node.remove(...MANY);
    for (const ms of DELAYS_MS) {
      const daemon = node.startDaemon();
      await sleep(ms);
      await daemon.kill();
      await node.runtimeAtRest();
    }
    await node.startDaemon().gone(...MANY);
    await until("nothing left", async () => ((await node.leftovers()).length === 0 ? true : undefined));
    for (const name of MANY) expect([name, await startsOf(name)]).toEqual([name, 1]);
  });
});
