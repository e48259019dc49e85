import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { OWNER, type RuntimePod, type RuntimePods } from "../../../actuator/containerd/cri.ts";
import { admitted, newRecord, podTransition } from "../../../actuator/lifecycle/pod-state.ts";
import type { PodEvent, PodRecord } from "../../../actuator/lifecycle/record.ts";
import type { KubeletTraces } from "../../../actuator/machine/kubelets.ts";
import { type Observed, OtherKubelet, signsOf } from "../../../actuator/pods/admission/other-kubelet.ts";
import { runnable } from "../../kit/runnable-pods.ts";

const NONE: Observed = { traces: { processes: [], listeners: [] }, standing: [], came: [], stopped: [] };
const process = (uses: "this" | "another" | "unknown") => ({
  pid: 41,
  name: "kubelet",
  endpoint: null,
  collectsLogs: false,
  uses,
});
const seen = (traces: Partial<KubeletTraces>, more: Partial<Observed> = {}): string =>
  signsOf({ ...NONE, ...more, traces: { ...NONE.traces, ...traces } })
    .map(({ kind }) => kind)
    .join(" ");
const PORT = { what: "port 10250", holder: { pid: 7, name: "nginx" } };
const SOCKET = { what: "/var/lib/kubelet/device-plugins/kubelet.sock", holder: null };

test("another kubelet is detected by what points to this very runtime alone", () => {
  expect(seen({ processes: [process("this")] })).toBe("process");
  expect(seen({}, { came: ["kube-system/proxy"] })).toBe("sandboxes");
  expect(seen({ processes: [process("this")] }, { stopped: ["default/web"] })).toBe("process stops");
  expect(seen({}, { stopped: ["default/web", "default/web", "default/db"] })).toBe("stops");
});

test("a kubelet elsewhere on the machine counts only together with what it does in this runtime", () => {
  for (const traces of [
    { listeners: [PORT] },
    { listeners: [SOCKET] },
    { processes: [process("unknown")] },
    { listeners: [PORT, SOCKET] },
  ]) {
    expect(seen(traces)).toBe("");
    expect(seen(traces, { standing: ["kube-system/proxy"] })).toMatch(/sandboxes$/);
    expect(seen(traces, { stopped: ["default/web"] })).toMatch(/^(?:listener|process).* stops$/);
  }
});

test("no kubelet is detected by one with its own runtime, former leftovers, or one or two manual stops", () => {
  const former = { standing: ["kube-system/proxy", "default/db"] };
  expect(seen({ processes: [process("another")] }, former)).toBe("");
  expect(seen({}, former)).toBe("");
  expect(seen({ processes: [process("another")] }, { stopped: ["default/web", "default/web"] })).toBe("");
});

/** A detector with its own clock; the test defines the runtime's lists and the traces of a kubelet. */
function beside() {
  const records = new Map<string, PodRecord>();
  const events: PodEvent[] = [];
  const counted: string[] = [];
  let nowMs = 1_000_000;
  let traces: KubeletTraces = NONE.traces;
  const wholeLooks: number[] = [];
  const other = new OtherKubelet({
    kubelets: (isWhole) => {
      if (isWhole) wholeLooks.push(nowMs);
      return traces;
    },
    records,
    clock: { nowMs: () => nowMs, monotonicMs: () => nowMs, sleep: async () => {} },
    onEvent: (event) => events.push(event),
    counters: { stoppedByOthers: (how, containers) => counted.push(`${how} ${containers}`) },
    runtimeEndpoint: "unix:///run/containerd/containerd.sock",
    podLogsDirectory: "/var/log/pods",
  });
  const look = (held: RuntimePods | null = new Map(), seconds = 1): readonly string[] | undefined => {
    nowMs += seconds * 1000;
    for (const { pod, containers } of other.takeStops()) {
      const event = { kind: "StoppedByOthers", containers: containers.length } as const;
      const next = podTransition(records.get(pod.uid) ?? null, event);
      if (next.kind === "becomes") records.set(pod.uid, next.record);
    }
    return other.observe(held)?.signs;
  };
  return {
    other,
    records,
    events,
    counted,
    wholeLooks,
    look,
    see: (next: Partial<KubeletTraces>) => (traces = { ...NONE.traces, ...next }),
  };
}
const RECORDED = (
  JSON.parse(readFileSync(join(import.meta.dirname, "../../data/beside-kubelet/lists.json"), "utf8")) as [
    string,
    RuntimePod,
  ][][]
).map((list): RuntimePods => new Map(list));

test("a real kubelet's pod is detected when it is created in the runtime, but not because it exists", () => {
  const { other, look } = beside();
  expect(RECORDED.map((list) => look(list)?.join())).toEqual([undefined, ...RECORDED.slice(1).map(() => "sandboxes")]);
  expect(other.view?.message).toContain("a kubelet makes default/theirs-beside in it");
  // the sign lasts some minutes after the last creation, and then expires
  const last = RECORDED.at(-1);
  const seconds = (count: number): readonly string[] =>
    Array.from({ length: count }, () => (look(last) === undefined ? "-" : "!"));
  expect(new Set(seconds(290))).toEqual(new Set(["!"]));
  expect(seconds(45).at(-1)).toBe("-");
  // containers that existed from the beginning are no sign
  const later = beside();
  for (let i = 0; i < 20; i++) expect(later.look(last)).toBeUndefined();
});

test("pods created by hand or by another daemon are no sign of a kubelet", () => {
  const { look } = beside();
  look();
  const [base] = [...(RECORDED.at(-1)?.values() ?? [])].filter(({ name }) => name === "theirs-beside");
  const made = (
    change: (labels: Readonly<Record<string, string>>, annotations: Readonly<Record<string, string>>) => object,
  ) =>
    new Map([
      [
        "u",
        {
          ...base,
          sandboxes: base?.sandboxes.map((s) => ({ ...s, ...change(s.labels, s.annotations) })),
        } as RuntimePod,
      ],
    ]);
  expect(look(made(() => ({ annotations: {} })))).toBeUndefined();
  expect(look(made((labels) => ({ labels: { ...labels, [OWNER]: "/other" } })))).toBeUndefined();
  expect(look(made(() => ({})))).toEqual(["sandboxes"]);
});

test("the detection stands until the signs have been gone for a while, and then forgets what the kubelet did", () => {
  const { other, look, see, wholeLooks } = beside();
  see({ processes: [process("this")] });
  expect(look(null)).toEqual(["process"]);
  expect(other.view?.message).toMatch(
    /^another kubelet uses this runtime \(unix:.*\), so no pod is admitted .*process 41 \(kubelet\) uses it: .*beside-a-kubelet\.md/,
  );
  const { since } = other.view ?? {};
  look(RECORDED[0]);
  expect(look(RECORDED[2])).toEqual(["process", "sandboxes"]);
  expect(other.view?.since).toBe(since);
  see({});
  expect(look(RECORDED[2], 29)).toEqual(["process", "sandboxes"]);
  expect(look(RECORDED[2], 30)).toBeUndefined();
  expect(wholeLooks.length).toBe(3);
});

test("foreign stops of running pods are counted, reported and recorded; only certain ones block admission", () => {
  const { records, events, counted, look, other } = beside();
  const web = runnable({}, { namespace: "default", name: "web", uid: "u" });
  records.set("u", admitted(newRecord(web, 0), 0));
  const stop = (how: "sandbox" | "removed" | "signal", ...exitCodes: readonly number[]): void =>
    other.recordStop({ pod: web, how, containers: exitCodes.map((exitCode, i) => ({ name: `c${i}`, exitCode })) });
  look();
  stop("sandbox", 137, 0);
  stop("removed", 0);
  for (let i = 0; i < 5; i++) stop("signal", 143);
  expect(look()).toBeUndefined();
  expect(counted.slice(0, 3)).toEqual(["sandbox 2", "removed 1", "signal 1"]);
  expect(records.get("u")?.stoppedByOthers).toBe(8);
  expect(events.slice(0, 3).map(({ reason, container, message }) => [reason, container, message.slice(0, 45)])).toEqual(
    [
      ["StoppedByOthers", null, "The sandbox, with c0, c1, was stopped by anot"],
      ["StoppedByOthers", "c0", "The container was removed by another program "],
      ["StoppedByOthers", "c0", "Ended with exit code 143 (SIGTERM), which thi"],
    ],
  );
  stop("sandbox");
  expect(look()).toEqual(["stops"]);
  expect(other.view?.brief).toBe("another program stops pods in this runtime");
  // a stop of a pod that is terminating anyway is not reported
  records.set("u", { ...admitted(newRecord(web, 0), 0), state: "terminating" });
  stop("sandbox", 137);
  expect(counted).toHaveLength(8);
});

test("repeated stops right after admission block it longer each time, up to an hour", () => {
  const { records, look, other } = beside();
  const web = runnable({}, { namespace: "default", name: "web", uid: "u" });
  records.set("u", admitted(newRecord(web, 0), 0));
  const stopped = (): void => {
    for (let i = 0; i < 3; i++) other.recordStop({ pod: web, how: "sandbox", containers: [] });
  };
  /** The seconds for which admission is blocked, checked every ten seconds. */
  const blockedSeconds = (): number => {
    stopped();
    expect(look()).toEqual(["stops"]);
    let seconds = 0;
    while (look(new Map(), 10) !== undefined) seconds += 10;
    return seconds;
  };
  const first = blockedSeconds();
  expect(first).toBe(310);
  const rest = [600, 1200, 2400, 3600, 3600].map((wanted) => {
    const is = blockedSeconds();
    return Math.abs(is - wanted) <= 10 ? wanted : is;
  });
  expect(rest).toEqual([600, 1200, 2400, 3600, 3600]);
  stopped();
  look();
  expect(other.view?.message).toContain(
    "so no pod is admitted or started for 60 minutes, since pods were stopped again right after they had been admitted",
  );
  while (look(new Map(), 10) !== undefined);
  // after five minutes without a stop, the next stop counts as the first
  look(new Map(), 300);
  expect(blockedSeconds()).toBe(first);
});

test("once the detected kubelet's process is gone, admission is not blocked for long", () => {
  const { records, look, other, see } = beside();
  const web = runnable({}, { namespace: "default", name: "web", uid: "u" });
  records.set("u", admitted(newRecord(web, 0), 0));
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < 3; i++) other.recordStop({ pod: web, how: "sandbox", containers: [] });
    expect(look()).toEqual(["stops"]);
    if (round === 0) while (look(new Map(), 10) !== undefined);
  }
  see({ processes: [process("this")] });
  look(new Map(), 31);
  see({});
  look();
  expect(look(new Map(), 31)).toBeUndefined();
});

test("a kubelet with its own runtime that would remove these pods' logs is reported", () => {
  for (const collectsLogs of [true, false]) {
    const { other, look, see } = beside();
    see({ processes: [{ ...process("another"), collectsLogs }] });
    expect(look()).toBeUndefined();
    const reported = "process 41 (kubelet) removes from /var/log/pods the logs of all pods that are not its own";
    expect(other.problems().map(({ message }) => message.split(":")[0])).toEqual(collectsLogs ? [reported] : []);
  }
});
