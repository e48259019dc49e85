import { expect, test } from "vitest";
import type { NodeStatus } from "../../actuator/status/node-status.ts";
import { headText } from "../../api/cli/inputs/daemon-status.ts";
import { podText } from "../../api/cli/pods/pods.ts";
import { podsText } from "../../api/cli/pods/pods-table.ts";
import type { Terminal } from "../../api/cli/terminal.ts";
import { containerRow, earlier, nodeStatus, podRow } from "../kit/node-status.ts";

const NARROW = { columns: 80, paint: (_: string, text: string) => text } as unknown as Terminal;
const UID = "3b1c4f6a-22a9-4f0e-9d3f-0c6a5d7e8f90";
const ID = (digit: string): string => digit.repeat(64);

test("at 80 columns each cgroup row names its container", () => {
  const path = `/nodewise/burstable/pod${UID}`;
  const files = [{ file: "memory.limit_in_bytes", wanted: "268435456", actual: "268435456" }];
  const pod = podRow("web", {
    uid: UID,
    containers: [containerRow("app", { id: ID("a") }), containerRow("proxy", { id: ID("b") })],
    cgroups: [path, `${path}/${ID("a")}`, `${path}/cri-containerd-${ID("b")}.scope`].map((at) => ({ path: at, files })),
  });
  const lines = podText(pod, nodeStatus({ pods: [pod] }), NARROW).split("\n");
  const from = lines.findIndex((line) => line.startsWith("OF"));
  const rows = lines.slice(from + 1, from + 4);
  expect(rows.map((line) => line.split(" ")[0])).toEqual(["(pod)", "app", "proxy"]);
  expect(rows.every((line) => line.length <= 80 && line.includes("268435456"))).toBe(true);
});

test("the reason of a refusal is printed in full, however narrow the terminal", () => {
  const message = `Node didn't have enough resource: cpu, requested: 4000, used: 3803, capacity: 3920; ${"x".repeat(100)} end`;
  const refusal = { reason: "OutOfcpu", message, sinceMs: Date.parse(earlier(90)), tries: 3 };
  const pod = podRow("batch", { state: "pending", phase: "Pending", reason: "OutOfcpu", startedAt: null, refusal });
  const lines = podsText(nodeStatus({ pods: [pod] }), NARROW).split("\n");
  expect(lines.every((line) => line.length <= 80)).toBe(true);
  const words = lines
    .slice(2)
    .map((line) => line.trim())
    .join(" ");
  expect(words.replaceAll(" ", "")).toContain(`OutOfcpu:${message}`.replaceAll(" ", ""));
});

test("the figures of a cgroups pass are shown with the age of that pass, not of the last turn", () => {
  const pass = { sequence: 90, at: earlier(1), cpuMs: 5, tookMs: 6, wrote: 2, drift: 1, decidedBy: "here" } as const;
  const head = (cgroupsAt: string) =>
    headText({ status: nodeStatus({ pass: { ...pass, cgroupsAt } }), file: null }, NARROW).split("\n")[0];
  expect(head(earlier(41))).toContain(" · pass 90 1s ago: 6 ms · cgroups 41s ago: 2 written, 1 drifted, decided here");
  expect(head(earlier(1))).toContain(" · pass 90 1s ago: 6 ms, 2 written, 1 drifted, decided here");
});

test("the header does not claim zero drift when nothing was decided or compared", () => {
  const pass = { sequence: 3, at: earlier(1), cpuMs: 5, tookMs: 6, wrote: 0, drift: 0 } as const;
  const head = (reported: Pick<NonNullable<NodeStatus["pass"]>, "decidedBy" | "compared">) =>
    headText({ status: nodeStatus({ pass: { ...pass, ...reported } }), file: null }, NARROW).split("\n")[0];
  expect(head({ decidedBy: null })).toMatch(/ · pass 3 1s ago: 6 ms, nothing decided, nothing compared$/);
  expect(head({ decidedBy: "api", compared: false })).toMatch(/, 0 written, nothing compared, decided by the API$/);
  expect(head({ decidedBy: "here" })).toMatch(/, 0 written, 0 drifted, decided here$/);
});

test("at 80 columns each title is above its column", () => {
  const name = "kube-controller-manager-of-a-long-name";
  const pod = podRow(name, { namespace: "kube-system", phase: "Pending", state: "pending", reason: "OutOfcpu" });
  const [titles = "", row = ""] = podsText(nodeStatus({ pods: [pod] }), NARROW).split("\n");
  expect(row).toMatch(/^kube-sys… +kube-/);
  expect(row.indexOf("kube-con")).toBe(titles.indexOf("NAME", "NAMESPACE".length));
  expect(row.length).toBeLessThanOrEqual(80);
});
