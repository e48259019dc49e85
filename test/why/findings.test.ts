import { describe, expect, it, test } from "vitest";
import type { PodExplanation } from "../../api/model/why.ts";
import { explainPod, explainPods } from "../../api/service/why/pod-explanation.ts";
import { plainPaint } from "../../api/text/style.ts";
import { podExplanationText } from "../../api/text/why.ts";
import { AT, event, LATER, node, pod } from "../kit/api-objects.ts";
import { container } from "../kit/containers.ts";
import type { Json } from "../kit/snapshots.ts";
import { codes, documentsOf, noExplanation, only, pieces, stories, story } from "./ask.ts";

const waiting = (reason: string, message = "", more: Json = {}): Json => ({
  phase: "Pending",
  containerStatuses: [
    { name: "app", ready: false, started: false, restartCount: 0, state: { waiting: { reason, message } }, ...more },
  ],
});

describe("the finding of an OOM-killed container", () => {
  const killed = { exitCode: 137, reason: "OOMKilled", startedAt: AT, finishedAt: LATER };
  const containers = [container("app", { memory: "64Mi" }, { memory: "128Mi" })];
  const status = {
    containerStatuses: [
      {
        name: "app",
        ready: true,
        restartCount: 3,
        state: { running: { startedAt: LATER } },
        lastState: { terminated: killed },
      },
    ],
  };
  const summary = (bytes: number): Json => ({
    node: { nodeName: "n1", memory: { time: LATER } },
    pods: [
      {
        podRef: { name: "web", namespace: "shop", uid: "u-web" },
        containers: [{ name: "app", memory: { usageBytes: bytes, workingSetBytes: bytes } }],
      },
    ],
  });
  it("has the memory limit of its cgroup, and its present usage", () => {
    const finding = only(story("web", [pod({ containers, status }), node(), summary(99)]), "oom-killed");
    expect(finding).toMatchObject({ container: "app", since: LATER, words: [{ reason: "OOMKilled" }] });
    expect(finding.numbers).toEqual({
      ...{ restarts: 3, exitCode: 137, endedBy: "OOMKilled" },
      ...{ limitBytes: 134217728, usageBytes: 99, workingSetBytes: 99, nodeOom: false },
    });
    expect(finding.decisions).toMatchObject([
      { kind: "cgroups", excerpt: { container: "app", values: { memory: 134217728 } } },
    ]);
    expect(finding.whatWouldChange).toEqual([
      { code: "memory_limit", numbers: { container: "app", limitBytes: 134217728 } },
    ]);
    expect(finding.missing).toMatchObject([
      { piece: "memory.peak", command: "kubectl exec -n shop web -c app -- cat /sys/fs/cgroup/memory.peak" },
    ]);
  });
  it("without a limit names the pod's limit or the node's OOM", () => {
    const oom = event("SystemOOM", "System OOM encountered, victim process: app, pid: 7", {
      involvedObject: { kind: "Node", name: "n1" },
      lastTimestamp: LATER,
    });
    const free = only(story("web", [pod({ status }), node(), oom]), "oom-killed");
    expect(free.numbers).toMatchObject({ limitBytes: null, nodeOom: true });
    expect(free.whatWouldChange).toEqual([]);
    const spec = { resources: { limits: { memory: "256Mi" } } };
    const { decisions } = only(story("web", [pod({ status, spec }), node()]), "oom-killed");
    expect(decisions).toMatchObject([{ excerpt: { values: { memory: 268435456 } } }]);
  });
  it("comes before the crash loop of the same container", () => {
    const looping = {
      state: { waiting: { reason: "CrashLoopBackOff", message: "back-off 1m20s restarting failed container=app" } },
      lastState: { terminated: killed },
    };
    const answer = story("web", [
      pod({ containers, status: { containerStatuses: [{ name: "app", ready: false, restartCount: 5, ...looping }] } }),
    ]);
    expect(codes(answer)).toEqual(["oom-killed", "crash-loop"]);
    expect(only(answer, "crash-loop").numbers.backOffSeconds).toBe(80);
  });
});

describe("the finding of a refused pod when other pods were removed since", () => {
  it("does not claim agreement, and its counterfactuals use the kubelet's amounts", () => {
    const message = "Node didn't have enough resource: cpu, requested: 2000, used: 3500, capacity: 4000";
    const status = { phase: "Failed", reason: "OutOfcpu", message: `Pod was rejected: ${message}`, startTime: AT };
    const web = pod({ containers: [container("app", { cpu: "2" })], status });
    const other = {
      ...pod({ containers: [container("c", { cpu: "3" })] }),
      metadata: { name: "db", namespace: "shop", uid: "u-db" },
    };
    const reported = only(story("web", [web, other, node()]), "refused");
    expect(reported.decisions).toMatchObject([{ agrees: null, differs: "used: 3000 in place of used: 3500" }]);
    expect(reported.whatWouldChange[0]).toMatchObject({
      ...{ code: "lower_request_admits", numbers: { resource: "cpu", requested: 2000, atMost: 500, less: 1500 } },
    });
    expect(shown(story("web", [web, other, node()]))).toContain("history: which pods were there then");
  });
});

describe("the finding of a waiting pod", () => {
  it("for a node has the scheduler's message, and what each node's kubelet would decide", () => {
    const containers = [container("app", { cpu: "5", memory: "1Gi" })];
    const conditions = [
      {
        type: "PodScheduled",
        status: "False",
        reason: "Unschedulable",
        message: "0/2 nodes are available: 2 Insufficient cpu.",
        lastTransitionTime: AT,
      },
    ];
    const waits = pod({
      containers,
      spec: { nodeName: undefined },
      status: { phase: "Pending", conditions, containerStatuses: [] },
    });
    const larger = node("n2", {
      capacity: { cpu: "8", memory: "8Gi", pods: "110" },
      allocatable: { cpu: "8", memory: "8Gi", pods: "110" },
    });
    const reported = only(
      story("web", [waits, node(), larger, event("FailedScheduling", "0/2 nodes are available: 2 Insufficient cpu.")]),
      "unscheduled",
    );
    expect(reported.words.map(({ from, message }) => [from, message])).toEqual([
      ["event", "0/2 nodes are available: 2 Insufficient cpu."],
      ["condition", "0/2 nodes are available: 2 Insufficient cpu."],
    ]);
    expect(reported.decisions.map(({ node: on, verdict }) => [on, verdict])).toEqual([
      ["n1", "refused"],
      ["n2", "decided"],
    ]);
    expect(reported.whatWouldChange).toMatchObject([
      { code: "lower_request_admits", numbers: { node: "n1", resource: "cpu", atMost: 4000 } },
    ]);
  });
  it("groups nodes with equal decisions and counts them, admitting nodes first", () => {
    const waits = pod({
      containers: [{ name: "app", resources: { requests: { cpu: "6" } } }],
      spec: { nodeName: undefined },
      status: { phase: "Pending", conditions: [], containerStatuses: [] },
    });
    const sized = (name: string, cpu: string) => {
      const amounts = { cpu, memory: "8Gi", pods: "110" };
      return node(name, { capacity: amounts, allocatable: amounts });
    };
    const alike = Array.from({ length: 40 }, (_, i) => sized(`n${i + 10}`, "4"));
    const answer = story("web", [waits, ...alike, sized("tiny", "1"), sized("wide", "8")]);
    expect(only(answer, "unscheduled").decisions).toHaveLength(42);
    const text = podExplanationText(answer, { columns: 200, paint: (_, text) => text });
    expect(text.match(/^DECISION admission on [^:]*/gm)).toEqual([
      "DECISION admission on wide",
      "DECISION admission on n10, n11, n12 and 37 more (40 nodes)",
      "DECISION admission on tiny",
    ]);
    expect(text).toMatch(/^- on n10, n11, n12 and 37 more with /m);
    const all = Array.from({ length: 510 }, (_, i) => sized(`n${i + 10}`, `${100 + i}m`));
    const many = podExplanationText(story("web", [waits, ...all]), { columns: 200, paint: (_, text) => text });
    expect(many.match(/^DECISION /gm)).toHaveLength(8);
    expect(many).toContain("\nand on 492 more nodes: 492 OutOfcpu; -o json has all\n");
    expect(many).toContain("\n- and 488 more like these, of other nodes\n");
    expect(many).toContain("what 10 of the 510 nodes can give: 500 are asked at a time");
  });
  it("with a scheduling gate asks no node", () => {
    const waits = pod({
      spec: { nodeName: undefined, schedulingGates: [{ name: "example.com/quota" }] },
      status: { phase: "Pending", containerStatuses: [] },
    });
    const { numbers, decisions } = only(story("web", [waits, node()]), "unscheduled");
    expect([numbers.gates, decisions]).toEqual([["example.com/quota"], []]);
  });
  it.each([
    ["volume", event("FailedMount", 'MountVolume.SetUp failed for volume "data" : secret "db" not found')],
    ["sandbox", event("FailedCreatePodSandBox", "Failed to create pod sandbox: no free address")],
    ["kubelet", null],
  ])("names its %s", (pending, said) => {
    const waits = pod({
      status: {
        phase: "Pending",
        startTime: undefined,
        containerStatuses: [],
        conditions: [{ type: "PodScheduled", status: "True", lastTransitionTime: AT }],
      },
    });
    const answer = story("web", [waits, ...(said === null ? [] : [said])]);
    const finding = only(answer, "not-started");
    expect(finding.numbers).toEqual({ pending });
    expect(finding.since).toBe(AT);
    expect(pieces(answer)).toEqual(said === null ? ["events"] : []);
  });
  describe("for ResourceClaims", () => {
    const POD = pod({
      containers: [{ ...container("app"), resources: { claims: [{ name: "gpu" }] } }],
      spec: { resourceClaims: [{ name: "gpu", resourceClaimName: "web-gpu" }] },
      status: { ...waiting("ContainerCreating"), startTime: AT },
    });
    const claim = (status: Json): Json => ({
      kind: "ResourceClaim",
      metadata: { name: "web-gpu", namespace: "shop", uid: "u-claim" },
      status,
    });
    const allocation = {
      devices: { results: [{ request: "gpu", driver: "gpu.example.com", pool: "n1", device: "gpu-0" }] },
    };
    const reservedFor = [{ resource: "pods", name: "web", uid: "u-web" }];
    const said = (words: string): Json =>
      event("FailedPrepareDynamicResources", `Failed to prepare dynamic resources: ${words}`, {
        involvedObject: { kind: "Pod", namespace: "shop", name: "web", uid: "u-web" },
      });
    const REFUSED = "prepare dynamic resources: pod web (u-web) is not allowed to use ResourceClaim web-gpu (u-claim)";
    const DRIVER = "prepare dynamic resources: DRA driver gpu.example.com is not registered";

    test.each([
      [REFUSED, "not-reserved", "web-gpu", null, "claim_reserved"],
      [DRIVER, "driver-not-registered", null, "gpu.example.com", "driver_registered"],
      ['pod "shop/web": ResourceClaim not created yet', "not-made", null, null, "claim_made"],
      [
        'prepare dynamic resources: fetch ResourceClaim web-gpu: resourceclaims.resource.k8s.io "web-gpu" not found',
        ...(["not-found", "web-gpu", null, "claim_made"] as const),
      ],
      [
        "prepare dynamic resources: ResourceClaim web-gpu: not allocated",
        "not-allocated",
        "web-gpu",
        null,
        "claim_allocated",
      ],
      [
        "prepare dynamic resources: old ResourceClaim with same name web-gpu and different UID u-old still exists (previous pod force-deleted?!)",
        ...(["older-claim", "web-gpu", null, "older_claim_ends"] as const),
      ],
      [
        "prepare dynamic resources: NodePrepareResources failed for ResourceClaim web-gpu: no such device",
        ...(["driver", "web-gpu", null, "driver_answers"] as const),
      ],
      ["something else", "unknown", null, null, undefined],
    ])("has the cause of the message %s: %s", (words, cause, name, driver, way) => {
      const finding = only(story("web", [POD, node(), said(words)]), "claims-not-prepared");
      expect(finding.numbers).toEqual({ cause, claim: name, driver });
      expect(finding.whatWouldChange.map(({ code }) => code)).toEqual(way === undefined ? [] : [way]);
      expect(finding.missing).toMatchObject([
        { piece: "resourceClaims", command: "kubectl get resourceclaims -n shop -o json" },
      ]);
    });
    it("has a decision on the posted claims, single or in a list", () => {
      const other = { kind: "ResourceClaim", metadata: { name: "other", namespace: "shop", uid: "u-other" } };
      const lists = [{ kind: "List", items: [other, claim({ allocation })] }];
      for (const documents of [[claim({ allocation }), other], lists]) {
        const finding = only(story("web", [POD, node(), said(REFUSED), ...documents]), "claims-not-prepared");
        expect(finding).toMatchObject({
          missing: [],
          decisions: [
            {
              kind: "claims",
              verdict: "refused",
              agrees: true,
              excerpt: { claims: [{ claim: "web-gpu", state: "refused" }] },
            },
          ],
        });
      }
    });
    it("names a claim without devices even without an event, with and without a node", () => {
      const bare = {
        ...claim({}),
        spec: { devices: { requests: [{ name: "gpu", exactly: { deviceClassName: "a100" } }] } },
      };
      expect(only(story("web", [POD, node(), bare]), "claims-not-prepared")).toMatchObject({
        numbers: { cause: "not-allocated", claim: "web-gpu", driver: null },
        words: [],
        decisions: [{ kind: "claims", agrees: null, differs: null }],
        whatWouldChange: [{ code: "claim_allocated" }],
      });
      const unbound = pod({
        containers: [container("app")],
        spec: { nodeName: undefined, resourceClaims: [{ name: "gpu", resourceClaimName: "web-gpu" }] },
        status: { phase: "Pending" },
      });
      const answer = story("web", [unbound, bare]);
      const finding = only(answer, "unscheduled");
      expect(finding.numbers).toEqual({ gates: [], claims: ["web-gpu"] });
      expect(finding.whatWouldChange).toEqual([
        { code: "claim_devices", numbers: { claim: "web-gpu", classes: "a100" } },
      ]);
      expect(finding.missing.map(({ piece }) => piece)).toContain("resourceSlices");
      expect(podExplanationText(answer, { columns: 200, paint: plainPaint })).toMatch(
        /^UNSCHEDULED {2}the scheduler has found no node for it, and has not allocated its ResourceClaim web-gpu$/m,
      );
      expect(only(story("web", [unbound, claim({ allocation })]), "unscheduled").numbers.claims).toEqual([]);
    });
    it("says when the documents no longer explain the message", () => {
      const answer = story("web", [POD, node(), said(REFUSED), claim({ allocation, reservedFor })]);
      expect(only(answer, "claims-not-prepared").decisions).toMatchObject([
        { agrees: null, differs: expect.stringContaining("its claims can be prepared"), excerpt: { message: null } },
      ]);
      const drivers = [{ name: "gpu.example.com", registered: false }];
      const driver = story("web", [
        POD,
        node(),
        said(DRIVER),
        claim({ allocation, reservedFor }),
        drivers as unknown as Json,
      ]);
      expect(only(driver, "claims-not-prepared").decisions).toMatchObject([{ agrees: true }]);
      expect(podExplanationText(driver, { columns: 100, paint: plainPaint })).toMatch(
        /^CLAIMS NOT PREPARED {2}its ResourceClaims are not prepared: a DRA driver is not registered on the node \(gpu\.example\.com\)$/m,
      );
    });
  });
  it("for its configuration has the container's reason and message", () => {
    const reported = only(
      story("web", [pod({ status: waiting("CreateContainerConfigError", 'secret "db" not found') })]),
      "config-error",
    );
    expect(reported).toMatchObject({
      container: "app",
      words: [{ reason: "CreateContainerConfigError", message: 'secret "db" not found' }],
    });
  });
  it("for an init container names it, how it ended, and which containers wait", () => {
    const ended = { terminated: { exitCode: 0, finishedAt: AT } };
    const failing = {
      waiting: { reason: "CrashLoopBackOff", message: "back-off 10s restarting failed container=migrate" },
    };
    const status = {
      ...waiting("PodInitializing"),
      initContainerStatuses: [
        { name: "fetch", restartCount: 0, ready: true, state: ended },
        {
          name: "migrate",
          restartCount: 2,
          ready: false,
          state: failing,
          lastState: { terminated: { exitCode: 1, reason: "Error", startedAt: AT, finishedAt: LATER } },
        },
      ],
    };
    const answer = story("web", [
      pod({ spec: { initContainers: [container("fetch"), container("migrate")] }, status }),
    ]);
    expect(codes(answer)).toEqual(["crash-loop", "init-waiting"]);
    expect(only(answer, "init-waiting")).toMatchObject({
      container: "migrate",
      numbers: { index: 2, of: 2, waiting: ["app"] },
    });
  });
  it("for a sidecar is given until the sidecar has started", () => {
    const spec = { initContainers: [{ ...container("proxy"), restartPolicy: "Always" }] };
    const proxy = (started: boolean) => ({
      name: "proxy",
      restartCount: 0,
      ready: false,
      started,
      state: { running: { startedAt: AT } },
    });
    const of = (started: boolean) =>
      story("web", [pod({ spec, status: { ...waiting("PodInitializing"), initContainerStatuses: [proxy(started)] } })]);
    expect(codes(of(false))).toEqual(["init-waiting"]);
    expect(codes(of(true))).toEqual(["not-started"]);
  });
});

describe("the finding of an image", () => {
  const said = 'Container image "shop/web:7" is not present with pull policy of Never';
  const spec = { containers: [{ ...container("app"), image: "shop/web:7", imagePullPolicy: "Never" }] };
  const waits = pod({ spec, status: waiting("ErrImageNeverPull", said) });
  const images = (...repoTags: readonly string[]): Json => ({ images: [{ id: "sha256:1", repoTags, size: "1" }] });
  it("that cannot be pulled has the kubelet's messages", () => {
    const pull = pod({ status: waiting("ImagePullBackOff", 'Back-off pulling image "shop/web:7"') });
    const answer = story("web", [pull, event("Failed", 'Failed to pull image "shop/web:7": not found', { count: 4 })]);
    const { numbers, words } = only(answer, "image-pull");
    expect(numbers).toEqual({ image: "shop/web:7", pullPolicy: null, onNode: null });
    expect(words.map(({ message, count }) => [message, count])).toEqual([
      ['Back-off pulling image "shop/web:7"', 1],
      ['Failed to pull image "shop/web:7": not found', 4],
    ]);
    expect(pieces(answer)).toEqual(["images"]);
  });
  it("that is missing with pull policy Never is image-gone", () => {
    const answer = story("web", [waits, node(), images("docker.io/shop/web:6")]);
    expect(only(answer, "image-gone")).toMatchObject({
      numbers: { image: "shop/web:7", pullPolicy: "Never", removedAt: null },
      whatWouldChange: [{ code: "image_pull_policy" }],
    });
    expect(pieces(answer)).toEqual(["history"]);
    expect(codes(story("web", [waits, node(), images("docker.io/shop/web:7")]))).toEqual(["image-pull"]);
  });
  it("that image GC removed says when and why", () => {
    const remove = [{ names: ["docker.io/shop/web:7"], why: "space", sizeBytes: 9, end: "removed" }];
    const pass = {
      kind: "image-gc",
      node: "n1",
      decidedAt: AT,
      verdict: "removes",
      policyVersion: "kubelet-1.36+11",
      decision: { remove },
    };
    const { numbers, whatWouldChange } = only(story("web", [waits, node(), images(), pass]), "image-gone");
    expect(numbers).toMatchObject({ removedAt: AT, why: "space", sizeBytes: 9 });
    expect(whatWouldChange.map(({ code }) => code)).toEqual(["image_pull_policy", "image_gc_threshold"]);
  });
  it("on a full file system says what an image garbage collection would do with the image", () => {
    const full = { time: LATER, capacityBytes: 1000, availableBytes: 50 };
    const stats = { node: { nodeName: "n1", memory: { time: LATER }, fs: full, runtime: { imageFs: full } }, pods: [] };
    const pull = pod({ spec, status: waiting("ImagePullBackOff", "no space left on device") });
    const { decisions } = only(
      story("web", [
        pull,
        node(),
        images("docker.io/shop/web:7"),
        { containers: [] },
        { items: [{ id: "s", metadata: { name: "x", uid: "x" }, state: "SANDBOX_READY", createdAt: "1" }] },
        stats,
      ]),
      "image-pull",
    );
    expect(decisions).toMatchObject([
      { kind: "image-gc", excerpt: { fileSystem: { usagePercent: 95 }, image: { names: ["docker.io/shop/web:7"] } } },
    ]);
  });
});

describe("the finding of a container at its CPU limit", () => {
  const containers = [container("app", { cpu: "100m" }, { cpu: "500m" })];
  const ofCpu = (nanos: number, psi?: number): Json => ({
    node: { nodeName: "n1", cpu: { time: LATER, usageNanoCores: 1 } },
    pods: [
      {
        podRef: { name: "web", namespace: "shop", uid: "u-web" },
        containers: [
          {
            name: "app",
            cpu: { usageNanoCores: nanos, ...(psi === undefined ? {} : { psi: { some: { avg10: psi } } }) },
          },
        ],
      },
    ],
  });
  const v2 =
    "usage_usec 32000000\nuser_usec 1\nsystem_usec 1\nnr_periods 1000\nnr_throttled 400\nthrottled_usec 12000000\n";
  it("from cgroup v2's cpu.stat has periods, share, average, and a limit that would suffice", () => {
    const answer = story("web", [pod({ containers }), node(), v2]);
    const { numbers, decisions, whatWouldChange } = only(answer, "throttled");
    expect(numbers).toEqual({
      ...{ limitMilli: 500, quotaMicros: 50_000, periodMicros: 100_000, usageMilli: null, pressureAvg10: null },
      // 32 s of CPU time in 1000 periods of 0.1 s; 12 s of waiting in 400 of them are 30 ms each
      ...{ periods: 1000, throttledPeriods: 400, throttledMicros: 12_000_000, averageMilli: 320, enoughMilli: 800 },
    });
    expect(decisions).toMatchObject([
      { kind: "cgroups", excerpt: { values: { cpuQuota: 50_000, cpuPeriod: 100_000 } } },
    ]);
    expect(whatWouldChange.map(({ code }) => code)).toEqual(["cpu_limit", "no_cpu_limit"]);
    expect(answer.missing).toEqual([]);
  });
  it("from cgroup v1's cpu.stat converts nanoseconds, and uses the node's quota period", () => {
    const v1 = "nr_periods 1000 nr_throttled 400 throttled_time 12000000000";
    const configz = { kubeletconfig: { cpuCFSQuotaPeriod: "20ms", featureGates: { CustomCPUCFSQuotaPeriod: true } } };
    const { numbers } = only(story("web", [pod({ containers }), node(), configz, v1]), "throttled");
    expect(numbers).toMatchObject({
      quotaMicros: 10_000,
      periodMicros: 20_000,
      throttledMicros: 12_000_000,
      averageMilli: null,
      enoughMilli: 2000,
    });
  });
  it("without a node uses the limit's quota over the default period", () => {
    const answer = story("web", [pod({ containers }), v2]);
    const { numbers, decisions } = only(answer, "throttled");
    expect(numbers).toMatchObject({ quotaMicros: 50_000, periodMicros: 100_000, averageMilli: 320, enoughMilli: 800 });
    expect([decisions, pieces(answer)]).toEqual([[], ["node"]]);
    const off = { kubeletconfig: { cpuCFSQuota: false } };
    expect(codes(story("web", [pod({ containers }), off, v2]))).toEqual(["healthy"]);
  });
  it("suggests no limit above the node's CPUs", () => {
    const long = "nr_periods 100 nr_throttled 100 throttled_usec 900000000";
    expect(only(story("web", [pod({ containers }), node(), long]), "throttled").numbers.enoughMilli).toBe(4000);
  });
  it("from two readings counts the difference between them", () => {
    const first = "nr_periods 1000\nnr_throttled 400\nthrottled_usec 12000000\n";
    const second = "nr_periods 1100\nnr_throttled 450\nthrottled_usec 13000000\n";
    const { numbers } = only(story("web", [pod({ containers }), node(), first, second]), "throttled");
    expect(numbers).toMatchObject({ periods: 100, throttledPeriods: 50, throttledMicros: 1_000_000 });
  });
  it("from its usage alone says likely throttled, and asks for cpu.stat", () => {
    const answer = story("web", [pod({ containers }), node(), ofCpu(480_000_000, 12.5)]);
    expect(only(answer, "throttled").numbers).toMatchObject({
      usageMilli: 480,
      pressureAvg10: 12.5,
      periods: null,
      enoughMilli: null,
    });
    expect(answer.missing).toMatchObject([
      { piece: "cpu.stat", command: "kubectl exec -n shop web -c app -- cat /sys/fs/cgroup/cpu.stat" },
    ]);
    expect(codes(story("web", [pod({ containers }), node(), ofCpu(200_000_000)]))).toEqual(["healthy"]);
    expect(
      codes(story("web", [pod({ containers }), node(), "nr_periods 1000 nr_throttled 3 throttled_usec 5"])),
    ).toEqual(["healthy"]);
  });
  it("belongs to the container whose name or id is in the file's path", () => {
    const two = [...containers, container("log", {}, { cpu: "1" })];
    const id = "a".repeat(64);
    const statuses = two.map(({ name }) => ({
      name,
      ready: true,
      containerID: name === "log" ? `containerd://${id}` : "",
      state: { running: { startedAt: AT } },
    }));
    const documents = [pod({ containers: two, status: { containerStatuses: statuses } }), node()];
    const of = (path: string) =>
      storyOfFiles([...documents.map((value, i) => ({ origin: `f${i}`, value })), { origin: path, value: v2 }]);
    expect(of("stats/app/cpu.stat")).toEqual(["app"]);
    expect(of(`/sys/fs/cgroup/kubepods/burstable/podu/${id}/cpu.stat`)).toEqual(["log"]);
    expect(of("cpu.stat")).toEqual([]);
  });
});

const storyOfFiles = (files: readonly { origin: string; value: unknown }[]): readonly (string | null)[] => {
  const answer = explainPod(files, { pod: "web", namespace: null });
  return answer.ok
    ? answer.value.findings.flatMap(({ code, container: of }) => (code === "throttled" ? [of] : []))
    : ["error"];
};

/** The text for a terminal, without colors. */
const shown = (answer: PodExplanation): string => podExplanationText(answer, { columns: Infinity, paint: plainPaint });

describe("the finding of a resize", () => {
  const six = { cpu: "6", memory: "1Gi" };
  const one = { cpu: "1", memory: "1Gi" };
  const containers = [container("app", six, six)];
  const of = (reason: string, message: string, metadata: Json = {}) =>
    pod({
      containers,
      metadata,
      status: {
        qosClass: "Guaranteed",
        conditions: [{ type: "PodResizePending", status: "True", reason, message, lastTransitionTime: LATER }],
        containerStatuses: [
          {
            name: "app",
            ready: true,
            state: { running: { startedAt: AT } },
            allocatedResources: one,
            resources: { requests: one, limits: one },
          },
        ],
      },
    });
  const other = {
    ...pod({ containers: [container("c", { cpu: "3" })] }),
    metadata: { name: "db", namespace: "shop", uid: "u-db" },
  };
  const old = node("n1", { nodeInfo: { kubeletVersion: "v1.35.4" } });
  const configz = (config: Json) => ({ kubeletconfig: { kubeReserved: { cpu: "100m" }, ...config } });
  it("that exceeds the node's capacity says how much is possible", () => {
    const message = "Node didn't have enough capacity: cpu, requested: 6000, capacity: 4000";
    const { numbers, words, decisions, whatWouldChange, since } = only(
      story("web", [of("Infeasible", message), other, old]),
      "resize-infeasible",
    );
    expect(since).toBe(LATER);
    expect(words).toMatchObject([{ from: "condition", reason: "Infeasible", message }]);
    expect(numbers.resources).toEqual([
      { container: "app", resource: "requests.cpu", from: "1", to: "6" },
      { container: "app", resource: "limits.cpu", from: "1", to: "6" },
    ]);
    expect(decisions).toMatchObject([
      { kind: "resize", agrees: true, excerpt: { status: "Infeasible", check: "capacity", message, isRetried: false } },
    ]);
    expect(whatWouldChange).toEqual([
      { code: "resize_at_most", numbers: { resource: "cpu", requested: 6000, atMost: 1000, less: 5000 } },
    ]);
  });
  const manifest = { annotations: { "kubernetes.io/config.source": "file" } };
  const policies = { cpuManagerPolicy: "static", memoryManagerPolicy: "Static" };
  // the messages are word for word those of the kubelets 1.34 to 1.37 and of the API server; without documents about
  // the cause an outcome is not compared
  test.each([
    ["Node didn't have enough capacity: cpu, requested: 6000, capacity: 4000", "capacity", ["resize_at_most"], [old]],
    [
      "node didn't have enough allocatable resources: cpu, requested: 6000, allocatable: 4000",
      "capacity",
      ["resize_at_most"],
      [node()],
    ],
    [
      'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"',
      "cpu-manager-policy",
      ["resize_setting"],
      [configz(policies), node()],
    ],
    [
      'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"',
      "memory-manager-policy",
      ["resize_setting"],
      null,
    ],
    ["In-place resize of containers with swap is not supported.", "swap", ["resize_restart_policy"], null],
    ["Memory-backed emptyDir volume resize is disabled", "memory-volume", ["resize_setting"], null],
    ["Memory-backed emptyDir volume resize is not supported on cgroups v1", "memory-volume", [], null],
    [
      "InPlacePodVerticalScaling is disabled",
      "feature-gate",
      ["resize_setting"],
      [configz({ featureGates: { InPlacePodVerticalScaling: false } }), old],
    ],
    ["InPlacePodLevelResourcesVerticalScaling is disabled", "feature-gate", ["resize_setting"], null],
    ["In-place resize of static-pods is not supported", "static-pod", [], [old]],
    ["In-place pod resize is not supported on this node", "platform", [], null],
    ["In-place pod-level resources resize is not supported on Windows", "platform", [], null],
    ["Pod QOS Class may not change as a result of resizing", "not-resizable", [], null],
    ["resource limits cannot be removed", "not-resizable", [], null],
    ["only cpu and memory resources are mutable", "not-resizable", [], null],
    ["a word of a later kubelet", "unknown", [], null],
  ] as const)("that is infeasible has the cause of the message %s", (message, cause, ways, documents) => {
    const isStatic = cause === "static-pod";
    const answer = story("web", [
      of("Infeasible", message, isStatic ? manifest : {}),
      other,
      ...(documents ?? [node()]),
    ]);
    const { numbers, decisions, whatWouldChange } = only(answer, "resize-infeasible");
    expect(numbers.cause).toBe(cause);
    // the other pods also leave no room for a new pod of that size
    expect(whatWouldChange.map(({ code }) => code)).toEqual(ways);
    expect(decisions).toMatchObject([{ kind: "resize", verdict: "refused", agrees: documents === null ? null : true }]);
    const [, headline = ""] = shown(answer).split("\n");
    expect(headline.includes("the node can never give what is asked for")).toBe(cause === "capacity");
    expect(headline).toMatch(/^RESIZE INFEASIBLE {2}\S.*: app requests.cpu 1 -> 6 and app limits.cpu 1 -> 6$/);
  });
  it("that a node policy forbids names the policy, and what a new pod would get", () => {
    const message = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"';
    const amounts = { cpu: "8", memory: "8Gi", pods: "110" };
    const answer = story("web", [
      of("Infeasible", message),
      { ...other, spec: { nodeName: "n2" } },
      node("n1", { capacity: amounts, allocatable: amounts }),
    ]);
    const { decisions, missing } = only(answer, "resize-infeasible");
    expect(decisions).toMatchObject([{ agrees: null, differs: "the kubelet would take it now" }]);
    expect(missing.map(({ piece }) => piece)).toEqual(["pods", "kubeletConfiguration"]);
    expect(shown(answer)).toContain(
      `RESIZE INFEASIBLE  a Guaranteed pod keeps the CPU that it started with where the CPU manager's policy is static: app`,
    );
    expect(shown(answer)).toContain(`
WHAT WOULD CHANGE IT
- with cpuManagerPolicy: none in the kubelet's configuration, or the feature gate InPlacePodVerticalScalingExclusiveCPUs, the kubelet would consider it
- a new pod of this size would be admitted
`);
  });
  it("without the pod's allocated resources asks for the state file", () => {
    const bare = of("Deferred", "Node didn't have enough resource: cpu, requested: 6000, used: 3000, capacity: 4000");
    const { containerStatuses, ...status } = bare["status"] as Json;
    const { decisions, missing } = only(story("web", [{ ...bare, status }, other, node()]), "resize-deferred");
    expect(decisions).toEqual([]);
    expect(missing).toMatchObject([{ piece: "state files", command: "cat /var/lib/kubelet/allocated_pods_state" }]);
  });
  it("that is deferred has its place in the queue, and the pods that would have to leave", () => {
    const amounts = { cpu: "7", memory: "8Gi", pods: "110" };
    const message = "Node didn't have enough resource: cpu, requested: 6000, used: 3000, capacity: 7000";
    const answer = story("web", [of("Deferred", message), other, node("n1", { allocatable: amounts })]);
    const { decisions, whatWouldChange } = only(answer, "resize-deferred");
    expect(decisions).toMatchObject([{ agrees: true, excerpt: { place: 1, of: 1, leave: [{ name: "db" }] } }]);
    expect(whatWouldChange).toEqual([
      { code: "resize_at_most", numbers: { resource: "cpu", requested: 6000, atMost: 4000, less: 2000 } },
      { code: "resize_leave", numbers: { pods: "shop/db" } },
    ]);
    expect(shown(answer)).toContain("- without shop/db there would be room; the kubelet ends no pod for a resize\n");
    expect(shown(answer)).toContain(
      `refused, on these documents · kubelet-1.36+11 · agrees with the kubelet\n  Deferred: ${message}\n`,
    );
  });
  it("that is deferred is compared by its amounts, and one in progress has its error", () => {
    const message = "Node didn't have enough resource: cpu, requested: 6000, used: 3000, capacity: 4000";
    expect(only(story("web", [of("Deferred", message), other, node()]), "resize-deferred").decisions).toMatchObject([
      { agrees: true, differs: null },
    ]);
    const then = message.replace("used: 3000", "used: 3500");
    expect(only(story("web", [of("Deferred", then), other, node()]), "resize-deferred").decisions).toMatchObject([
      { agrees: null, differs: "used: 3000 in place of used: 3500" },
    ]);
    const conditions = [
      {
        type: "PodResizeInProgress",
        status: "True",
        reason: "Error",
        message: "failed to write cpu.max",
        lastTransitionTime: AT,
      },
    ];
    expect(only(story("web", [pod({ status: { conditions } })]), "resize-in-progress").words).toMatchObject([
      { reason: "Error" },
    ]);
  });
});

describe("the finding of a pod that something else ends", () => {
  const disrupted = (reason: string, message: string) =>
    pod({
      status: {
        phase: "Failed",
        conditions: [{ type: "DisruptionTarget", status: "True", reason, message, lastTransitionTime: AT }],
      },
    });
  test.each([
    ["disrupted", disrupted("EvictionByEvictionAPI", "Eviction API: evicting")],
    [
      "disrupted",
      disrupted("PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod"),
    ],
    ["node-shutdown", disrupted("TerminationByKubelet", "Pod was terminated in response to imminent node shutdown.")],
    [
      "deadline-exceeded",
      pod({
        spec: { activeDeadlineSeconds: 30 },
        status: {
          phase: "Failed",
          reason: "DeadlineExceeded",
          message: "Pod was active on the node longer than the specified deadline",
        },
      }),
    ],
  ] as const)("is %s", (code, document) => {
    expect(codes(story("web", [document]))).toEqual([code]);
  });
  it("after its deletion time says by how long it is late, and what delays it", () => {
    const metadata = { deletionTimestamp: AT, deletionGracePeriodSeconds: 30, finalizers: ["example.com/drain"] };
    const reported = only(
      story("web", [
        pod({ metadata }),
        event("Killing", "Stopping container app", { type: "Normal", lastTimestamp: LATER }),
      ]),
      "terminating",
    );
    expect(reported.numbers).toEqual({ graceSeconds: 30, finalizers: ["example.com/drain"], overdueSeconds: 600 });
    expect(reported.since).toBe("2026-01-31T11:59:30.000Z");
  });
  it("on a lost node is node-lost", () => {
    const conditions = [
      {
        type: "Ready",
        status: "Unknown",
        reason: "NodeStatusUnknown",
        message: "Kubelet stopped posting node status.",
        lastTransitionTime: LATER,
      },
    ];
    const answer = story("web", [pod(), node("n1", { conditions })]);
    expect(codes(answer)).toEqual(["node-lost"]);
    expect(only(answer, "node-lost")).toMatchObject({ since: LATER, numbers: { node: "n1", ready: "Unknown" } });
  });
  it("over a local storage limit has the limit and the usage in the stats", () => {
    const said = 'Usage of EmptyDir volume "cache" exceeds the limit "100Mi". ';
    const status = { phase: "Failed", reason: "Evicted", message: said, containerStatuses: [] };
    const { numbers, whatWouldChange } = only(story("web", [pod({ status }), event("Evicted", said)]), "evicted");
    expect(numbers).toMatchObject({ cause: "emptyDir", limit: "100Mi", containers: [{ name: "cache" }] });
    expect(whatWouldChange).toMatchObject([{ code: "storage_limit", numbers: { limit: "100Mi" } }]);
    for (const [cause, words] of [
      ["pod-ephemeral-storage", "Pod ephemeral local storage usage exceeds the total limit of containers 2Gi. "],
      ["container-ephemeral-storage", 'Container app exceeded its local ephemeral storage limit "1Gi". '],
    ]) {
      expect(only(story("web", [event("Evicted", String(words))]), "evicted").numbers.cause).toBe(cause);
    }
  });
});

describe("findings from events alone", () => {
  it.each([
    ["refused", event("OutOfcpu", "Node didn't have enough resource: cpu, requested: 500, used: 1800, capacity: 1800")],
    ["evicted", event("Evicted", "The node was low on resource: memory. ")],
    ["preempted", event("Preempting", "Preempted in order to admit critical pod")],
    ["image-pull", event("Failed", 'Failed to pull image "shop/web:7": not found')],
    [
      "restarted-by-probe",
      event("Killing", "Container app failed liveness probe, will be restarted", { type: "Normal" }),
    ],
    ["crash-loop", event("BackOff", "Back-off restarting failed container app in pod web_shop(u-web)")],
    [
      "unscheduled",
      event("FailedScheduling", "0/1 nodes are available", { source: { component: "default-scheduler" } }),
    ],
    ["unknown", event("ProbeWarning", "Readiness probe warning: ")],
  ])("can be %s, and ask for the pod itself", (code, said) => {
    const answer = story("web", [said]);
    expect(codes(answer)[0]).toBe(code);
    expect(answer.pod).toMatchObject({ name: "web", namespace: "shop", phase: null });
    expect(answer.missing.map(({ command }) => command)).toContain("kubectl get pod -n shop web -o json");
  });
  it("are the same from events.k8s.io", () => {
    const { involvedObject, message, ...rest } = event(
      "OutOfcpu",
      "Node didn't have enough resource: cpu, requested: 1, used: 2, capacity: 2",
    );
    const other = {
      ...rest,
      apiVersion: "events.k8s.io/v1",
      regarding: involvedObject,
      note: message,
      deprecatedLastTimestamp: LATER,
      lastTimestamp: undefined,
    };
    expect(only(story("web", [other]), "refused")).toMatchObject({
      since: LATER,
      numbers: { resource: "cpu", requested: 1 },
    });
  });
});

describe("the pod that an explanation is about", () => {
  const named = (name: string, namespace: string, uid: string, more: Json = {}) =>
    pod({ metadata: { name, namespace, uid, ...more } });
  it("is named by NAME, NAMESPACE/NAME, -n and NAME, or uid", () => {
    const documents = [named("web", "shop", "u1"), named("db", "shop", "u2"), named("web", "test", "u3")];
    for (const [given, namespace, uid] of [
      ["db", null, "u2"],
      ["test/web", null, "u3"],
      ["web", "shop", "u1"],
      ["u3", null, "u3"],
    ] as const) {
      expect(story(given, documents, namespace).pod.uid).toBe(uid);
    }
    expect(noExplanation("web", documents)).toMatchObject({
      code: "ambiguous_pod",
      message: "there is a pod web in 2 namespaces: shop/web, test/web; name one",
      near: ["shop/web", "test/web"],
    });
  });
  it("is suggested when not found: by a similar name, a Deployment's name, or another namespace", () => {
    const documents = [named("web-7d9f-x2x", "shop", "u1"), named("api", "shop", "u2")];
    expect(noExplanation("web", documents)).toMatchObject({ code: "no_such_pod", near: ["shop/web-7d9f-x2x"] });
    expect(noExplanation("apl", documents)).toMatchObject({ near: ["shop/api"] });
    expect(noExplanation("api", documents, "test")).toMatchObject({ near: ["shop/api"] });
    expect(noExplanation("other", documents).message).toBe(
      "no pod `other` among the 2 pods that the documents tell of",
    );
  });
  it("is the newest of two with one name, without the other's events", () => {
    const documents = [
      named("web", "shop", "u1", { creationTimestamp: AT }),
      named("web", "shop", "u-web", { creationTimestamp: LATER }),
    ];
    const old = event("OutOfcpu", "", { involvedObject: { kind: "Pod", namespace: "shop", name: "web", uid: "u1" } });
    const answer = story("web", [...documents, old]);
    expect([answer.pod.uid, codes(answer)]).toEqual(["u-web", ["healthy"]]);
    expect(answer.notes).toEqual([
      "events of another pod of this name are left out: 1 (other uid)",
      "there are documents of 2 pods of this name: this is of the one made last",
    ]);
  });
});

describe("documents of an explanation", () => {
  it("are refused when they are from two clusters", () => {
    const other = noExplanation("web", [pod(), node("n1", {}, { uid: "a" }), node("n1", {}, { uid: "b" })]);
    expect(other).toMatchObject({
      code: "contradicting_documents",
      message: expect.stringContaining("both a node n1, with the uids b and a"),
    });
    const elsewhere = node("n1", { addresses: [{ type: "InternalIP", address: "10.1.1.1" }] });
    expect(story("web", [pod({ status: { hostIP: "10.2.2.2" } }), elsewhere]).notes).toEqual([
      "the pod ran on 10.2.2.2, and node n1 has the address 10.1.1.1: is it the node of another cluster?",
    ]);
    expect(noExplanation("web", [pod(), pod({ spec: { nodeName: "n2" } })]).message).toContain("a pod never moves");
  });
  it("are listed as unused when they are of another node or about no pod", () => {
    const summary = { node: { nodeName: "n2", memory: { time: AT } }, pods: [] };
    const answer = story("web", [pod(), node("n2"), summary, { kind: "Secret", data: { a: "b" } }, "text"]);
    expect(answer.unused).toEqual([
      { origin: "file 3", what: "an object of kind `Secret`", why: "nothing in it is about a pod" },
      { origin: "file 4", what: "text", why: "nothing in it is about a pod" },
      { origin: "n2", what: "stats of another node", why: "the pod is on n1" },
      { origin: "file 1", what: "node n2", why: "the pod is on n1" },
    ]);
  });
  it("without a pod, or with an invalid pod, are refused", () => {
    expect(noExplanation("web", [node()])).toMatchObject({ code: "no_pods" });
    expect(noExplanation("web", [])).toMatchObject({ code: "no_pods" });
    expect(noExplanation("web", [{ ...pod(), status: { phase: 1 } }])).toMatchObject({
      code: "invalid_document",
      message: expect.stringContaining("file 0: is no v1.Pod as Kubernetes writes it: status.phase: "),
    });
  });
  it("that are one page of several are reported as incomplete", () => {
    const answer = story("web", [{ kind: "List", metadata: { continue: "abc" }, items: [pod()] }]);
    expect(answer.unused).toMatchObject([
      { why: "it is one page of several (metadata.continue is set): what the others hold is not known" },
    ]);
  });
});

describe("a list of all pods with findings", () => {
  const sick = pod({ metadata: { name: "sick", uid: "s" }, status: waiting("ImagePullBackOff", "Back-off") });
  const refused = pod({
    metadata: { name: "out", uid: "o" },
    status: {
      phase: "Failed",
      reason: "OutOfcpu",
      message: "Pod was rejected: Node didn't have enough resource: cpu, requested: 1, used: 2, capacity: 2",
    },
  });
  it("has the worst first, and omits pods without a finding", () => {
    const {
      stories: reported,
      pods,
      calm,
    } = stories([{ kind: "PodList", items: [pod(), sick, refused].map(({ kind: _, ...rest }) => rest) }]);
    expect(reported.map(({ pod: { name }, code, reason }) => [name, code, reason])).toEqual([
      ["out", "refused", "OutOfcpu"],
      ["sick", "image-pull", "ImagePullBackOff"],
    ]);
    expect([pods, calm]).toEqual([3, 1]);
    expect(stories([pod(), sick], "shop").stories).toHaveLength(1);
    expect(explainPods(documentsOf([pod(), sick]), "shops")).toMatchObject({
      error: { code: "no_such_pod", message: expect.stringContaining("they tell of pods in shop"), near: ["shop"] },
    });
  });
  it("omits a pod being deleted until it is late", () => {
    const ending = (deletionTimestamp: string) =>
      pod({ metadata: { deletionTimestamp, deletionGracePeriodSeconds: 30 } });
    const seen = [event("Killing", "Stopping container app", { lastTimestamp: LATER })];
    expect(stories([ending("2026-01-31T12:10:20Z"), ...seen])).toMatchObject({ stories: [], calm: 1 });
    expect(stories([ending("2026-01-31T12:05:00Z"), ...seen]).stories).toMatchObject([{ code: "terminating" }]);
  });
  it("reports an invalid pod as unused, and lists the others", () => {
    const { stories: reported, unused } = stories([sick, { ...pod(), status: { phase: 1 } }]);
    expect(reported).toHaveLength(1);
    expect(unused).toMatchObject([{ origin: "file 1", why: expect.stringContaining("status.phase") }]);
  });
});

describe("a node below an eviction threshold that its conditions do not show yet", () => {
  const configz = (evictionHard: Json) => ({ kubeletconfig: { evictionHard, enableControllerAttachDetach: true } });
  const summary = (time: string): Json => ({
    node: { nodeName: "n1", memory: { time, availableBytes: 2 ** 20, workingSetBytes: 2 ** 30 } },
    pods: [],
  });
  const calm = node("n1", { conditions: [{ type: "MemoryPressure", status: "False", lastTransitionTime: AT }] });
  const running = pod({ status: { phase: "Running", startTime: AT } });
  const reportOf = (time: string, hard = "100Mi") =>
    story("web", [running, calm, summary(time), configz({ "memory.available": hard }), event("Pulled", "", {})]);
  it("is under pressure in its kubelet's next pass", () => {
    const finding = only(reportOf(LATER), "under-pressure");
    expect(finding).toMatchObject({
      words: [],
      numbers: { conditions: ["MemoryPressure"] },
      decisions: [{ kind: "eviction" }],
    });
    expect(podExplanationText(reportOf(LATER), { paint: plainPaint, columns: 120 })).toContain(
      "the next pass of its node's kubelet will find MemoryPressure, which the node's status does not show yet",
    );
  });
  it("is healthy when stats are above the threshold, or are outdated", () => {
    expect(codes(reportOf(LATER, "1Ki"))).toEqual(["healthy"]);
    expect(codes(reportOf("2026-01-01T00:00:00Z"))).toEqual(["healthy"]);
  });
});
