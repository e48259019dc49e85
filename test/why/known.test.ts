import { describe, expect, it } from "vitest";
import type { AdditionalEvidence } from "../../api/service/why/evidence.ts";
import { explainPod, explainPods } from "../../api/service/why/pod-explanation.ts";
import { plainPaint } from "../../api/text/style.ts";
import { podExplanationListText, podExplanationText } from "../../api/text/why.ts";
import { AT, event, LATER, node, pod } from "../kit/api-objects.ts";
import { container } from "../kit/containers.ts";
import type { Json } from "../kit/snapshots.ts";
import { codes, documentsOf, noExplanation, only, pieces, stories, story } from "./ask.ts";

const limited = [container("app", { cpu: "100m" }, { cpu: "500m" })];
const two = [...limited, container("log", {}, { cpu: "1" })];
const calm = "nr_periods 1000\nnr_throttled 0\nthrottled_usec 0\n";
const stopped = "nr_periods 1000\nnr_throttled 400\nthrottled_usec 12000000\n";
/** A /stats/summary in which the container app uses `nanos` nanocores. */
const using = (nanos: number): Json => ({
  node: { nodeName: "n1", cpu: { time: LATER, usageNanoCores: 1 } },
  pods: [
    {
      podRef: { name: "web", namespace: "shop", uid: "u-web" },
      containers: [{ name: "app", cpu: { usageNanoCores: nanos } }],
    },
  ],
});
/** The unused documents when a cpu.stat with this path is given. */
function unusedOf(path: string, values: readonly unknown[], stat = stopped): readonly string[] {
  const answer = explainPod([...documentsOf(values), { origin: path, value: stat }], { pod: "web", namespace: null });
  return answer.ok ? answer.value.unused.map(({ origin, why }) => `${origin}: ${why}`) : [answer.error.message];
}

describe("throttling without evidence", () => {
  const command = "kubectl exec -n shop web -c app -- cat /sys/fs/cgroup/cpu.stat";
  it("is missing for an otherwise healthy pod, with the command that reads cpu.stat", () => {
    const answer = story("web", [pod({ containers: limited }), node()]);
    expect(codes(answer)).toEqual(["healthy"]);
    expect(answer.missing).toEqual([
      { piece: "cpu.stat", why: "whether container app is stopped at its CPU limit", command },
    ]);
    expect(podExplanationText(answer, { columns: Infinity, paint: plainPaint })).toContain(
      `NOT KNOWN\n- cpu.stat: whether container app is stopped at its CPU limit\n  ${command}\n`,
    );
  });
  it.each<[string, readonly unknown[]]>([
    ["no CPU limit", [pod(), node()]],
    ["a cpu.stat", [pod({ containers: limited }), node(), calm]],
    ["its use", [pod({ containers: limited }), node(), using(1_000_000)]],
    ["no quota on the node", [pod({ containers: limited }), node(), { kubeletconfig: { cpuCFSQuota: false } }]],
  ])("is not missing with %s", (_, values) => {
    expect(pieces(story("web", values))).toEqual([]);
  });
  it("is read from another file on cgroup v1", () => {
    const snapshot = { node: node(), cgroup: { version: 1 }, pods: [] };
    const answer = story("web", [pod({ containers: limited }), snapshot]);
    expect(answer.missing.map((one) => one.command)).toEqual([command.replace("cgroup/", "cgroup/cpu/")]);
  });
});

describe("a pod with a finding from numbers alone", () => {
  it("is listed with the numbers, naming its container once", () => {
    const list = stories([pod({ containers: limited }), node(), using(490_000_000)]);
    expect(list.stories).toMatchObject([{ code: "throttled", container: "app", reason: "" }]);
    expect(podExplanationListText(list, { columns: Infinity, paint: plainPaint })).toMatch(
      /^THROTTLED .* {2}container app uses 490m of its limit of 500m CPU: it is most likely throttled now and then$/m,
    );
  });
});

describe("a pod that runs again after a restart", () => {
  it("has the finding restarted, though its status lacks conditions", () => {
    const lastState = { terminated: { exitCode: 1, finishedAt: AT, reason: "Error" } };
    const status = { name: "app", restartCount: 1, ready: false, state: { running: { startedAt: LATER } }, lastState };
    const answer = story("web", [
      pod({ status: { phase: "Running", conditions: [], containerStatuses: [status] } }),
      node(),
    ]);
    expect(codes(answer)).toEqual(["restarted"]);
  });
});

describe("a cpu.stat that fits no container", () => {
  it.each<[string, string, readonly unknown[], RegExp]>([
    [
      "of several that have a limit",
      "cpu.stat",
      [pod({ containers: two })],
      /^cpu.stat: app, log have a CPU limit, and whose/,
    ],
    ["without any limit", "cpu.stat", [pod()], /no container of shop\/web runs with a CPU limit$/],
    [
      "of a container without one",
      "side/cpu.stat",
      [pod({ containers: [...limited, container("side")] })],
      /container side has no CPU limit/,
    ],
    [
      "of a pod that has ended",
      "cpu.stat",
      [pod({ containers: limited, status: { phase: "Succeeded" } })],
      /no container of shop\/web runs/,
    ],
    [
      "of a pod that is not there",
      "cpu.stat",
      [event("Started", "Started container app")],
      /the pod shop\/web itself is not there/,
    ],
    [
      "of another pod",
      "/kubepods/pod12345678-1234-1234-1234-123456789abc/cpu.stat",
      [pod({ containers: limited })],
      /it is of the pod 12345678-1234-1234-1234-123456789abc$/,
    ],
  ])("is unused and reported with the cause: %s", (_, path, values, why) => {
    expect(unusedOf(path, values)).toEqual([expect.stringMatching(why)]);
  });
  it("is unused when it has more throttled periods than periods", () => {
    const stat = "nr_periods 100\nnr_throttled 400\nthrottled_usec 1\n";
    expect(unusedOf("cpu.stat", [pod({ containers: limited })], stat)).toEqual([
      "cpu.stat: no cgroup has that: nr_throttled of 400 is more than nr_periods of 100",
    ]);
    expect(codes(story("web", [pod({ containers: limited }), node(), stat]))).toEqual(["healthy"]);
    // the two readings cannot be of one cgroup, so their difference is not used
    const { numbers } = only(
      story("web", [pod({ containers: limited }), node(), calm, "nr_periods 1010 nr_throttled 900 throttled_usec 9"]),
      "throttled",
    );
    expect(numbers).toMatchObject({ periods: 1010, throttledPeriods: 900 });
  });
  it("is unused in a list of pods, unless its path has a container id", () => {
    const id = "b".repeat(64);
    const status = {
      containerStatuses: [
        { name: "app", ready: true, containerID: `containerd://${id}`, state: { running: { startedAt: AT } } },
      ],
    };
    const other = pod({ containers: limited, metadata: { name: "other", uid: "u-other" } });
    const values = [pod({ containers: limited, status }), other, node()];
    const listed = (path: string) => {
      const answer = explainPods([...documentsOf(values), { origin: path, value: stopped }], null);
      return answer.ok ? answer.value : null;
    };
    expect(listed("cpu.stat")).toMatchObject({
      stories: [],
      unused: [{ origin: "cpu.stat", why: "whose it is does not stand in it: ask for one pod" }],
    });
    expect(listed(`/sys/fs/cgroup/${id}/cpu.stat`)).toMatchObject({
      stories: [{ code: "throttled", pod: { name: "web" } }],
      unused: [],
    });
  });
});

describe("the list of pods", () => {
  const shown = (values: readonly unknown[]): string =>
    podExplanationListText(stories(values), { columns: Infinity, paint: plainPaint });
  it("says what was not checked, and counts only fully checked pods as calm", () => {
    const free = pod({ metadata: { name: "free", uid: "u-free" } });
    const list = stories([pod({ containers: limited }), free, node()]);
    expect(list).toMatchObject({ stories: [], pods: 2, calm: 1, unknown: 1 });
    expect(list.missing).toMatchObject([{ piece: "stats", command: "nodewise why shop/web" }]);
    expect(shown([pod({ containers: limited }), free, node()])).toBe(
      `no problem was found with 2 pods; 1 could not be checked completely

NOT KNOWN
- stats: throttling was not checked for 1 pod with a CPU limit: that needs each kubelet's /stats/summary, or a cpu.stat; name one pod
  nodewise why shop/web
`,
    );
    expect(shown([pod({ containers: limited }), free, node(), using(1)])).toBe("no problem with 2 pods\n");
  });
  it("counts a pod without evidence as unknown", () => {
    const silent = pod({ status: { phase: "Failed", containerStatuses: [] } });
    const evicted = event("Evicted", "The node was low on resource: memory. ", {
      involvedObject: { kind: "Pod", namespace: "shop", name: "out", uid: "u-out" },
    });
    expect(stories([silent, evicted])).toMatchObject({ pods: 2, calm: 0, unknown: 1 });
    expect(shown([silent, evicted])).toContain(
      "\n1 of 2 pods; no problem with 0; 1 could not be checked completely\n\nNOT KNOWN\n- events: the input does not show the state of 1 pod; name one pod to see which input does\n",
    );
  });
});

describe("contradicting documents", () => {
  const old = node("n1", { nodeInfo: { kubeletVersion: "v1.34.2" } });
  const newer = node("n1", { nodeInfo: { kubeletVersion: "v1.37.0" } });
  it.each([
    ["the first before", [old, newer]],
    ["the last before", [newer, old]],
  ])("are two of one node with different kubelet versions, %s", (_, nodes) => {
    const { code, message } = noExplanation("web", [pod(), ...nodes]);
    expect(code).toBe("contradicting_documents");
    expect(message).toMatch(/are both a node n1, with the kubelets v1\.3[47]\.\d and v1\.3[47]\.\d/);
    expect(explainPods(documentsOf([pod(), ...nodes]), null).ok).toBe(false);
  });
  it("are not a node and a snapshot of an earlier time", () => {
    expect(codes(story("web", [pod(), newer, { node: old, pods: [] }]))).toEqual(["healthy"]);
    expect(codes(story("web", [pod(), { node: old, pods: [] }, newer]))).toEqual(["healthy"]);
  });
  it("are a /configz with a field that the node's kubelet does not know", () => {
    const configz = { kubeletconfig: { imagePullCredentialsVerificationPolicy: "NeverVerify", neverWas: 1 } };
    expect(noExplanation("web", [pod(), newer, configz]).message).toBe(
      "/configz: neverWas: a kubelet 1.37, which node n1 has, does not know the field, so this is another kubelet's /configz: give that of n1",
    );
    const own = { kubeletconfig: { cpuCFSQuota: true } };
    expect(codes(story("web", [pod(), newer, own]))).toEqual(["healthy"]);
  });
});

describe("an explanation from events alone", () => {
  it("names every container that keeps ending", () => {
    const of = (name: string) => ({
      involvedObject: {
        ...{ kind: "Pod", namespace: "shop", name: "web", uid: "u-web" },
        fieldPath: `spec.containers{${name}}`,
      },
    });
    const events = ["app", "oom"].flatMap((name, i) => [
      event("Started", `Started container ${name}`, { ...of(name), type: "Normal", count: 3 + i }),
      event("BackOff", `Back-off restarting failed container ${name} in pod web_shop(u-web)`, of(name)),
    ]);
    const answer = story("web", events);
    expect(
      answer.findings.map(({ code, container: of, numbers, words }) => [
        code,
        of,
        "restarts" in numbers ? numbers.restarts : null,
        words.length,
      ]),
    ).toEqual([
      ["crash-loop", "app", 2, 1],
      ["crash-loop", "oom", 3, 1],
    ]);
  });
});

describe("an explanation of a live cluster", () => {
  const live = (values: readonly unknown[], beside: AdditionalEvidence) => {
    const answer = explainPod(documentsOf(values), { pod: "web", namespace: null }, beside);
    if (!answer.ok) throw new Error(answer.error.message);
    return answer.value;
  };
  const waits = pod({ spec: { nodeName: "n1" }, status: { phase: "Pending", containerStatuses: [] } });
  it("does not ask for events when the cluster has none of the pod", () => {
    expect(pieces(live([waits, node()], {}))).toEqual(["events"]);
    const answer = live([waits, node()], { hasAllEvents: true });
    expect([pieces(answer), answer.findings.flatMap((one) => one.missing)]).toEqual([[], []]);
    expect(answer.notes).toEqual(["the cluster has no events of the pod: an API server keeps them for an hour"]);
    expect(live([waits, node(), event("FailedMount", "no volume")], { hasAllEvents: true }).notes).toEqual([]);
    expect(live([pod(), node()], { hasAllEvents: true }).notes).toEqual([]);
  });
  it("has the time of reading as its time", () => {
    expect(live([waits], {}).asOf).toBe(`${AT.slice(0, -1)}.000Z`);
    const readAtMs = Date.parse(LATER) + 5000;
    const late = pod({ metadata: { deletionTimestamp: LATER, deletionGracePeriodSeconds: 30 } });
    const answer = live([late], { readAtMs });
    expect(answer.asOf).toBe(new Date(readAtMs).toISOString());
    expect(only(answer, "terminating").numbers.overdueSeconds).toBe(5);
  });
});
