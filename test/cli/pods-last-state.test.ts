import { expect, test } from "vitest";
import type { ContainerEnd, PodRow } from "../../actuator/status/node-status.ts";
import { decodeStatus } from "../../actuator/status/node-status.ts";
import { podText } from "../../api/cli/pods/pods.ts";
import { podsText } from "../../api/cli/pods/pods-table.ts";
import type { Terminal } from "../../api/cli/terminal.ts";
import { containerRow, earlier, nodeStatus, podRow } from "../kit/node-status.ts";

const terminal = (columns: number) => ({ columns, paint: (_: string, text: string) => text }) as unknown as Terminal;
const end = (changes: Partial<ContainerEnd> = {}): ContainerEnd => ({
  exitCode: 7,
  reason: "Error",
  message: "",
  finishedAt: earlier(12),
  ...changes,
});
const crashing = (lastState: ContainerEnd, name = "app"): PodRow =>
  podRow("web", {
    reason: "CrashLoopBackOff",
    message: "back-off 10s restarting failed container=app",
    containers: [
      containerRow(name, { state: "waiting", reason: "CrashLoopBackOff", ready: false, restarts: 3, lastState }),
    ],
  });
const listed = (pod: PodRow, columns = 160): string => podsText(nodeStatus({ pods: [pod] }), terminal(columns));
const shown = (pod: PodRow): string => podText(pod, nodeStatus({ pods: [pod] }), terminal(160));

test("how a waiting container ended is shown in the list and for the pod", () => {
  const pod = crashing(end());
  expect(listed(pod)).toMatch(/ LAST\nshop .* exit 7\n {2}CrashLoopBackOff: back-off 10s/);
  expect(shown(pod)).toContain("\n  last state: exit 7, 12s ago\n");
  const killed = crashing(end({ exitCode: 137, reason: "OOMKilled" }));
  expect(listed(killed)).toMatch(/ OOMKilled\n {2}CrashLoopBackOff/);
  expect(shown(killed)).toContain("\n  last state: OOMKilled, exit 137, 12s ago\n");
});

test("a container's termination message is shown in one line in the list, and in full for the pod", () => {
  const message = `cannot open /etc/app.conf\u001b[2J ${"x".repeat(300)} end`;
  const pod = crashing(end({ message, finishedAt: null }));
  const line = listed(pod, 80)
    .split("\n")
    .find((one) => one.startsWith("  app: "));
  expect(line).toMatch(/^ {2}app: exit 7: cannot open \/etc\/app\.conf␛\[2J x+…$/);
  expect(line?.length).toBeLessThanOrEqual(80);
  const text = shown(pod);
  expect(text).toContain("  last state: exit 7: cannot open /etc/app.conf␛[2J");
  expect(text).toContain("end\n");
});

test("at 80 columns a container's last state stays, and other columns are dropped first", () => {
  const pod = crashing(end({ exitCode: 137, reason: "OOMKilled" }));
  const lines = listed({ ...pod, namespace: "kube-system", name: "a-database-of-some-node" }, 80).split("\n");
  expect(lines[1]).toMatch(/^kube-sys… +a-dat.* +Running \(CrashLoopBackOff\) .* OOMKilled$/);
  expect(lines.every((line) => line.length <= 80)).toBe(true);
});

test("the latest end of several containers is shown, but not a completed one", () => {
  const setup = containerRow("setup", { kind: "init", state: "terminated", exitCode: 0, lastState: end() });
  expect(listed(podRow("web", { containers: [setup, containerRow("app")] }))).not.toContain("LAST");
  const older = containerRow("old", { lastState: end({ exitCode: 3, finishedAt: earlier(60) }) });
  const newer = containerRow("new", { lastState: end({ exitCode: 0, reason: "Completed" }) });
  for (const containers of [
    [older, newer],
    [newer, older],
  ])
    expect(listed(podRow("web", { containers }))).toMatch(/ exit 0\n$/);
  const over = containerRow("job", { state: "terminated", reason: "Error", exitCode: 9, lastState: end() });
  expect(listed(podRow("job", { phase: "Failed", containers: [older, over] }))).toMatch(/ exit 9\n$/);
});

test("the last state is read from the status file and server, and may be absent from an older daemon", () => {
  const pods = [crashing(end({ message: "m" })), podRow("old")];
  const read = decodeStatus(JSON.stringify(nodeStatus({ pods })));
  expect(read.ok && read.value.pods.map(({ containers }) => containers[0]?.lastState)).toEqual([
    end({ message: "m" }),
    undefined,
  ]);
  const wrong = nodeStatus({ pods: [crashing(end({ exitCode: "7" as unknown as number }))] });
  expect(decodeStatus(JSON.stringify(wrong))).toMatchObject({ ok: false });
});

test.each([
  ["waits", "pending"],
  ["lives", "active"],
  ["ends", "terminating"],
  ["ended", "terminated"],
] as const)("the state `%s` in an earlier daemon's status is read as `%s`", (word, state) => {
  for (const message of [word, state]) {
    const status = JSON.stringify(nodeStatus({ pods: [{ ...podRow("a"), state: message as PodRow["state"] }] }));
    expect(decodeStatus(status)).toMatchObject({ ok: true, value: { pods: [{ state }] } });
  }
  const odd = JSON.stringify(nodeStatus({ pods: [{ ...podRow("a"), state: "asleep" as PodRow["state"] }] }));
  expect(decodeStatus(odd)).toMatchObject({ ok: false, error: expect.stringContaining("pods.0.state") });
});
