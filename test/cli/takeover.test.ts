import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { checkSettings } from "../../actuator/core/config.ts";
import { claimsDirectory, takeLock } from "../../actuator/core/lock.ts";
import { observeMachine } from "../../actuator/machine/observe.ts";
import { claimDirectories } from "../../actuator/pods/volumes/claims.ts";
import { takeoverPlan } from "../../actuator/takeover/take-over.ts";
import { refusalOf } from "../../api/cli/takeover/takeover.ts";
import { podManifest } from "../kit/manifests.ts";
import { runnable } from "../kit/runnable-pods.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { serveCri } from "../sim/cri-server.ts";
import { FakeRuntime } from "../sim/fake-runtime.ts";
import { expectPublished } from "./published.ts";
import { run } from "./run.ts";

const WEB = JSON.stringify(podManifest("web", { spec: { containers: [{ name: "app", image: "busybox:1" }] } }));

test.each([
  [["--stop", "--dry-run"], 2, "option '--stop' cannot be used with option '--dry-run'"],
  [[], 2, "which pods are to run here? Give the actuator's --settings, or --manifests, or --pods-url"],
  [["--manifests", "DIR", "--cgroup-root", "nodewise"], 2, "--cgroup-root: must be a path of its own"],
  [["--manifests", "DIR/none"], 2, "the pods that are to run here cannot be read"],
  [["--manifests", "DIR", "default/db"], 2, "no pod `default/db` is to run here; there are default/web-n1"],
  [["--manifests", "DIR", "--runtime-endpoint", "DIR/no.sock"], 3, "ListPodSandbox: connect ENOENT DIR/no.sock"],
  [["--manifests", "DIR", "--runtime-endpoint", "DIR/no.sock", "--stop"], 3, "is the endpoint right?"],
] as const)("takeover %j exits with %i and says what to do: %s", { timeout: 180_000 }, async (args, code, text) => {
  const dir = scratchFolder();
  writeFileSync(join(dir, "web.yaml"), WEB);
  const ran = await run(["takeover", "--node-name", "n1", ...args.map((arg) => arg.replace("DIR", dir))]);
  expect([ran.code, ran.stdout], ran.stderr).toEqual([code, ""]);
  expect(ran.stderr).toContain(text.replace("DIR", dir));
});

/** Writes a daemon's settings with a cgroup root that no other program uses, and one manifest, `web`. */
function settledNode(settings: object = {}) {
  const dir = scratchFolder();
  const below = (name: string): string => join(dir, name);
  mkdirSync(below("manifests"));
  mkdirSync(below("state"));
  writeFileSync(below("manifests/web.yaml"), WEB);
  const all = {
    nodeName: "n1",
    cgroupRoot: `/nodewise-${dir.slice(-6)}`,
    stateDir: below("state"),
    manifests: below("manifests"),
    podsDirectory: below("pods"),
    podLogsDirectory: below("logs"),
    containerLogsDirectory: below("links"),
    runtimeEndpoint: below("cri.sock"),
    statusListen: "off",
    ...settings,
  };
  writeFileSync(below("actuator.yaml"), JSON.stringify(all));
  const config = checkSettings(all);
  if (!config.ok) throw new Error(JSON.stringify(config.error));
  return { config: config.value, socket: below("cri.sock"), file: below("actuator.yaml") };
}

test("takeover --stop waits for a daemon that then starts the pods", { timeout: 120_000 }, async () => {
  const { config, socket, file } = settledNode();
  const runtime = new FakeRuntime();
  const server = await serveCri(runtime, socket);
  onTestFinished(() => server.close());
  const pod = { namespace: "default", name: "web-n1", uid: "kubelets" };
  runtime.sandboxes.set("s1", { id: "s1", pod, attempt: 0, state: "SANDBOX_READY", createdAtMs: Date.now() });
  runtime.on = ({ call, phase }) => {
    const sandbox = runtime.sandboxes.get("s1");
    if (call === "StopPodSandbox" && phase === "after" && sandbox !== undefined) sandbox.state = "SANDBOX_NOTREADY";
    return undefined;
  };
  // `--kubelet-elsewhere`: a kubelet on the test's machine does not matter
  const stop = () => run(["takeover", "--settings", file, "--kubelet-elsewhere", "--stop"]);
  const refused = await stop();
  expect(refused).toMatchObject({ code: 3, stdout: "" });
  expect(refused.stderr).toMatch(
    /no Nodewise daemon runs pods here \(cgroup root \/nodewise-.*start it first .*or give --without-daemon/,
  );
  expect(runtime.sandboxes.get("s1")?.state).toBe("SANDBOX_READY");

  const planned = await run(["takeover", "--settings", file, "--kubelet-elsewhere", "--dry-run", "-o", "json"]);
  expect(JSON.parse(planned.stdout).stops, planned.stderr).toHaveLength(1);
  await expectPublished("takeover", planned.stdout);

  // takes the lock as a daemon does
  const { bootID = "" } = observeMachine().system;
  const root = await takeLock(claimsDirectory(), config.cgroupRoot, bootID);
  if (!root.ok) throw new Error(root.error);
  onTestFinished(() => root.value.release());
  expect(await stop()).toMatchObject({ code: 3 }); // the lock belongs to a daemon that enforces cgroups and runs no pods
  const directories = await claimDirectories(config, bootID);
  if (!directories.ok) throw new Error(directories.error);
  onTestFinished(() => directories.value.release());
  const stopped = await stop();
  expect(stopped).toMatchObject({ code: 0, stdout: expect.stringContaining("stopped  default/web-n1") });
  expect(runtime.sandboxes.get("s1")?.state).toBe("SANDBOX_NOTREADY");
});

/** The reason why one pod may not be stopped, if any. */
async function against(settings: object, given: Parameters<typeof refusalOf>[2], traces = NO_TRACES) {
  const { config } = settledNode(settings);
  const web = runnable({}, { namespace: "default", name: "web-n1", uid: "own" });
  const metadata = { namespace: "default", name: "web-n1", uid: "kubelets" };
  const there = { ...metadata, id: "s1", createdAtMs: 0, isReady: true, ...NOBODYS };
  const plan = takeoverPlan([there], { pods: new Map([["own", web]]), refused: [] }, null);
  expect(plan.stops).toHaveLength(1);
  return refusalOf(traces, { config, plan, kubelets: [] }, given, { env: {} });
}
const NOBODYS = { ips: [], containers: [], otherOwner: null, configSource: "file" };
const NO_TRACES: Parameters<typeof refusalOf>[0] = { processes: [], listeners: [] };

test("a daemon is recognised by the status server in the settings, if it runs this node's pods", async () => {
  let reported: object = {};
  const server = createServer((_, answer) => answer.end(JSON.stringify(reported))).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  const statusListen = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const status = {
    ...{ at: new Date().toISOString(), nodeName: "n1", pid: 1, mode: "enforce", runtime: null, pass: null },
    ...{ pods: [], problems: [], refusedManifests: [], events: [] },
  };
  const none = [expect.stringContaining("no Nodewise daemon runs pods here")];
  for (const [answered, wanted] of [
    [status, []],
    [{ ...status, nodeName: "n2" }, none],
    [{ ...status, runsPods: false }, none],
    [{}, none],
  ] as const) {
    reported = answered;
    expect(await against({ statusListen }, {})).toEqual(wanted);
  }
  expect(await against({}, {})).toEqual(none);
  expect(await against({}, { withoutDaemon: true })).toEqual([]);
});

test("a kubelet with an unknown runtime blocks the takeover, unless told that it has another", async () => {
  const process = { pid: 41, name: "kubelite", endpoint: null, collectsLogs: false, uses: "unknown" as const };
  const traces = { processes: [process], listeners: [{ what: "port 10250", holder: null }] };
  expect(await against({}, { withoutDaemon: true }, traces)).toEqual([
    expect.stringMatching(
      /^process 41 \(kubelite\) is a kubelet whose runtime cannot be determined, .*--kubelet-elsewhere/,
    ),
    expect.stringMatching(
      /^port 10250, which is a kubelet's, is in use by a process that cannot be seen, .*stop it for good/,
    ),
  ]);
  expect(await against({}, { withoutDaemon: true, kubeletElsewhere: true }, traces)).toEqual([]);
  const another = { ...traces, processes: [{ ...process, uses: "another" as const }], listeners: [] };
  expect(await against({}, { withoutDaemon: true }, another)).toEqual([]);
});
