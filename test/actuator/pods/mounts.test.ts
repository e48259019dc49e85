import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { writeHostsFile } from "../../../actuator/pods/networking/dns.ts";
import { restartsByLogs } from "../../../actuator/pods/sync/log-link.ts";
import { type MountsRequest, mountsOf } from "../../../actuator/pods/volumes/mounts.ts";
import { makePodDirectory } from "../../../actuator/pods/volumes/volumes.ts";
import { runnable, runnableContainer } from "../../kit/runnable-pods.ts";
import { FakeMounter } from "./fake-mounter.ts";
import { scratch } from "./scratch.ts";

const mount = {
  volume: "data",
  mountPath: "/data",
  readOnly: true,
  subPath: "",
  isExpression: false,
  propagation: "None" as const,
};
function world(mounts: readonly Partial<typeof mount>[], more: Partial<MountsRequest> = {}) {
  const dir = scratch();
  const places = { podDirectory: join(dir, "uid-1"), logDirectory: join(dir, "logs") };
  makePodDirectory(places, "me");
  mkdirSync(join(dir, "host"));
  const volumes = [
    { name: "data", emptyDir: { medium: "" as const, sizeLimitBytes: null } },
    { name: "host", hostPath: { path: join(dir, "host"), type: "" as const } },
  ];
  const mounter = new FakeMounter();
  const asked: MountsRequest = {
    pod: runnable({ volumes, subdomain: "sub" }),
    container: runnableContainer("app", { mounts: mounts.map((one) => ({ ...mount, ...one })) }),
    attempt: 17,
    places,
    podIps: ["10.0.0.7"],
    env: [{ key: "POD", value: "web" }],
    clusterDomain: "cluster.local",
    ...more,
  };
  return { dir, places, mounter, answer: () => mountsOf(asked, mounter) };
}
const PRIVATE = "PROPAGATION_PRIVATE";

describe("the mounts of a container", () => {
  test("contain its volumes, its hosts file and its termination message file", async () => {
    const { dir, places, answer } = world([{}, { volume: "host", mountPath: "rel", readOnly: false }]);
    const words = join(places.podDirectory, "containers/app/00000011");
    expect(await answer()).toEqual({
      ok: true,
      value: [
        {
          containerPath: "/data",
          hostPath: join(places.podDirectory, "volumes/kubernetes.io~empty-dir/data"),
          readonly: true,
          propagation: PRIVATE,
        },
        { containerPath: "/rel", hostPath: join(dir, "host"), readonly: false, propagation: PRIVATE },
        {
          containerPath: "/etc/hosts",
          hostPath: join(places.podDirectory, "etc-hosts"),
          readonly: false,
          propagation: PRIVATE,
        },
        { containerPath: "/dev/termination-log", hostPath: words, readonly: false, propagation: PRIVATE },
      ],
    });
    expect([statSync(words).size, statSync(words).mode & 0o777]).toEqual([0, 0o666]);
    writeFileSync(words, "of an attempt that was never started");
    await answer();
    expect(statSync(words).size).toBe(0);
    expect(readFileSync(join(places.podDirectory, "etc-hosts"), "utf8")).toBe(
      "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n10.0.0.7\tweb.sub.default.svc.cluster.local\tweb\n",
    );
  });
  test("leave the hosts file out when the container mounts its own, or when the pod has no address", async () => {
    const paths = async (found: ReturnType<typeof world>) => {
      const mounts = await found.answer();
      return mounts.ok ? mounts.value.map(({ containerPath }) => containerPath) : mounts.error;
    };
    expect(await paths(world([{ mountPath: "/etc/hosts" }]))).toEqual(["/etc/hosts", "/dev/termination-log"]);
    expect(await paths(world([], { podIps: [] }))).toEqual(["/dev/termination-log"]);
    expect(await paths(world([], { podIps: [], pod: runnable({ hostNetwork: true }) }))).toEqual([
      "/etc/hosts",
      "/dev/termination-log",
    ]);
    expect(
      await paths(world([], { podIps: [], container: runnableContainer("app", { terminationMessagePath: "" }) })),
    ).toEqual([]);
  });
  test("contain a sub-path whose name is expanded from the container's variables", async () => {
    const found = world([{ volume: "host", subPath: "$(POD)-logs", isExpression: true }]);
    const target = join(found.places.podDirectory, "volume-subpaths/host/app/0");
    expect(await found.answer()).toMatchObject({ ok: true, value: [{ hostPath: target }, {}, {}] });
    expect(found.mounter.asked).toEqual([`bind ${target}`]);
    expect(statSync(join(found.dir, "host/web-logs")).isDirectory()).toBe(true);
  });
  test.each([
    [{ volume: "gone" }, 'cannot find volume "gone" to mount into container "app"'],
    [{ subPath: "$(NO)", isExpression: true }, "missing value for NO"],
  ])("are an error for the mount %j", async (one, error) => {
    expect(await world([one]).answer()).toMatchObject({
      ok: false,
      error: expect.stringContaining(error.slice(0, 20)),
    });
  });
});

test("the hosts file of a pod on the host's network is the node's, with the pod's host aliases", () => {
  const dir = scratch();
  writeFileSync(join(dir, "node"), "127.0.0.1 node\n");
  const aliases = [{ ip: "1.2.3.4", hostnames: ["a", "b"] }];
  const hosts = { hostNetwork: true, ips: [], hostname: "web", domain: "", aliases };
  expect(writeHostsFile(join(dir, "hosts"), hosts, join(dir, "node")).ok).toBe(true);
  expect(readFileSync(join(dir, "hosts"), "utf8")).toBe(
    "# Kubernetes-managed hosts file (host network).\n127.0.0.1 node\n\n# Entries added by HostAliases.\n1.2.3.4\ta\tb\n",
  );
  expect(writeHostsFile(join(dir, "no/hosts"), hosts, join(dir, "node"))).toEqual({
    ok: false,
    error: `open ${join(dir, "no/hosts")}: no such file or directory`,
  });
});

test("restartsByLogs derives the restart count from the log files", () => {
  const dir = scratch();
  const places = { podDirectory: "", logDirectory: dir };
  expect(restartsByLogs(places, "app")).toBe(0);
  mkdirSync(join(dir, "app/9.log"), { recursive: true });
  for (const name of ["0.log", "4.log.20260101-000000.gz", "3.log", "other.log"])
    writeFileSync(join(dir, "app", name), "");
  expect(restartsByLogs(places, "app")).toBe(5);
  expect(restartsByLogs(places, "..")).toBe(0);
});
