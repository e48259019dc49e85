import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, test as everyTest, expect } from "vitest";
import type { AdmissionDecision } from "../../../api/model/admission.ts";
import type { AllocatableDecision } from "../../../api/model/allocatable.ts";
import type { ClaimsDecision } from "../../../api/model/claims.ts";
import type { EvictionDecision } from "../../../api/model/eviction.ts";
import type { PreemptionDecision } from "../../../api/model/preemption.ts";
import type { ProbesDecision } from "../../../api/model/probes-decision.ts";
import type { PodResize, ResizeDecision } from "../../../api/model/resize.ts";
import type { FindingOf } from "../../../api/model/why.ts";
import { profileOf } from "../../../api/profiles/index.ts";
import { deployed, deployedWith, KUBECTL, named } from "../../api/deployed.ts";
import { KUBERNETES, kubernetes, NEWEST_KUBERNETES } from "../go-programs.ts";
import { noPods } from "../pods/skip.ts";
import { WAITS } from "../pods/until.ts";
import { READER, revokedToken, rightsOf, serviceAccount, tokenOf, WITHOUT_CLAIMS, WITHOUT_KUBELETS } from "./access.ts";
import type { Credentials } from "./api-client.ts";
import { apply } from "./apply.ts";
import { ControlPlane, noCluster } from "./control-plane.ts";
import { decided } from "./decided.ts";
import { ClusterNode, NODE_NAME } from "./node.ts";
import { Operator, rightsIn } from "./operator.ts";
import {
  infeasibleResize,
  livenessRestart,
  memoryEviction,
  outOfCpu,
  podLevelResize,
  preemption,
  resizes,
  type Scene,
  type SeenEvent,
  type SeenPod,
  Stage,
  unreservedClaim,
} from "./scenes.ts";
import { Shadow } from "./shadow.ts";

/** The names of the collector and its namespace in api/deploy. */
const [COLLECTOR, DEPLOYED_IN] = ["nodewise-collector", "nodewise-api"];
const LONG_MS = 300_000;
const WHAT = "a real cluster";
const VERSIONS = [KUBERNETES, NEWEST_KUBERNETES].map((version) => ({
  version,
  why: noPods(WHAT) ?? noCluster(`${WHAT} of ${version}`, version, kubernetes("kubelet", version)),
}));

/** The newest version that this machine has: tests that depend on no version use only this one. */
const NEWEST_THERE = (VERSIONS.findLast(({ why }) => why === undefined) ?? VERSIONS.at(-1))?.version;

const reportOf = ({ events }: Pick<Scene, "events">, reason: string): SeenEvent =>
  events.find((event) => event.reason === reason) as SeenEvent;

describe.each(VERSIONS)("a node of a real cluster of $version", { timeout: LONG_MS }, ({ version, why }) => {
  const test = everyTest.skipIf(why !== undefined);
  let plane: ControlPlane;
  let node: ClusterNode;
  let stage: Stage;
  let shadow: Shadow;
  let reader: Credentials;
  let operator: Operator;
  /** The API server's warnings about the objects of api/deploy. */
  let warnings: readonly string[];
  beforeAll(async () => {
    if (why !== undefined) return;
    plane = await ControlPlane.start(version);
    node = await ClusterNode.start(plane, version);
    stage = new Stage(plane.admin, node, () => shadow.looked(NODE_NAME));
    reader = await serviceAccount(plane, "reader", READER);
    operator = new Operator(plane.kubeconfig("reader", reader));
    warnings = await apply(plane.admin, deployed());
    shadow = await Shadow.start(plane.kubeconfig("collector", await collectorToken()));
  }, LONG_MS);
  afterAll(async () => {
    await shadow?.stop();
    await node?.stop();
    await plane?.stop();
  }, LONG_MS);

  /** A token with exactly the rights that api/deploy grants. */
  const collectorToken = (): Promise<Credentials> => tokenOf(plane, COLLECTOR, DEPLOYED_IN);
  /** Plays a scene, and reports what an operator sees of its pod before the scene's pods are removed. */
  const play = async <T extends object>(
    act: (stage: Stage) => Promise<Scene>,
    observe: (pod: SeenPod) => Promise<T>,
  ): Promise<Scene & T> => {
    const scene = await act(stage);
    const reported = await observe(scene.pod);
    await stage.clear(...scene.pods);
    return { ...scene, ...reported };
  };
  const asData = async (pod: SeenPod) => ({ story: await operator.story(pod) });
  const asDataAndText = async (pod: SeenPod) => {
    const [story, text] = await Promise.all([operator.story(pod), operator.storyText(pod)]);
    return { story, text };
  };

  test("the kubelet checks the rights of its clients itself", async () => {
    const asReader = node.kubelet(reader);
    const poor = node.kubelet(await serviceAccount(plane, "poor", WITHOUT_KUBELETS));
    for (const path of ["/configz", "/stats/summary", "/pods", "/metrics"]) {
      expect([path, (await asReader.ask("GET", path)).status]).toEqual([path, 200]);
      const refused = await poor.ask("GET", path);
      expect(refused).toMatchObject({ status: 403, body: expect.stringContaining("serviceaccount:default:poor") });
    }
    expect((await asReader.ask("POST", "/exec/default/none/app?command=id")).status).toBe(403);
    for (const client of [asReader, poor]) client.close();
  });

  test("its allocatable equals Nodewise's decision from its configuration", async () => {
    const parts = await node.parts();
    const { allocatable } = await decided<AllocatableDecision>("allocatable", parts);
    expect(allocatable).toEqual((await node.read()).status.allocatable);
  });

  test("the kubelet restarts a container with a failing liveness probe when Nodewise says so", async () => {
    const scene = await play(livenessRestart, asData);
    const { containers } = await decided<ProbesDecision>("probes", scene.before, scene.pod, "--liveness", "fail");
    expect(containers).toMatchObject([{ container: "app", firstRestartAtMs: 1000 }]);
    const { message, count = 0 } = reportOf(scene, "Unhealthy");
    expect(message).toBe("Liveness probe failed: not alive\n");
    // the next container may also have failed by now
    expect(count).toBeGreaterThanOrEqual(2);
    expect(reportOf(scene, "Killing").message).toBe("Container app failed liveness probe, will be restarted");
    const { numbers, ...finding } = scene.story.findings[0] as FindingOf<"restarted-by-probe">;
    expect(finding).toMatchObject({
      ...{ code: "restarted-by-probe", container: "app" },
      words: expect.arrayContaining([
        expect.objectContaining({ from: "event", reason: "Killing", message: reportOf(scene, "Killing").message }),
      ]),
      decisions: [{ kind: "probes", excerpt: { firstRestartAtMs: 1000 } }],
    });
    expect(numbers.type).toBe("liveness");
    expect(numbers.failures).toBeGreaterThanOrEqual(2);
    expect(numbers.restarts).toBeGreaterThanOrEqual(1);
  });

  test("a resize that the kubelet calls infeasible is so for Nodewise, and counts the old requests", async () => {
    const scene = await play(infeasibleResize, asDataAndText);
    const message = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"';
    expect(scene.pod.status.conditions).toContainEqual(
      expect.objectContaining({ type: "PodResizePending", status: "True", reason: "Infeasible", message }),
    );
    const { resizes: decisions } = await decided<ResizeDecision>(
      "resize",
      scene.before,
      "default/resized",
      "--to",
      "cpu=500m",
    );
    expect(decisions).toMatchObject([{ status: "Infeasible", message }]);
    expect(reportOf(scene, "ResizeInfeasible").message).toContain(JSON.stringify(message).slice(1, -1));
    const [finding] = scene.story.findings;
    expect(finding).toMatchObject({
      ...{
        code: "resize-infeasible",
        words: [{ from: "condition", reason: "Infeasible", message }, { from: "event" }],
      },
      numbers: { cause: "cpu-manager-policy" },
      decisions: [{ kind: "resize", agrees: true, excerpt: { status: "Infeasible", check: "cpu_manager", message } }],
    });
    expect(scene.text).toContain(
      "\nRESIZE INFEASIBLE  a Guaranteed pod keeps the CPU that it started with where the CPU manager's policy is static: app requests.cpu 1 -> 500m and app limits.cpu 1 -> 500m\n",
    );
    expect(scene.text).toContain("\n- with cpuManagerPolicy: none in the kubelet's configuration, or ");
  });

  test("deferred and accepted resizes are predicted before they are requested", async () => {
    const { waits, taken } = await resizes(stage);
    const ask = async ({ pod, before }: Scene, to: string): Promise<PodResize> => {
      const more = ["--to", to, "--cgroup-version", "1"];
      const { resizes } = await decided<ResizeDecision>("resize", before, `default/${pod.metadata.name}`, ...more);
      return resizes.at(-1) as PodResize;
    };
    const [first, second] = [await ask(waits, "cpu=1"), await ask(taken, "cpu=200m")];
    const pending = waits.pod.status.conditions?.find(({ type }) => type === "PodResizePending");
    expect(first).toMatchObject({ status: "Deferred", message: expect.stringContaining("enough resource: cpu") });
    expect(pending).toMatchObject({ reason: first.status, message: first.message });
    const [finding] = (await operator.story(waits.pod)).findings;
    // the other pod has been resized since then
    expect(finding).toMatchObject({ code: "resize-deferred", decisions: [{ kind: "resize" }] });
    expect(finding?.decisions[0]).toMatchObject({ excerpt: { status: "Deferred", isRetried: true } });
    expect(finding?.decisions[0]?.agrees).not.toBe(false);
    expect(second).toMatchObject({ status: "InProgress", actuation: { restarts: [], error: null } });
    const written = second.actuation?.writes.flatMap(({ path, values }) =>
      values.cpuShares === undefined ? [] : [[path, String(values.cpuShares)]],
    );
    expect(written).toHaveLength(2);
    const found = written?.map(([path]) => [path, readFileSync(`/sys/fs/cgroup/cpu${path}/cpu.shares`, "utf8").trim()]);
    expect(found).toEqual(written);
    await stage.clear(...waits.pods);
  });

  test("a pod with a deferred pod-level resize counts with the resources the kubelet has allocated", async () => {
    const { waits, taken } = await podLevelResize(stage);
    const pending = waits.pod.status.conditions?.find(({ type }) => type === "PodResizePending");
    const change = { container: null, list: "requests", resource: "cpu", from: "100m", to: "1" };
    const cgroup = ["--cgroup-version", "1"];
    const asked = ["--to", "cpu=200m", ...cgroup];
    const { resizes } = await decided<ResizeDecision>("resize", taken.before, "default/grows", ...asked);
    expect(resizes).toMatchObject([
      { pod: { name: "wide" }, status: pending?.reason, message: pending?.message, changes: [change] },
      { pod: { name: "grows" }, status: "InProgress" },
    ]);
    expect(reportOf(taken, "ResizeCompleted").message).toContain('"cpu":"200m"');
    await stage.clear(...waits.pods);
  });

  test("a pod is refused for missing CPU in the kubelet's words", async () => {
    const scene = await play(outOfCpu, asDataAndText);
    const decision = await decided<AdmissionDecision>("admission", scene.before, scene.pod);
    const { reason, message } = decision;
    expect(decision).toMatchObject({ admit: false, reason: "OutOfcpu" });
    expect(scene.pod.status).toMatchObject({ phase: "Failed", reason, message: `Pod was rejected: ${message}` });
    expect(reportOf(scene, "OutOfcpu").message).toBe(message);
    const [finding] = scene.story.findings;
    const [, used] = /used: (\d+)/.exec(message) ?? [];
    expect(finding).toMatchObject({
      ...{ code: "refused", decisions: [{ kind: "admission", agrees: true, excerpt: { reason, message } }] },
      numbers: { again: false, resource: "cpu", requested: 100_000, used: Number(used), capacity: 1800 },
      words: expect.arrayContaining([expect.objectContaining({ from: "event", reason, message })]),
    });
    expect(scene.text).toContain(`OutOfcpu: ${scene.pod.status.message}\n`);
    expect(scene.text).toContain(" · agrees with the kubelet\n");
    expect(scene.story.missing).toEqual([]);
  });

  test("a claim reserved for another pod is refused in the kubelet's words, with the rights to read it", async () => {
    const ask = (user: Operator) =>
      user.nodewise("decide", "claims", "--context", "test", "--pod", "default/claims", "-o", "json");
    const poor = new Operator(plane.kubeconfig("no-claims", await serviceAccount(plane, "no-claims", WITHOUT_CLAIMS)));
    const observe = async (pod: SeenPod) => {
      const [live, lacking, snapshot] = await Promise.all([
        ask(operator),
        ask(poor),
        operator.nodewise("snapshot", "--context", "test", "--node", NODE_NAME),
      ]);
      expect(await apply(plane.admin, rightsIn(lacking))).toEqual([]);
      await expect.poll(() => ask(poor), WAITS).toMatchObject({ code: 1, stderr: "", stdout: live.stdout });
      return { ...(await asData(pod)), live, lacking, snapshot };
    };
    const { live, lacking, snapshot, story, ...scene } = await play(unreservedClaim, observe);
    const { message } = reportOf(scene, "FailedPrepareDynamicResources");
    expect(message).toContain(" is not allowed to use ResourceClaim gpu (");
    expect(live).toMatchObject({ code: 1, stderr: "" });
    const { decision } = JSON.parse(live.stdout) as { readonly decision: ClaimsDecision };
    expect(decision).toMatchObject({ refusal: { message }, allocationFaults: [] });
    expect(lacking.stderr).toContain(
      "the right to get resourceclaims, and to list deviceclasses and resourceslices is ",
    );
    expect(JSON.parse(snapshot.stdout)).toMatchObject({
      dra: {
        resourceSlices: { items: [{ spec: { allNodes: true } }] },
        deviceClasses: { items: [{ kind: "DeviceClass" }] },
      },
    });
    expect(story.findings[0]).toMatchObject({
      ...{ code: "claims-not-prepared", numbers: { cause: "not-reserved", claim: "gpu" }, missing: [] },
      decisions: [{ kind: "claims", agrees: true, excerpt: { message } }],
    });
  });

  test("the kubelet preempts for a critical pod the pods that Nodewise names", async () => {
    const { before, pods, story, ...scene } = await play(preemption, asData);
    const critical = pods.at(-1) as SeenPod;
    const { admit, preempt } = await decided<PreemptionDecision>("preemption", before, critical);
    expect(admit).toBe(true);
    expect(preempt.map(({ uid }) => uid)).toEqual([scene.pod.metadata.uid]);
    expect(reportOf(scene, "Preempting").message).toBe("Preempted in order to admit critical pod");
    const { namespace, name, uid } = critical.metadata;
    expect(story.findings[0]).toMatchObject({
      ...{ code: "preempted", numbers: { by: { namespace, name, uid } } },
      decisions: [{ kind: "admission", agrees: true, excerpt: { preempt: [{ uid: scene.pod.metadata.uid }] } }],
    });
  });

  test("under memory pressure the kubelet evicts the pod that Nodewise names, with the same numbers", async () => {
    const scene = await play(memoryEviction, asData);
    const { evicted, conditions } = await decided<EvictionDecision>("eviction", scene.before);
    const [first] = evicted;
    expect(evicted.map(({ pod }) => pod.uid)).toEqual([scene.pod.metadata.uid]);
    expect(conditions).toMatchObject([{ type: "MemoryPressure" }]);
    const { message = "", reason } = scene.pod.status;
    expect(reason).toBe(first?.reason);
    expect(wordsOf(message)).toBe(wordsOf(first?.message ?? ""));
    // the pod's usage may change slightly between the snapshot and the kubelet's own measurement
    for (const [i, kibibytes] of numbersOf(message).entries()) {
      expect(Math.abs(kibibytes - (numbersOf(first?.message ?? "")[i] ?? 0))).toBeLessThan(4096);
    }
    const [, usage] = /app was using (\d+Ki), request is 0/.exec(message) ?? [];
    const numbers = { name: "app", usage, request: "0", resource: "memory" };
    expect(scene.story.findings[0]).toMatchObject({
      ...{ code: "evicted", numbers: { cause: "node-resource", resource: "memory" } },
      words: expect.arrayContaining([expect.objectContaining({ from: "status", reason, message })]),
      whatWouldChange: expect.arrayContaining([{ code: "request_covers_usage", numbers }]),
      next: [{ pod: { name: "modest" }, fate: "evicted", place: 1, resource: "memory" }],
    });
  });

  test("decide, snapshot, lint and upgrade read the node by its name", async () => {
    const on = ["--context", "test", "--node", NODE_NAME] as const;
    const other = profileOf(version === KUBERNETES ? NEWEST_KUBERNETES : KUBERNETES).version;
    const [live, snapshot, lint, upgrade] = await Promise.all([
      operator.json<{ readonly decision: AllocatableDecision }>("decide", "allocatable", ...on),
      operator.nodewise("snapshot", ...on),
      operator.json<LintAnswer>("lint", ...on),
      operator.json("upgrade", "--to", other, ...on),
    ]);
    const { status } = await node.read();
    expect(live.decision.allocatable).toEqual(status.allocatable);
    expect(snapshot).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(snapshot.stdout)).toMatchObject({
      node: { metadata: { name: NODE_NAME }, status: { nodeInfo: { kubeletVersion: `v${version}` } } },
      kubeletConfiguration: {
        kubeletconfig: { cpuManagerPolicy: "static", evictionHard: { "memory.available": "100Mi" } },
      },
      stats: { node: { nodeName: NODE_NAME } },
    });
    const found = lint.findings.map(({ code, field }) => [code, field]);
    expect(found).toContainEqual(["eviction-defaults-dropped", "evictionHard"]);
    expect(found).toContainEqual(["transition-short", "evictionPressureTransitionPeriod"]);
    // the kubelet runs with this configuration, so no finding may say that it fails to start
    expect(lint.findings.filter(({ kubelet }) => kubelet)).toEqual([]);
    expect(upgrade).toMatchObject({
      reports: [{ node: NODE_NAME, from: { version: profileOf(version).version }, to: { version: other }, starts: [] }],
      unreported: [],
    });
  });

  test("the API server accepts all of api/deploy, and its collector may only read", async () => {
    expect(warnings).toEqual([]);
    const [collector, api] = [COLLECTOR, "nodewise-api"].map((name) => named(deployed(), "Deployment", name));
    const misspelt = { ...api, spec: { ...api.spec, replica: 1 } };
    await expect(apply(plane.admin, [misspelt], { dryRun: true })).rejects.toThrow(/\.spec\.replica/);
    if (KUBECTL)
      for (const components of [["tls"], ["postgres"], ["tls", "postgres"]] as const)
        expect(await apply(plane.admin, deployedWith(...components), { dryRun: true })).toEqual([]);
    for (const { metadata, spec } of [collector, api]) {
      const pod = { ...spec.template, apiVersion: "v1", kind: "Pod" };
      const made = { ...pod, metadata: { ...pod.metadata, name: metadata.name, namespace: DEPLOYED_IN } };
      expect(await apply(plane.admin, [made], { dryRun: true })).toEqual([]);
    }
    const asCollector = plane.client(await collectorToken());
    const asApi = plane.client(await tokenOf(plane, "nodewise-api", DEPLOYED_IN));
    const everybodys = new Set((await rightsOf(asApi)).map((rule) => JSON.stringify(rule)));
    const own = (await rightsOf(asCollector)).filter((rule) => !everybodys.has(JSON.stringify(rule)));
    expect(own).toEqual(named(deployed(), "ClusterRole", COLLECTOR).rules);
    expect([...everybodys].filter((rule) => !/selfsubject|clustertrustbundles/.test(rule))).toEqual([]);
    const denied = [
      ["GET", "/api/v1/secrets"],
      ["POST", "/api/v1/namespaces/default/pods/any/exec?command=id"],
      ["GET", `/api/v1/nodes/${NODE_NAME}/proxy/configz`],
    ] as const;
    for (const [verb, path] of denied) expect([path, (await asCollector.ask(verb, path)).status]).toEqual([path, 403]);
    const atKubelet = node.kubelet(await collectorToken());
    expect((await atKubelet.ask("POST", "/exec/default/any/app?command=id")).status).toBe(403);
    for (const client of [asCollector, asApi, atKubelet]) client.close();
  });

  test("the collector observed each of these, and Nodewise decides as the kubelet did", async () => {
    expect(shadow.faults).toEqual([]);
    const outcomes = await shadow.outcomes();
    const reported = outcomes.map(({ kind, pod, verdict, comparison }) => [
      kind,
      pod?.name ?? null,
      verdict,
      comparison?.difference ?? comparison?.why?.code ?? null,
    ]);
    expect(reported.filter(([, , verdict]) => verdict === "differs")).toEqual([]);
    const agreed = new Set(outcomes.filter(({ verdict }) => verdict === "agrees").map(({ kind }) => kind));
    expect([...agreed].sort(), JSON.stringify(reported)).toEqual(
      expect.arrayContaining(["admission", "claims", "probes"]),
    );
    expect([...new Set(outcomes.map(({ kind }) => kind))].sort()).toEqual([
      "admission",
      "claims",
      "conditions",
      "eviction",
      "preemption",
      "probes",
      "resize",
    ]);
    const ofClaims = reported.filter(([kind]) => kind === "claims").map(([, ...one]) => one);
    expect(ofClaims.sort()).toEqual([
      ["claims", "agrees", null],
      ["prepared", "agrees", null],
    ]);
    const of = (kind: string, reason: string) =>
      outcomes.filter((one) => one.kind === kind && one.reason === reason).length;
    const { kubeletRefusals, kubeletEvicted } = await shadow.fleetNode(NODE_NAME);
    expect(of("admission", "OutOfcpu")).toBeGreaterThan(0);
    expect(kubeletRefusals).toContainEqual({ reason: "OutOfcpu", count: of("admission", "OutOfcpu") });
    expect(of("eviction", "Evicted")).toBeGreaterThan(0);
    expect(kubeletEvicted).toBe(of("eviction", "Evicted"));
  });

  if (version !== NEWEST_THERE) return;
  test.each([
    ["jane", 4, "get nodes", async () => plane.credentialsOf("jane", "/CN=jane")],
    ["ops", 1, "get nodes/configz and nodes/stats", () => serviceAccount(plane, "ops", WITHOUT_KUBELETS)],
  ])("%s, without a right, gets the YAML that grants it", async (name, code, right, credentials) => {
    const user = new Operator(plane.kubeconfig(name, await credentials()));
    const ask = () => user.nodewise("decide", "eviction", "--context", "test", "--node", NODE_NAME);
    const refused = await ask();
    expect(refused).toMatchObject({ code, stdout: "" });
    expect(refused.stderr).toContain(`nodewise: the right to ${right} is missing: `);
    const rights = rightsIn(refused);
    expect(rights.map(({ kind }) => kind)).toEqual(["ClusterRole", "ClusterRoleBinding"]);
    expect(await apply(plane.admin, rights)).toEqual([]);
    await expect.poll(ask, WAITS).toMatchObject({ code: 0, stderr: "", stdout: expect.stringContaining("eviction") });
  });

  test("an unknown context and a revoked token are reported", async () => {
    expect(await operator.nodewise("why", "--context", "prod")).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/has no context prod: its contexts are test\n$/),
    });
    const revoked = new Operator(plane.kubeconfig("gone", await revokedToken(plane, "gone")));
    const refused = await revoked.plugin("why", "web", "-n", "default");
    expect(refused).toMatchObject({ code: 4, stdout: "" });
    expect(refused.stderr).toMatch(/^nodewise: \S+ answers 401: Unauthorized: the credentials are not accepted: .*\n$/);
  });

  test("a deleted node is gone from the fleet, and its history stays", async () => {
    await plane.admin.must("DELETE", `/api/v1/nodes/${NODE_NAME}`);
    const standing = async () => (await shadow.fleetNode(NODE_NAME)).severity;
    await expect.poll(standing, WAITS).toBe("gone");
    expect((await shadow.outcomes()).length).toBeGreaterThan(0);
  });
});

interface LintAnswer {
  readonly findings: readonly { readonly code: string; readonly field: string; readonly kubelet: boolean }[];
}

const NUMBER = /(\d+)Ki/g;
const wordsOf = (message: string): string => message.replaceAll(NUMBER, "Ki");
const numbersOf = (message: string): readonly number[] => [...message.matchAll(NUMBER)].map(([, n]) => Number(n));
