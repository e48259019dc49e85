import { createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { type ListeningPorts, listeningPorts, type SocketOwner } from "../../../../actuator/machine/listening-ports.ts";
import { appPod, SimulatedPodsNode } from "./simulated-node.ts";

const web = (ports: readonly object[], hostNetwork = true): object =>
  appPod("web", { cpu: "100m" }, { container: { ports }, spec: { hostNetwork } });
const problems = (world: SimulatedPodsNode): readonly string[] =>
  (world.last?.problems ?? []).map(({ message }) => message).filter((message) => message.includes("hostPort"));
const crashes = (world: SimulatedPodsNode): void => {
  world.runtime.programOf = () => ({ runsMs: 500, exitCode: 1, stopsMs: 0 });
};
const AT = "spec.containers[0].ports[0].hostPort";

/** One socket at port 18085, of a process that the test defines. */
const socket = (owner: () => SocketOwner | undefined, ip = "0.0.0.0"): ListeningPorts => ({
  list: () => [{ protocol: "TCP", ip, port: 18_085, inode: "1" }],
  ownerOf: owner,
});

test("a host port that another process holds is reported until it is free; the pod is admitted", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as { readonly port: number };
  const world = new SimulatedPodsNode({ listening: listeningPorts() });
  crashes(world);
  world.pods = [web([{ containerPort: port }])];
  await world.run(8);
  expect(world.pod("web").record.state).toBe("active");
  const pattern = new RegExp(
    `^default/web: ${AT.replaceAll(/[[\].]/g, "\\$&")}: ${port} is taken by .+ \\(pid ${process.pid}\\)$`,
  );
  expect(problems(world)).toEqual([expect.stringMatching(pattern)]);
  expect(world.events.filter(({ reason }) => reason === "HostPortTaken")).toHaveLength(1);
  await new Promise((resolve) => server.close(resolve));
  await world.run(1);
  expect(problems(world)).toEqual([]);
});

test("a host port that is taken after the admission is reported when the container has failed", async () => {
  let owner: SocketOwner = { pid: 9, name: "app", cgroup: "0::/kubepods/podweb/c" };
  const world = new SimulatedPodsNode({ listening: socket(() => owner) });
  world.pods = [web([{ containerPort: 18_085 }])];
  await world.run(4);
  expect(problems(world)).toEqual([]);
  // the same process, in a cgroup of the systemd driver
  owner = { ...owner, cgroup: "0::/kubepods.slice/kubepods-podweb.slice/cri-c.scope" };
  world.restart();
  await world.run(2);
  expect(problems(world)).toEqual([]);
  owner = { pid: 4711, name: "python3", cgroup: "0::/kubepods/podwebby/c" };
  await world.run(4);
  expect(problems(world)).toEqual([]);
  world.runtime.exit(world.idOf("web"), 1);
  crashes(world);
  await world.run(3);
  expect(problems(world)).toEqual([`default/web: ${AT}: 18085 is taken by python3 (pid 4711)`]);
});

test("a socket of an unknown process is reported only while it cannot be the pod's own container", async () => {
  const world = new SimulatedPodsNode({ listening: socket(() => undefined) });
  world.pods = [web([{ containerPort: 18_085 }])];
  // one turn alone: the pod is admitted, and none of its containers runs yet
  world.last = await world.time.drive(world.manager.sync());
  expect(problems(world)).toEqual([
    `default/web: ${AT}: 18085 is taken by a process that cannot be seen, which listens on 0.0.0.0`,
  ]);
  await world.run(5);
  expect(world.idOf("web")).not.toBe("none");
  expect(problems(world)).toEqual([]);
});

test.each<[string, object, string]>([
  ["of another protocol", { containerPort: 18_085, protocol: "UDP" }, "0.0.0.0"],
  ["of another address", { containerPort: 18_085, hostIP: "192.168.0.1" }, "127.0.0.1"],
  ["of another number", { containerPort: 18_086 }, "0.0.0.0"],
])("a socket %s does not conflict with the host port", async (_, port, ip) => {
  const world = new SimulatedPodsNode({ listening: socket(() => ({ pid: 9, name: "x", cgroup: "0::/" }), ip) });
  world.pods = [web([port])];
  await world.run(2);
  expect(problems(world)).toEqual([]);
});

test("a host port of a pod with its own network is reported once, as mapped by the CNI plugins", async () => {
  const world = new SimulatedPodsNode();
  world.pods = [web([{ containerPort: 80, hostPort: 18_085 }], false)];
  await world.run(10);
  world.restart();
  await world.run(3);
  expect(world.reportOf(/^HostPort/)).toEqual([
    `HostPortByCNI: ${AT}: 18085 is mapped by the node's CNI plugins (portmap) only; without one nothing listens there`,
  ]);
});

test("ports without a hostPort, and other ports of the host's network, are not reported", async () => {
  const world = new SimulatedPodsNode();
  world.pods = [
    web([{ containerPort: 80 }], false),
    appPod("host", {}, { container: { ports: [{ containerPort: 81 }] } }),
  ];
  await world.run(4);
  expect(world.reportOf(/^HostPort/)).toEqual([]);
});
