import { status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CriMethod } from "../../actuator/containerd/messages.ts";
import { podOf } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";

const LONG_MS = 300_000;
const why = noPods("a runtime that fails");

describe.skipIf(why !== undefined)("a runtime that hangs or fails", { timeout: LONG_MS }, () => {
  let node: PodNode;
  beforeAll(async () => {
    node = await PodNode.start({ isMeddled: true });
    node.put("steady", podOf("steady"));
    await node.startDaemon().running("steady");
  }, LONG_MS);
  afterAll(() => node?.stop(), LONG_MS);

  const ofPod = (request: unknown, name: string): boolean => JSON.stringify(request ?? {}).includes(`"${name}-e2e"`);
  const unharmed = async (): Promise<void> => {
    const all = await node.containersOf("steady");
    expect(all.map(({ state, attempt }) => [state, attempt])).toEqual([["running", 0]]);
  };

  test("is reported in its words, and a failing call holds up its own pod only", async () => {
    const { daemon } = node;
    const details = "the disk of this runtime is full";
    node.meddling = {
      fails: (method, request) => {
        if (method === "RunPodSandbox" && ofPod(request, "homeless")) return { code: status.UNKNOWN, details };
        if (method === "CreateContainer" && ofPod(request, "unmade")) return { code: status.INTERNAL, details };
        return undefined;
      },
    };
    for (const name of ["homeless", "unmade", "lucky"]) node.put(name, podOf(name));
    const message = `Failed to create pod sandbox: rpc error: code = Unknown desc = ${details}`;
    await daemon.event("homeless", "FailedCreatePodSandBox", message);
    const row = await daemon.pod("homeless", "reported", (one) => one.message !== "");
    expect([row.phase, row.message]).toEqual(["Pending", message]);
    await daemon.event("unmade", "Failed", `Error: ${details}`);
    const unmade = await daemon.pod("unmade", "reported", ({ reason }) => reason === "CreateContainerError");
    expect(unmade.containers[0]?.restarts).toBe(0);
    await daemon.running("lucky");
    node.meddling = {};
    await daemon.running("homeless", "unmade", "lucky");
    await unharmed();
  });

  test("is reported as hanging, and used again when it is back", async () => {
    // until here, the timeout of every call allowed for a loaded machine
    await node.daemon.kill();
    const daemon = node.startDaemon({ runtimeTimeoutSeconds: 6 });
    await daemon.running("steady", "lucky");
    const hanging = new Set<CriMethod>(["ListPodSandbox", "ListContainers"]);
    const reached = Promise.withResolvers<void>();
    node.meddling = {
      fails: (method) => {
        if (!hanging.has(method)) return undefined;
        reached.resolve();
        return "hang";
      },
    };
    // a turn that has already read the lists would end the pod
    await reached.promise;
    node.put("late", podOf("late"));
    node.remove("lucky");
    const message = await daemon.until("the runtime's silence", ({ runtime, problems }) =>
      runtime === null ? problems.find((one) => one.startsWith("runtime: ")) : undefined,
    );
    expect(message).toMatch(/List(?:PodSandbox|Containers): /);
    expect((await node.containersOf("lucky")).map(({ state }) => state)).toEqual(["running"]);
    node.meddling = {};
    await daemon.running("late", "steady");
    await daemon.gone("lucky");
    await unharmed();
  });

  test("does not get a sandbox started twice when its response to the start is lost", async () => {
    const { daemon } = node;
    // the runtime carries out the call, and answers after the caller has given up
    let held = 0;
    node.meddling = {
      after: async (method, request) => {
        if (method !== "RunPodSandbox" || !ofPod(request, "slow") || held++ > 0) return;
        await new Promise(() => {});
      },
    };
    node.put("slow", podOf("slow"));
    await daemon.event("slow", "FailedCreatePodSandBox", /DeadlineExceeded/);
    await daemon.running("slow");
    const pod = [...(await node.held()).values()].find(({ name }) => name === "slow-e2e");
    expect(pod?.sandboxes).toHaveLength(1);
    expect(pod?.containers).toHaveLength(1);
    await unharmed();
  });
});
