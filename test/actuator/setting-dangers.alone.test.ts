import { hostname } from "node:os";
import { expect, test, vi } from "vitest";
import { checkSettings } from "../../actuator/core/config.ts";
import { settingWarnings } from "../../actuator/core/setting-faults.ts";

vi.mock("node:os", async (original) => ({
  ...(await original<typeof import("node:os")>()),
  hostname: vi.fn(() => "Node-1"),
}));

const faults = (settings: object): readonly string[] => {
  const checked = checkSettings({ stateDir: "/s", ...settings });
  return checked.ok ? [] : checked.error.map(({ setting, message }) => `${setting}: ${message}`);
};
const PODS = { mode: "enforce", pods: "enforce", manifests: "/m" };

test.each([
  "/kubepods",
  "/kubepods.slice",
  "/kubepods/burstable",
  "/kubepods.slice/kubepods-burstable.slice",
  "/edge/kubepods",
  "/kubepods-besteffort.slice",
  "/kubelet.slice/kubelet-kubepods.slice",
  "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice",
  "/a.slice/a-b.slice/a-b-kubepods.slice/nodewise",
])("cgroup root %s is refused in every mode, as a kubelet's own", (cgroupRoot) => {
  for (const settings of [{ cgroupRoot }, { cgroupRoot, mode: "enforce" }, { cgroupRoot, ...PODS }])
    expect(faults(settings)).toEqual([
      expect.stringMatching(
        /^cgroupRoot: `[^`/]*kubepods[^`/]*` is a kubelet's own tree: name a cgroup of its own, such as \/nodewise/,
      ),
    ]);
});
test.each(["/nodewise", "/", "/my-kubepods", "/my-kubepodsx.slice", "/kubepodsx", "/edge/nodewise.slice"])(
  "cgroup root %s is accepted",
  (cgroupRoot) => {
    expect(faults({ cgroupRoot })).toEqual([]);
  },
);

test.each(["Bad_Name", "Node-1", "a_b", "-a", "a.", "a..b", "", "x".repeat(254)])(
  "nodeName `%s` is refused",
  (nodeName) => {
    expect(faults({ nodeName })).toEqual([
      expect.stringMatching(/^nodeName: must be a node's name as Kubernetes takes it/),
    ]);
  },
);
test.each(["n", "node-1", "10-0-0-1.eu.example", "x".repeat(253)])("nodeName `%s` is accepted", (nodeName) => {
  expect(faults({ nodeName, ...PODS })).toEqual([]);
});
test("a host name that is no node name is accepted by an observer, and refused when running pods", () => {
  vi.mocked(hostname).mockReturnValue("my_host");
  expect(faults({})).toEqual([]);
  expect(faults(PODS)).toEqual([expect.stringMatching(/^nodeName: must be set, since the host's name, `my_host`/)]);
  expect(faults({ ...PODS, nodeName: "n" })).toEqual([]);
});

test("a podsDirectory where a kubelet removes unknown pods is refused", () => {
  for (const podsDirectory of ["/var/lib/kubelet/pods", "/var/lib/kubelet/pods/nodewise"])
    expect(faults({ podsDirectory })).toEqual([
      expect.stringMatching(/^podsDirectory: a kubelet removes from \/var\/lib\/kubelet\/pods/),
    ]);
  expect(faults({ podsDirectory: "/k/pods", kubeletDir: "/k" })).toHaveLength(1);
  expect(faults({ podsDirectory: "/var/lib/kubelet/podsx" })).toEqual([]);
});

const warned = (settings: object): readonly string[] =>
  settingWarnings({ stateDir: "/s", ...settings }).map(({ message }) => message.split(":")[0] ?? "");
test("a status address open to the network gives a warning, one on loopback does not", () => {
  for (const statusListen of ["0.0.0.0:10260", "[::]:10260", "10.0.0.1:1", "[fe80::1]:1", "[::ffff:10.0.0.1]:1"]) {
    expect(warned({ statusListen })).toEqual(["statusListen"]);
    expect(faults({ statusListen })).toEqual([]);
  }
  for (const statusListen of [
    "127.0.0.1:10260",
    "10260",
    "localhost:1",
    "[::1]:1",
    "127.8.0.1:1",
    "off",
    "[0:0:0:0:0:0:0:1]:1",
    "[::ffff:127.0.0.1]:1",
  ])
    expect(warned({ statusListen })).toEqual([]);
});
test("unused files, and tokens sent over unencrypted HTTP, give a warning", () => {
  expect(warned({ podsTokenFile: "/t", podsCaFile: "/c", apiTokenFile: "/a" })).toEqual([
    "podsTokenFile",
    "podsCaFile",
    "apiTokenFile",
  ]);
  expect(warned({ podsUrl: "http://10.0.0.1/pods", podsTokenFile: "/t", podsCaFile: "/c" })).toEqual([
    "podsTokenFile",
    "podsCaFile",
  ]);
  expect(warned({ api: "http://api.example", apiTokenFile: "/a" })).toEqual(["apiTokenFile"]);
  for (const api of ["https://api.example", "http://127.0.0.1:8787", "http://[::1]:8787", "http://localhost"])
    expect(warned({ api, apiTokenFile: "/a" })).toEqual([]);
});
