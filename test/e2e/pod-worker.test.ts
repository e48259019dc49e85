import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { RuntimePod } from "../../actuator/containerd/cri.ts";
import type { PodEvent } from "../../actuator/lifecycle/record.ts";
import { systemClock } from "../../actuator/pods/pod-clock.ts";
import { Images } from "../../actuator/pods/sync/images.ts";
import { PodWorker } from "../../actuator/pods/sync/pod-worker.ts";
import { withTerminationMessage } from "../../actuator/pods/sync/termination-message.ts";
import { systemMounter } from "../../actuator/pods/volumes/mounter.ts";
import { placesOf } from "../../actuator/pods/volumes/places.ts";
import { v1_36 } from "../../api/profiles/v1_36.ts";
import { mountsBelow, scratch } from "../actuator/pods/scratch.ts";
import { NO_ACTIONS } from "../actuator/pods/worker-kit.ts";
import { runnable, runnableContainer } from "../kit/runnable-pods.ts";
import { APP, PodRuntimeFixture } from "./containerd/pod-runtime-kit.ts";
import { must } from "./containerd/pods.ts";
import { whyNoContainerd } from "./containerd/start.ts";
import { openOwn } from "./own-cgroups.ts";
import { until } from "./pods/until.ts";

const LONG_MS = 300_000;
const opened = openOwn("worker");
const why = whyNoContainerd() ?? (opened.ok && opened.value.version === 1 ? undefined : "no cgroup v1 is mounted");
if (why !== undefined) {
  if (process.env["CI"] === "true") throw new Error(`CI must run the worker's tests on containerd: ${why}`);
  console.warn(`skipped the pods' worker end to end: ${why}`);
}

const mount = {
  volume: "fast",
  mountPath: "/fast",
  readOnly: false,
  subPath: "",
  isExpression: false,
  propagation: "None",
} as const;
/** Writes to each of its volumes, prints what it sees, and writes a termination message when it ends. */
const SCRIPT = `trap 'echo -n "bye $(cat /fast/hook)" > /dev/termination-log; exit 3' TERM
echo hello $NAME; ls -ld /fast; echo kept > /host/file; cat /etc/hosts | head -n 1; while :; do sleep 0.1; done`;

describe.skipIf(why !== undefined)("a pod on a real containerd", { timeout: LONG_MS }, () => {
  let ground: PodRuntimeFixture;
  beforeAll(async () => {
    if (!opened.ok) throw new Error(opened.error.message);
    ground = await PodRuntimeFixture.start(opened.value);
  }, LONG_MS);
  afterAll(() => ground?.stop(), LONG_MS);

  test("starts with its volumes, ends with its preStop hook, and leaves nothing behind", async () => {
    const dir = scratch();
    onTestFinished(async () => {
      for (const point of mountsBelow(dir)) await systemMounter.unmount(point);
    });
    const roots = { podsDirectory: join(dir, "pods"), podLogsDirectory: join(dir, "logs") };
    mkdirSync(join(dir, "host"));
    const web = runnable({
      hostNetwork: true,
      volumes: [
        { name: "fast", emptyDir: { medium: "Memory", sizeLimitBytes: 1 << 20 } },
        { name: "host", hostPath: { path: join(dir, "host"), type: "Directory" } },
      ],
      containers: [
        runnableContainer("app", {
          image: APP,
          command: ["/bin/busybox", "sh", "-c", SCRIPT],
          env: [{ name: "NAME", fieldPath: "metadata.name" }],
          mounts: [mount, { ...mount, volume: "host", mountPath: "/host", subPath: "made/here" }],
          preStop: { exec: ["/bin/busybox", "sh", "-c", "echo -n hooked > /fast/hook"] },
        }),
      ],
    });
    const events: PodEvent[] = [];
    const { runtime, hierarchy } = ground;
    const worker = new PodWorker({
      profile: v1_36,
      runtime,
      images: new Images(runtime, systemClock, { serializeImagePulls: true, maxParallelImagePulls: null }),
      mounter: systemMounter,
      clock: systemClock,
      onEvent: (event) => events.push(event),
      owner: "nodewise-e2e",
      roots,
      node: () => ({
        hostIPs: ["127.0.0.1"],
        allocatable: {},
        clusterDomain: "",
        clusterDNS: [],
        resolvConf: { servers: ["9.9.9.9"], searches: [], options: [] },
        cgroupVersion: 1,
        security: { seccompDefault: false, seccompDirectory: dir, maskedPaths: [] },
      }),
      cgroupParentOf: ({ name }) => `${hierarchy.root}/pod-${name}`,
      sandboxValuesOf: () => undefined,
      memoryBytes: () => null,
    });
    for (const path of ["/", "/pod-web"]) await hierarchy.create(path, hierarchy.support().controllers);
    const signal = new AbortController().signal;
    const seenNow = async (): Promise<RuntimePod> => {
      const seen = (await must(runtime.pods())).get(web.uid);
      if (seen === undefined) throw new Error("nothing of the pod is there");
      return seen;
    };

    const actions = { ...NO_ACTIONS, createSandbox: true, toStart: [{ name: "app", attempt: 0 }] };
    const turn = await worker.sync({ pod: web, runtimePod: null, actions, valuesOf: () => ({}), signal });
    expect([turn.error, turn.faults, turn.started]).toEqual([null, {}, ["app"]]);
    expect(events.map(({ reason }) => reason)).toEqual(["Pulled", "Created", "Started"]);
    const log = join(roots.podLogsDirectory, "default_web_uid-1/app/0.log");
    const written = join(dir, "host/made/here/file");
    const last = "# Kubernetes-managed hosts file (host network).";
    const printed = await until("its last line in the log", () => {
      const text = existsSync(log) ? readFileSync(log, "utf8") : "";
      return text.includes(last) ? text : undefined;
    });
    expect(readFileSync(written, "utf8")).toBe("kept\n");
    expect(printed).toContain("stdout F hello web\n");
    expect(printed).toMatch(/drwxrwxrwt .* \/fast\n/);
    expect(mountsBelow(dir).length).toBe(2);

    expect(await worker.end({ pod: web, runtimePod: await seenNow(), graceSeconds: 20, signal })).toEqual({
      isEnded: true,
      error: null,
    });
    const places = placesOf(roots, web);
    const [ended] = (await seenNow()).containers;
    if (!places.ok || ended === undefined) throw new Error("the container is gone");
    expect(withTerminationMessage(ended, places.value)).toMatchObject({
      state: "exited",
      exitCode: 3,
      message: "bye hooked",
    });

    expect(await worker.forget(web, await seenNow(), signal)).toEqual({ isGone: true, leftOvers: [] });
    expect((await must(runtime.pods())).get(web.uid)).toBeUndefined();
    expect([mountsBelow(dir), existsSync(join(roots.podsDirectory, "uid-1")), existsSync(log)]).toEqual([
      [],
      false,
      false,
    ]);
    expect(readFileSync(written, "utf8")).toBe("kept\n");
  });
});
