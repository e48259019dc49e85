import { describe, expect, it } from "vitest";
import type { FindingCode } from "../../api/model/finding-numbers.ts";
import { codes, only, story } from "./ask.ts";
import {
  admissionStories,
  data,
  evictionStories,
  preemptionStories,
  preemptorStories,
  probeStories,
  type RealStory,
} from "./real-documents.ts";

interface Captured {
  readonly status: { readonly phase: string; readonly reason?: string; readonly message?: string };
}
const reportOf = ({ pod, documents }: RealStory) => story(pod, documents);
const PREFIX = "Pod was rejected: ";

describe("explanations of pods refused by a real kubelet", () => {
  const captured = data<Readonly<Record<string, Captured>>>("real-why/admission.json");
  const refused = admissionStories().filter(({ name }) => captured[name]?.status.phase === "Failed");
  it("are tested for 28 captured pods", () => expect(refused).toHaveLength(28));
  it.each(refused)("$name: the finding has the kubelet's message, and the decision agrees", (real) => {
    const { status } = captured[real.name] as Captured;
    const answer = reportOf(real);
    expect(codes(answer)).toEqual(["refused"]);
    const { words, decisions, since } = only(answer, "refused");
    expect(words.map(({ from, reason, message }) => [from, reason, message])).toEqual([
      ["status", status.reason, status.message],
      ["event", status.reason, status.message?.slice(PREFIX.length)],
    ]);
    expect(since).toMatch(/^2026-11-21T06:2\d:\d\dZ$/);
    expect(decisions).toMatchObject([{ kind: "admission", agrees: true, differs: null, basis: "documents" }]);
    expect(answer.missing).toEqual([]);
  });
  it("have the shortage in numbers, and what would change it", () => {
    const real = refused.find(({ name }) => name === "full-node/cpu") as RealStory;
    const { numbers, whatWouldChange } = only(reportOf(real), "refused");
    expect(numbers).toEqual({ again: false, resource: "cpu", requested: 500, used: 1800, capacity: 1800 });
    expect(whatWouldChange).toMatchObject([{ code: "lower_request_admits", numbers: { resource: "cpu", atMost: 0 } }]);
  });
});

describe("explanations of pods admitted beside them", () => {
  const captured = data<Readonly<Record<string, Captured>>>("real-why/admission.json");
  const running = admissionStories().filter(({ name }) => captured[name]?.status.phase === "Running");
  it.each(running)("$name is healthy, or waits for a readiness gate", (real) => {
    const gated = real.name === "with-room/readiness-gate-and-scheduling-gate";
    expect(codes(reportOf(real))).toEqual([gated ? "not-ready" : "healthy"]);
  });
});

describe("explanations of pods preempted by a real kubelet", () => {
  const all = preemptionStories();
  it("are tested for all captured victims", () =>
    expect(all.map(({ name }) => name)).toEqual([
      "crit-150m: bu3",
      "crit-600m-needs-guaranteed: gi",
      "crit-pods-count: f08",
    ]));
  it.each(all)("$name: the finding names the preemptor, though the status does not", (real) => {
    const answer = reportOf(real);
    expect(answer.pod.phase).toBe("Succeeded");
    expect(codes(answer)).toEqual(["preempted"]);
    const { numbers, words, decisions } = only(answer, "preempted");
    expect(numbers.by?.name).toBe(real.by);
    expect(words.map(({ from, reason, message }) => [from, reason, message])).toEqual([
      ["event", "Preempting", "Preempted in order to admit critical pod"],
      ["condition", "TerminationByKubelet", "Pod was preempted by Kubelet to accommodate a critical pod."],
    ]);
    expect(decisions).toMatchObject([{ kind: "admission", agrees: true, excerpt: { admit: true } }]);
  });
  it("name another pod that the kubelet could have chosen", () => {
    const [decision] = only(reportOf(all[2] as RealStory), "preempted").decisions;
    expect(decision).toMatchObject({
      agrees: true,
      differs: "default/f10 could have been preempted as well: a kubelet chooses any of them",
    });
  });
});

describe("explanations of the preemptors", () => {
  const captured = data<Readonly<Record<string, Captured>>>("real-why/preemption.json");
  it.each(preemptorStories())("$name is healthy, or refused with an agreeing decision", (real) => {
    const { status } = captured[real.name] as Captured;
    const answer = reportOf(real);
    if (status.phase === "Running") return expect(codes(answer)).toEqual(["healthy"]);
    const { words, decisions } = only(answer, "refused");
    expect(words[0]).toMatchObject({ reason: status.reason, message: status.message });
    // only the kubelet's own state file shows which CPUs are exclusive
    const isManaged = real.name === "crit-integer-cpu-guaranteed";
    expect(decisions).toMatchObject([{ agrees: isManaged ? null : true }]);
    expect(answer.missing.map(({ piece }) => piece)).toEqual(isManaged ? ["state files"] : []);
  });
});

/** The first finding about each pod, in the run under memory pressure and in the run under disk pressure. */
const MEMORY: Readonly<Record<string, FindingCode>> = {
  "m-be-high": "refused",
  "m-be-small": "refused",
  "m-bu-over": "evicted",
  "m-bu-over-low": "evicted",
  "m-bu-under": "healthy",
  "m-crit": "healthy",
  "m-gu": "healthy",
  "m-hi-over": "healthy",
  "p-be": "refused",
  "p-be-cpu-only": "healthy",
  "p-be-crit": "healthy",
  "p-be-tol": "healthy",
  "p-bu": "healthy",
  "static1-n1": "healthy",
};

describe("explanations on a real node under memory pressure", () => {
  const all = evictionStories("memory");
  it("have the expected finding for every pod", () => {
    expect(Object.fromEntries(all.map((real) => [real.pod, codes(reportOf(real))[0]]))).toEqual(MEMORY);
  });
  it.each([
    ["m-bu-over", "1027016Ki", "100Mi", ["m-bu-over-low", "m-hi-over"]],
    ["m-bu-over-low", "821484Ki", "50Mi", ["m-hi-over", "p-be-cpu-only"]],
  ])(
    "%s is ranked first on the stats of that time, with its numbers and the next victims",
    (name, usage, request, next) => {
      const answer = reportOf(all.find(({ pod }) => pod === name) as RealStory);
      // the container exited with 0: the status contains no reason
      expect(answer.pod.phase).toBe("Succeeded");
      const finding = only(answer, "evicted");
      expect(finding.numbers).toMatchObject({
        cause: "node-resource",
        resource: "memory",
        threshold: "21984279040",
        containers: [{ name: "c", usage, request }],
      });
      expect(finding.words[0]?.message).toContain(
        `Container c was using ${usage}, request is ${request}, has larger consumption of memory. `,
      );
      expect(finding.decisions).toMatchObject([{ kind: "eviction", verdict: "evicts", agrees: true, differs: null }]);
      expect(finding.next.slice(0, 2).map(({ pod }) => pod.name)).toEqual(next);
      expect(finding.whatWouldChange.map(({ code }) => code)).toContain("request_covers_usage");
    },
  );
  it("of a refused pod assume the condition that was True at that time", () => {
    const { decisions, whatWouldChange, numbers } = only(
      reportOf(all.find(({ pod }) => pod === "p-be") as RealStory),
      "refused",
    );
    expect(decisions).toMatchObject([{ agrees: true, differs: null }]);
    expect(decisions[0]?.assumed[0]).toBe("MemoryPressure True, as it was before 2026-11-21T06:53:48.000Z");
    expect(whatWouldChange.map(({ code }) => code)).toEqual(["pressure_ends", "fits_now"]);
    expect(numbers.again).toBe(false);
  });
  it("of a running pod refused after a restart say so", () => {
    const { decisions, numbers } = only(reportOf(all.find(({ pod }) => pod === "m-be-high") as RealStory), "refused");
    expect(numbers.again).toBe(true);
    expect(decisions).toMatchObject([{ agrees: true, excerpt: { onNode: true } }]);
  });
  it("lack the ranking when only later stats are posted, and ask for stats", () => {
    const { decisions, missing } = only(reportOf(evictionStories("memory", false)[2] as RealStory), "evicted");
    expect(decisions).toEqual([]);
    expect(missing.map(({ piece }) => piece)).toEqual(["stats"]);
  });
});

describe("explanations on a real node under disk pressure", () => {
  it.each(evictionStories("disk"))("$name is refused, again if it ran before, or spared as critical", (real) => {
    const answer = reportOf(real);
    const isCritical = ["static1-n1", "q-be-crit"].includes(real.name);
    expect(codes(answer)).toEqual([isCritical ? "under-pressure" : "refused"]);
    if (isCritical) return;
    const { numbers, decisions, words } = only(answer, "refused");
    expect(numbers.again).toBe(real.name.startsWith("d-"));
    expect(words.at(-1)).toMatchObject({
      from: "event",
      reason: "Evicted",
      message: "The node had condition: [DiskPressure]. ",
    });
    expect(decisions).toMatchObject([{ agrees: true, differs: null }]);
  });
});

/** The findings about each captured pod with probes, the most severe first. */
const PROBES: Readonly<Record<string, readonly FindingCode[]>> = {
  "exec-exit-3-output": ["restarted-by-probe", "crash-loop"],
  "exec-long-output": ["not-ready"],
  "exec-ready-flips": ["healthy"],
  "grpc-default": ["healthy"],
  "grpc-flip": ["healthy"],
  "grpc-refused": ["not-ready"],
  "http-200": ["healthy"],
  "http-302-same-host": ["not-ready"],
  "http-400": ["not-ready"],
  "http-500-body": ["not-ready"],
  "http-refused": ["restarted-by-probe", "crash-loop"],
  "live-grace": ["restarted-by-probe", "crash-loop"],
  "live-restart-onfailure-exit0": ["restarted-by-probe"],
  "readiness-gate": ["not-ready"],
  "startup-never": ["restarted-by-probe", "crash-loop"],
  "tcp-ok": ["healthy"],
};

describe("explanations of pods probed by a real kubelet", () => {
  const all = probeStories();
  it("have the expected findings for every pod", () => {
    expect(Object.fromEntries(all.map((real) => [real.pod, codes(reportOf(real))]))).toEqual(PROBES);
  });
  it.each(all.filter(({ pod }) => PROBES[pod]?.includes("restarted-by-probe")))(
    "$name: the probe, the number of failures, and a decision that agrees",
    (real) => {
      const { numbers, words, decisions } = only(reportOf(real), "restarted-by-probe");
      const type = real.pod === "startup-never" ? "startup" : "liveness";
      expect(numbers.type).toBe(type);
      expect(numbers.failures).toBeGreaterThanOrEqual(8);
      expect(words.at(-1)?.message).toBe(`Container c failed ${type} probe, will be restarted`);
      expect(words.slice(0, -1).every(({ reason }) => reason === "Unhealthy")).toBe(true);
      expect(decisions).toMatchObject([{ kind: "probes", verdict: "restarts", agrees: true }]);
    },
  );
  it("in a crash loop say how long the back-off is", () => {
    const { numbers } = only(reportOf(all.find(({ pod }) => pod === "live-grace") as RealStory), "crash-loop");
    expect(numbers).toEqual({ restarts: 3, exitCode: 137, endedBy: "Error", backOffSeconds: 20 });
  });
  it("with too slow an answer suggest a longer timeout", () => {
    const { whatWouldChange } = only(reportOf(all.find(({ pod }) => pod === "grpc-refused") as RealStory), "not-ready");
    expect(whatWouldChange).toMatchObject([{ code: "probe_timeout", numbers: { timeoutSeconds: 1 } }]);
  });
});
