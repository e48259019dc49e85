import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { assumeSeen } from "../../api/cli/gc/preview.ts";
import { fakeContainer, fakeImage, fakeSandbox, gcPod, put } from "../actuator/gc/gc-kit.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { serveCri } from "../sim/cri-server.ts";
import { FakeRuntime, faultOf } from "../sim/fake-runtime.ts";
import { expectPublished } from "./published.ts";
import { run } from "./run.ts";

const listOf = (items: readonly object[], metadata: object = {}): string =>
  JSON.stringify({ apiVersion: "v1", kind: "PodList", metadata, items });
const other = gcPod("other");
const timesIn = (text: string, words: string): number => text.split(words).length - 1;

/** Three images, one of which an already removed pod used, and one directory for everything. */
async function ground() {
  const dir = scratchFolder();
  const runtime = new FakeRuntime();
  const socket = join(dir, "cri.sock");
  const server = await serveCri(runtime, socket);
  onTestFinished(() => void server.close());
  const put_ = { runtime } as Parameters<typeof put>[0];
  put(
    put_,
    fakeImage("sha256:a"),
    fakeImage("sha256:b"),
    fakeImage("sha256:c"),
    fakeSandbox("s1", "u1"),
    fakeContainer("c1", "s1", "sha256:c"),
  );
  const logs = join(dir, "pods");
  mkdirSync(join(logs, "ns_pod-u1_u1"), { recursive: true });
  const config = join(dir, "config.yaml");
  writeFileSync(
    config,
    "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\nimageMinimumGCAge: 1ns\n",
  );
  const pods = join(dir, "pods.json");
  writeFileSync(pods, listOf([other]));
  const state = join(dir, "state");
  const gc = (...args: string[]) =>
    run([
      ...[
        "gc",
        ...args,
        "--runtime-endpoint",
        socket,
        "--state-dir",
        state,
        "--node-name",
        "n",
        "--kubelet-config",
        config,
      ],
      ...["--pod-logs-directory", logs, "--container-logs-directory", join(dir, "links")],
    ]);
  return { dir, runtime, gc, pods, logs, state };
}

test("--preview shows what would be removed and changes nothing, not even the facts", async () => {
  const { runtime, gc, state } = await ground();
  const ran = await gc("images", "--preview", "--operation", "delete-unused");
  expect(ran.stderr).toContain("nothing is remembered");
  expect(ran.stderr).toContain("--seen 1h");
  const assumed = await gc("images", "--dry-run", "--operation", "delete-unused", "--seen", "1h", "-o", "json");
  expect(assumed.code).toBe(0);
  await expectPublished("gc", assumed.stdout);
  const { decision, assumed: words, verdict } = JSON.parse(assumed.stdout);
  expect(words).toContain("1h ago");
  expect(verdict).toBe("removes");
  expect(decision.remove.map(({ id, end }: { id: string; end: string }) => [id, end]).sort()).toEqual([
    ["sha256:a", "planned"],
    ["sha256:b", "planned"],
  ]);
  expect(runtime.performed).toEqual([]);
  expect(existsSync(state)).toBe(false);
});

test("a pass removes what its guards allow, and prints each removal", async () => {
  const { runtime, gc } = await ground();
  await gc("images", "--operation", "delete-unused");
  runtime.on = ({ call, id, phase }) =>
    call === "RemoveImage" && id === "sha256:b" && phase === "before" ? faultOf(call, "UNKNOWN", "busy") : undefined;
  put({ runtime } as Parameters<typeof put>[0], fakeImage("sha256:a"), fakeImage("sha256:b"));
  const ran = await gc("images", "--operation", "delete-unused");
  expect(ran.code).toBe(1);
  expect(ran.stdout).toContain("removed  image sha256:a:v1 (100 B), unused\n");
  expect(ran.stdout).toContain("failed   image sha256:b:v1 (100 B), unused: rpc error: code = Unknown desc = busy\n");
  expect(runtime.wrongs).toEqual([]);
  expect([...runtime.images.keys()].sort()).toEqual(["sha256:b", "sha256:c"]);
});

test("without --pods no container counts as a deleted pod's; with all pods they are removed", async () => {
  const { runtime, gc, pods, logs } = await ground();
  const blind = await gc("containers");
  expect(blind.code).toBe(0);
  expect(blind.stderr).toContain("no pods are given");
  expect(runtime.performed).toEqual([]);
  const ran = await gc("containers", "--pods", pods, "-o", "json");
  expect(ran.code).toBe(0);
  await expectPublished("gc", ran.stdout);
  const { removals, complete } = JSON.parse(ran.stdout);
  expect(removals.map(({ target, id }: { target: string; id: string }) => `${target} ${id}`)).toEqual([
    "container c1",
    "sandbox s1",
    "pod-logs ns_pod-u1_u1",
  ]);
  expect(complete).toBe(true);
  expect(readdirSync(logs)).toEqual([]);
});

test.each([
  ["empty", listOf([]), "pods.json: the list of pods is empty"],
  ["one page of several", listOf([other], { continue: "next" }), "pods.json: the list of pods is one page of several"],
  [
    "a kubelet's that has not heard its API server",
    listOf([{ ...other, metadata: { ...other.metadata, annotations: { "kubernetes.io/config.source": "file" } } }]),
    "pods.json: the list of pods holds only a kubelet's own",
  ],
])("with a list of pods that is %s no pod counts as deleted, and that is printed once", async (_, list, words) => {
  const { runtime, gc, pods, logs } = await ground();
  writeFileSync(pods, list);
  const ran = await gc("containers", "--pods", pods);
  expect([ran.code, timesIn(ran.stderr, words)], ran.stderr).toEqual([0, 1]);
  const preview = await gc("containers", "--preview", "--pods", pods);
  expect([preview.code, timesIn(preview.stderr, words)], preview.stderr).toEqual([0, 1]);
  expect(runtime.performed).toEqual([]);
  expect(readdirSync(logs)).toEqual(["ns_pod-u1_u1"]);
});

test("a problem with the pods that both the daemon's pass and its collections have is printed once", async () => {
  const { dir, logs } = await ground();
  const server = createServer((_request, response) => void response.end(listOf([])));
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const podsUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/pods`;
  const settings = join(dir, "settings.json");
  const places = { stateDir: join(dir, "state"), kubeletDir: join(dir, "none"), containerLogsDirectory: dir };
  const runtimeEndpoint = `unix://${join(dir, "cri.sock")}`;
  const given = { garbageCollection: "observe", podsUrl, runtimeEndpoint, podLogsDirectory: logs, ...places };
  writeFileSync(settings, JSON.stringify(given));
  const { stdout, stderr } = await run(["actuator", "--once", "--settings", settings]);
  expect(stdout).toContain(" container-gc: 0 removals planned");
  expect(timesIn(stderr, "the list of pods is empty"), stderr).toBe(1);
});

test("a handwritten list of pods without uids counts as complete", async () => {
  const { gc, pods, logs } = await ground();
  writeFileSync(pods, listOf([{ metadata: { name: "mine" }, spec: { containers: [{ name: "app", image: "app" }] } }]));
  const ran = await gc("containers", "--pods", pods);
  expect(ran.code, ran.stderr).toBe(0);
  expect(readdirSync(logs)).toEqual([]);
});

test("faulty input is reported in one line", async () => {
  const { gc, dir } = await ground();
  const cases: readonly (readonly [readonly string[], number, string])[] = [
    [["images", "--seen", "1h"], 2, "--seen"],
    [["images", "--preview", "--seen", "soon"], 2, "`soon` is not a duration"],
    [["containers", "--pods", join(dir, "none.json")], 2, "none.json: no such file"],
    [["containers", "--preview", "--minimum-container-ttl-duration", "x"], 2, "minimumContainerTTL"],
    [["pods"], 2, "images, containers"],
  ];
  for (const [args, code, words] of cases) {
    const ran = await gc(...args);
    expect([ran.code, ran.stderr.includes(words)], `${args.join(" ")}: ${ran.stderr}`).toEqual([code, true]);
  }
});

test("remembered facts take precedence over assumed ones", () => {
  const remembered: Parameters<typeof assumeSeen>[0] = {
    atMs: 900,
    beganAtMs: 100,
    failed: true,
    records: [["a", 500, 600]],
    removed: [],
  };
  const images = [{ id: "a" }, { id: "b", spec: { runtimeHandler: "gvisor" } }];
  const assumed = assumeSeen(remembered, images, 10_000, "2s");
  expect(assumed).toEqual({
    ok: true,
    value: {
      ...remembered,
      records: [
        ["a", 500, 600],
        ["b", 8000, null, "gvisor"],
      ],
    },
  });
  expect(assumeSeen(undefined, images, 10_000, "-1s").ok).toBe(false);
});
