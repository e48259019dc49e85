import { expect, test } from "vitest";
import type * as z from "zod";
import { decisionAnswer } from "../../api/http/openapi/decision-answers.ts";
import { upgradeAnswer } from "../../api/http/upgrade.ts";
import { profileOf } from "../../api/profiles/index.ts";
import { container } from "../kit/containers.ts";
import { pod } from "../kit/pods.ts";
import {
  type ApiSubject,
  answer,
  exampleSnapshot,
  fresh,
  type Of,
  post,
  problemOf,
  send,
  tokenFor,
  untilWhole,
} from "./api-subject.ts";

type Answered = z.output<typeof upgradeAnswer>;
const upgrade = (
  api: ApiSubject,
  body: { readonly limit?: number; readonly [name: string]: unknown },
  headers = {},
): Promise<Answered> =>
  untilWhole(
    async () => answer(await post(api, "/v1/upgrade", body, headers), upgradeAnswer),
    ({ history }) =>
      (history?.nextPageToken ?? null) === null || (history?.counts.replayed ?? 0) >= (body.limit ?? Infinity),
  );

const SINCE = "2000-01-01T00:00:00Z";
/** A node of 1.36 on which MemoryQoS throttles a pod once the gate is on, and on which a static pod runs. */
const throttled = (name: string, more: object = {}, kubeletVersion = "v1.36.3") => {
  const node = exampleSnapshot(name)["node"] as { readonly status: object };
  const app = container("app", { memory: "64Mi" }, { memory: "128Mi" });
  const annotations = { "kubernetes.io/config.mirror": "a".repeat(32), "kubernetes.io/config.hash": "a".repeat(32) };
  return exampleSnapshot(name, {
    node: { metadata: { name }, status: { ...node.status, nodeInfo: { kubeletVersion } } },
    cgroup: { version: 2, driver: "systemd" },
    pods: [
      pod("web", { metadata: { namespace: "shop", uid: `web-${name}` }, spec: { containers: [app] } }),
      pod("etcd", { metadata: { namespace: "kube-system", uid: `etcd-${name}`, annotations } }),
    ],
    kubeletConfiguration: { memoryThrottlingFactor: 0.9 },
    ...more,
  });
};

async function decided(api: ApiSubject, node: string, count = 3): Promise<void> {
  for (let sequence = 0; sequence < count; sequence++) {
    // consecutive decisions differ
    const body = { snapshot: throttled(node, { sequence }), explain: sequence % 2 === 0 ? "reasons" : "full" };
    await answer(await post(api, "/v1/decisions/cgroups", body), decisionAnswer);
  }
}

export function upgrades(of: Of): void {
  upgradesOfFlags(of);
  upgradesWithoutEffect(of);
  test("list a configuration that the target refuses, in its words, with the patch as the first step", async () => {
    const kubeletConfiguration = { featureGates: { NodeDeclaredFeatures: false, SidecarContainers: true } };
    const { report, history } = await upgrade(of(), { to: "1.37", from: "1.36", kubeletConfiguration });
    expect(history).toBeNull();
    expect(report).toMatchObject({ node: null, outcome: "refuses-start", direction: "upgrade", decisions: null });
    const messages = report?.starts.map(({ message }) => message).join("\n");
    expect(messages).toContain("cannot set feature gate NodeDeclaredFeatures to false, feature is locked to true");
    expect(messages).toContain("unrecognized feature gate: SidecarContainers");
    expect(report?.starts.every(({ isNew, kubelet }) => isNew && kubelet)).toBe(true);
    expect(report?.steps.map(({ patch }) => patch).slice(0, 2)).toEqual(report?.starts.map(({ fix }) => fix));
  });

  test("list gates, static pods and changed decisions for a recorded node", async () => {
    const node = fresh("upgrade");
    await send(of(), "PUT", `/v1/nodes/${node}/snapshot`, throttled(node));
    const { report } = await upgrade(of(), { to: "1.37", node });
    expect(report).toMatchObject({ node, from: { version: "1.36", exact: true }, outcome: "changes", staticPods: [] });
    expect(report?.gates).toContainEqual(
      expect.objectContaining({ name: "MemoryQoS", keep: { featureGates: { MemoryQoS: false } }, changes: "value" }),
    );
    const changed = report?.decisions?.changed.find(({ kind }) => kind === "cgroups");
    expect(changed).toMatchObject({ pod: null, pods: ["shop/web", "kube-system/etcd"], podCount: 2 });
    const older = fresh("upgrade");
    await send(of(), "PUT", `/v1/nodes/${older}/snapshot`, throttled(older, {}, "v1.34.4"));
    const old = await upgrade(of(), { to: "1.35", node: older });
    expect(old.report?.staticPods).toEqual(["kube-system/etcd"]);
    // the version that the node reports takes precedence over `from`, and the report contains a note about this
    const named = await upgrade(of(), { to: "1.35", from: "1.37", node: older });
    const why = "the node reports kubelet v1.34.4, which takes precedence over 1.37";
    expect(named.report).toEqual({ ...old.report, from: { version: "1.34", exact: true, why } });
  });

  test("replay recorded decisions page by page, with examples and reasons", async () => {
    const node = fresh("upgrade");
    await decided(of(), node);
    const first = await upgrade(of(), { to: "v1.37.2", node, since: "7d", limit: 2 });
    expect(first.report?.node).toBe(node);
    expect(first.history).toMatchObject({
      counts: { replayed: 2, differs: 2 },
      byVersion: [{ recordedUnder: "1.36", replayedUnder: "1.37", replayed: 2, differs: 2 }],
      pods: ["kube-system/etcd", "shop/web"].map((pod) => ({ node, pod, count: 2, byKind: { cgroups: 2 } })),
      verdicts: [{ kind: "cgroups", count: 2 }],
    });
    const [example] = first.history?.examples ?? [];
    expect(example).toMatchObject({
      kind: "cgroups",
      recordedUnder: "1.36",
      podCount: 2,
      differenceCount: expect.any(Number),
    });
    expect(JSON.stringify(example?.differences)).toContain("memory.high");
    expect(example?.reasons.length).toBeGreaterThan(0);
    const pageToken = first.history?.nextPageToken;
    const last = await upgrade(of(), { to: "1.37", node, since: "7d", limit: 2, pageToken });
    expect(last).toMatchObject({ report: null, history: { counts: { replayed: 1 }, nextPageToken: null } });
    const own = await upgrade(of(), { to: "1.36", node, since: SINCE });
    expect(own.report?.outcome).toBe("same");
    expect(own.history).toMatchObject({ counts: { same: 3, differs: 0 }, pods: [], examples: [] });
    expect(own.history?.byVersion).toMatchObject([{ recordedUnder: "1.36", replayedUnder: "1.36", same: 3 }]);
  });

  test("do not take a default that /configz prints as a setting of the node", async () => {
    const node = fresh("upgrade");
    const ask = async (kubeletConfiguration: object, sequence: number) => {
      const snapshot = throttled(node, { kubeletConfiguration, sequence });
      await answer(await post(of(), "/v1/decisions/cgroups", { snapshot }), decisionAnswer);
      const { history } = await upgrade(of(), { to: "1.37", node, since: SINCE });
      return history?.changed.at(-1)?.differenceCount ?? 0;
    };
    const { configuration } = profileOf("1.36");
    const reported = Object.fromEntries(
      Object.keys(configuration).flatMap((name) => {
        const value = profileOf("1.36").defaults[name];
        return value === undefined ? [] : [[name, value]];
      }),
    );
    const whole = await ask({ ...reported, memoryThrottlingFactor: 0.9 }, 1);
    expect(await ask({ ...reported, memoryThrottlingFactor: 0.8 }, 2)).toBeGreaterThan(whole);
  });
}

/** Configuration changes without an effect. */
function upgradesWithoutEffect(of: Of): void {
  test("ignore memory.min and memory.low of 0 as a difference, without hiding others", async () => {
    const node = fresh("upgrade");
    // 1.37 counts the plain init container, and removes the pod's limits
    const limits = { cpu: "1", memory: "64Mi" };
    const sidecar = { ...container("sidecar", { cpu: "1m" }, limits), restartPolicy: "Always" };
    const initContainers = [sidecar, container("first", { cpu: "1m" })];
    const spec = { containers: [container("app", { cpu: "1m" }, limits)], initContainers };
    const plain = Array.from({ length: 9 }, (_, i) => pod(`plain-${i}`, { metadata: { namespace: "shop" } }));
    const side = pod("side", { metadata: { namespace: "shop", uid: `side-${node}` }, spec });
    for (const [sequence, pods] of [plain, [...plain, side]].entries()) {
      const snapshot = throttled(node, { kubeletConfiguration: {}, pods, sequence });
      await answer(await post(of(), "/v1/decisions/cgroups", { snapshot }), decisionAnswer);
    }
    const { report, history } = await upgrade(of(), { to: "1.37", node, since: SINCE });
    expect(history).toMatchObject({ counts: { replayed: 2, same: 1, differs: 1 }, kernelDefaults: 1 });
    const sideAlone = { pods: ["shop/side"], podCount: 1 };
    expect(history?.pods).toEqual([{ node, pod: "shop/side", count: 1, byKind: { cgroups: 1 } }]);
    for (const [one] of [history?.examples ?? [], report?.decisions?.changed ?? []]) {
      expect(one).toMatchObject({ kind: "cgroups", ...sideAlone });
      expect(one?.differences[0]).toMatchObject({ path: expect.stringContaining("cpuQuota"), recorded: 200_000 });
      expect(one?.differenceCount).toBeGreaterThan(40);
      expect(new Set(one?.reasons.flatMap(({ because }) => because.map(({ field }) => field)))).toContain("cpuQuota");
      expect(JSON.stringify(one?.reasons)).not.toContain("memoryMin");
    }
    const alone = { to: "1.37", snapshot: throttled(node, { kubeletConfiguration: {}, pods: plain }) };
    const decisions = (await upgrade(of(), alone)).report?.decisions;
    expect(decisions?.changed).toEqual([]);
    const ofCgroups = decisions?.kinds.find(({ kind }) => kind === "cgroups");
    expect(ofCgroups).toMatchObject({ asked: 1, changed: 0, kernelDefaults: 1 });
  });
}

/** Kubelet flags, feature gates, and downgrades. */
function upgradesOfFlags(of: Of): void {
  test("list flags that the target lacks, gates that flags set, and why a gate cannot be kept", async () => {
    const kubeletArgs = ["--containerd=/run/x", "--feature-gates=MemoryQoS=false"];
    const { report } = await upgrade(of(), { to: "1.37", from: "1.36", kubeletArgs });
    expect(report).toMatchObject({ outcome: "refuses-start", configured: false });
    expect(report?.starts[0]).toMatchObject({
      field: "--containerd",
      kubelet: true,
      isNew: true,
      code: "removed-flag",
    });
    expect(report?.steps[0]?.what).toMatch(/^--containerd: take it out/);
    expect(report?.notes.filter(({ topic }) => topic === "flag")).toEqual([]);
    expect(report?.gates.filter(({ name }) => name === "MemoryQoS")).toEqual([]);
    const back = await upgrade(of(), { to: "1.36", from: "1.37", kubeletConfiguration: {} });
    const gate = (name: string) => back.report?.gates.find((one) => one.name === name);
    expect(gate("HugepageAwareEviction")).toMatchObject({ keep: null, notKept: "kubelet 1.36 does not know it" });
    expect(gate("MemoryQoS")).toMatchObject({ keep: { featureGates: { MemoryQoS: true } }, notKept: null });
    for (const { keep, notKept } of back.report?.gates ?? []) expect([keep === null, notKept === null]).toContain(true);
  });

  test("merge drop-ins over the configuration", async () => {
    const head = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
    const of1 = { to: "1.37", from: "1.36", kubeletConfiguration: { featureGates: { MemoryQoS: true } } };
    const flips = ({ report }: Answered) =>
      report?.gates.flatMap(({ name, changes }) => (changes === "value" ? [name] : []));
    expect(flips(await upgrade(of(), of1))).not.toContain("MemoryQoS");
    const document = { ...head, featureGates: { MemoryQoS: null, SidecarContainers: true } };
    const merged = await upgrade(of(), { ...of1, kubeletDropIns: [{ file: "10.conf", document }] });
    expect(flips(merged)).toContain("MemoryQoS");
    expect(merged.report?.starts).toMatchObject([{ code: "unknown-feature-gate", isNew: true }]);
  });

  test("list fields unknown to the present kubelet, and say when its version is not known", async () => {
    const kubeletConfiguration = { memoryReservationPolicy: "None" };
    const { report } = await upgrade(of(), { to: "1.37", from: "1.33", kubeletConfiguration });
    expect(report).toMatchObject({
      from: { version: "1.34", exact: false, why: "kubelet 1.33 is not known here: 1.34 is the nearest that is" },
      outcome: "changes",
      starts: [],
      startsNow: [
        {
          code: "unknown-field",
          message: 'strict decoding error: unknown field "memoryReservationPolicy"',
          kubelet: true,
          fix: { memoryReservationPolicy: null },
        },
      ],
    });
    const node = fresh("upgrade");
    const old = { ...(exampleSnapshot(node)["node"] as { readonly status: object }) };
    const status = { ...old.status, nodeInfo: { kubeletVersion: "v1.33.9" } };
    await send(of(), "PUT", `/v1/nodes/${node}/snapshot`, exampleSnapshot(node, { node: { ...old, status } }));
    const own = await upgrade(of(), { to: "1.37", node });
    expect(own.report).toMatchObject({ node, from: report?.from });
  });

  test("of a downgrade list the settings that the older kubelet does not know, and its reading of the state files", async () => {
    const kubeletConfiguration = { tlsCurvePreferences: [29], eventRecordQPS: 0 };
    const back = await upgrade(of(), { to: "1.35", from: "1.37", kubeletConfiguration });
    expect(back.report).toMatchObject({
      direction: "downgrade",
      outcome: "changes",
      starts: [{ code: "unknown-field", field: "tlsCurvePreferences", isNew: true }],
    });
    expect(back.report?.notes.map(({ name }) => name)).toContain("/var/lib/kubelet/cpu_manager_state");
  });
}

export function badUpgrades(of: Of): void {
  test.each<[object, string, RegExp]>([
    [[], "$", /expected an object/],
    [{}, "to", /^must be a version of the kubelet, such as 1\.37 or v1\.37\.2$/],
    [{ to: "newest" }, "to", /^must be a version of the kubelet/],
    [{ to: 1.37 }, "to", /^must be a version of the kubelet/],
    [{ to: "1.99" }, "to", /^kubelet 1\.99 is not known here: the versions are 1\.34, /],
    [{ to: "1.40", from: "1.36", kubeletConfiguration: {} }, "to", /^kubelet 1\.40 is not known here/],
    [{ to: "1.37", from: "older" }, "from", /^must be a version of the kubelet/],
    [{ to: "1.37" }, "kubeletConfiguration", /^is needed/],
    [{ to: "1.37", kubeletConfiguration: "maxPods: 1" }, "kubeletConfiguration", /expected an object/],
    [{ to: "1.37", version: "1.36" }, "version", /there is no such field/],
    [{ to: "1.37", from: "1.36", snapshot: { pods: 1 } }, "snapshot.pods", /./],
    [{ to: "1.37", from: "1.36", snapshot: {}, node: "n" }, "node", /one or the other/],
    [{ to: "1.37", since: "yesterday" }, "since", /RFC 3339 .* or a duration back from now such as 12h or 7d$/],
    [{ to: "1.37", since: "1h", until: "2h" }, "since", /is later than until \(2h\)/],
    [{ to: "1.37", since: SINCE, limit: 0 }, "limit", /from 1 to 1000/],
    [{ to: "1.37", from: "1.36", kubeletConfiguration: {}, limit: "ten" }, "limit", /from 1 to 1000/],
    [{ to: "1.37", pageToken: "x" }, "pageToken", /./],
    [{ to: "1.37", from: "1.36", kubeletArgs: {} }, "kubeletArgs", /expected a list/],
    [{ to: "1.37", kubeletDropIns: [{ file: "", document: {} }] }, "kubeletDropIns[0]", /expected \{"file"/],
    [{ to: "1.37", kubeletDropIns: [] }, "kubeletConfiguration", /merged over it/],
  ])("are refused for %j at %s", async (body, path, message) => {
    const { issues } = await problemOf(await post(of(), "/v1/upgrade", body), "invalid_input");
    expect(issues?.[0]?.path).toBe(path);
    expect(issues?.[0]?.message).toMatch(message);
  });

  test("need `from` when the present version is unknown", async () => {
    const bare = exampleSnapshot(fresh("upgrade"));
    for (const body of [{ kubeletConfiguration: {} }, { snapshot: bare }]) {
      const { needs } = await problemOf(await post(of(), "/v1/upgrade", { to: "1.37", ...body }), "needs_input");
      expect(needs).toEqual(["from"]);
    }
  });

  test("with a node's token cover that node's history only", async () => {
    const [own, other] = [fresh("upgrade"), fresh("upgrade")];
    for (const node of [own, other]) await decided(of(), node, 1);
    const headers = { authorization: `Bearer ${await tokenFor(of().store, ["read"], own)}` };
    const { history } = await upgrade(of(), { to: "1.37", since: SINCE }, headers);
    expect(Object.keys(history?.byNode ?? {})).toEqual([own]);
    await problemOf(await post(of(), "/v1/upgrade", { to: "1.37", node: other }, headers), "forbidden_node");
  });
}
