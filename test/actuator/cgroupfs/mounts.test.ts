import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parseMounts } from "../../../actuator/cgroupfs/files.ts";
import { chooseHierarchy, openHierarchy } from "../../../actuator/cgroupfs/open.ts";
import { ROOT, simulated } from "../cgroups/hierarchy-kit.ts";
import { SimKernel } from "../cgroups/sim-kernel.ts";
import { v2Rules } from "../cgroups/sim-v2.ts";
import { tempTree } from "../cgroups/temp-tree.ts";

const AT = "/sys/fs/cgroup";
const line = (point: string, type: string, superOptions: string, options = "rw,nosuid"): string =>
  `31 23 0:28 / ${point} ${options} shared:9 - ${type} ${type} ${superOptions}`;

test("v1 hierarchies are found by controller, and co-mounted controllers share a directory", () => {
  const { v1, v2, joined } = parseMounts(
    [
      "22 1 8:1 / / rw - ext4 /dev/vda rw",
      line(`${AT}/cpu,cpuacct`, "cgroup", "rw,cpu,cpuacct"),
      line(`${AT}/memory`, "cgroup", "rw,memory", "ro,nosuid"),
      line(`${AT}/systemd`, "cgroup", "rw,xattr,name=systemd"),
      line(`${AT}/unified`, "cgroup2", "rw"),
      line("/elsewhere/pids", "cgroup", "rw,pids"),
      line(`${AT}/deep/pids`, "cgroup", "rw,pids"),
      "not a mount",
    ].join("\n"),
    AT,
  );
  expect([...v1]).toEqual([
    ["cpu", { mount: "cpu,cpuacct", writable: true }],
    ["cpuacct", { mount: "cpu,cpuacct", writable: true }],
    ["memory", { mount: "memory", writable: false }],
  ]);
  expect(v2).toEqual({ mount: "unified", writable: true });
  expect(joined).toEqual([
    { mount: "systemd", writable: true },
    { mount: "unified", writable: true },
  ]);
});

test("a unified tree alone has no v1 hierarchies beside it", () => {
  expect(parseMounts(line(AT, "cgroup2", "rw"), AT).joined).toEqual([]);
});

test("octal escapes in mount points are decoded", () => {
  const { v1 } = parseMounts(line("/a\\040b/cpu", "cgroup", "rw,cpu"), "/a b");
  expect(v1.get("cpu")?.mount).toBe("cpu");
});

test("missing controllers are left out with a reason, read-only ones are kept with a remark", () => {
  const mounts = parseMounts(
    [
      line(`${AT}/cpu`, "cgroup", "rw,cpu"),
      line(`${AT}/memory`, "cgroup", "ro,memory"),
      line(`${AT}/devices`, "cgroup", "ro,devices"),
      line(`${AT}/unified`, "cgroup2", "rw"),
    ].join("\n"),
    AT,
  );
  const hierarchy = chooseHierarchy(new SimKernel(simulated(1).kernel.rules).open(ROOT), mounts);
  const support = hierarchy.ok ? hierarchy.value.support() : null;
  expect(support?.controllers).toEqual(["memory", "cpu"]);
  expect(hierarchy.ok && hierarchy.value.readOnly).toEqual([
    expect.stringMatching(/^controller memory .*EROFS.* \/sys\/fs\/cgroup\/memory is/),
  ]);
  expect(support?.unsupported).toEqual({
    cpuset: "controller cpuset is mounted in no v1 hierarchy (cgroup2 is mounted at `unified` and may hold it)",
    pids: "controller pids is mounted in no v1 hierarchy (cgroup2 is mounted at `unified` and may hold it)",
    hugetlb: "controller hugetlb is mounted in no v1 hierarchy (cgroup2 is mounted at `unified` and may hold it)",
  });
});

test("v2 is chosen only if cgroup2 is mounted at the root and has cpu and memory", () => {
  const kernel = new SimKernel(v2Rules({ cpus: "0-1", mems: "0" }));
  const unified = parseMounts(line(AT, "cgroup2", "rw"), AT);
  const hybrid = parseMounts(
    [line(`${AT}/unified`, "cgroup2", "rw"), line(`${AT}/cpu`, "cgroup", "rw,cpu")].join("\n"),
    AT,
  );
  const versionOf = (mounts: typeof unified): number | string => {
    const chosen = chooseHierarchy(kernel.open(ROOT), mounts);
    return chosen.ok ? chosen.value.version : chosen.error.code;
  };
  expect(versionOf(unified)).toBe(2);
  expect(versionOf(hybrid)).toBe(1);
  kernel.tops.get("")?.files.set("cgroup.controllers", "hugetlb");
  expect(versionOf(unified)).toBe("unsupported");
  expect(versionOf(parseMounts("", AT))).toBe("unsupported");
});

test("v2: a controller that the root's parent does not delegate is unsupported, and not enabled there", async () => {
  const { kernel, hierarchy } = simulated(2);
  kernel.tops.get("")?.files.set("cgroup.subtree_control", "cpu memory");
  expect(hierarchy.support().controllers).toEqual(["cpu", "memory"]);
  expect(hierarchy.support().unsupported["pids"]).toBe(
    "controller pids is not in cgroup.subtree_control of /: enable it there, or choose another root",
  );
  await hierarchy.create("/", ["cpu", "memory"]);
  await hierarchy.create("/a", ["cpu", "memory"]);
  expect(kernel.tops.get("")?.files.get("cgroup.subtree_control")).toBe("cpu memory");
  expect(hierarchy.read("/", "cgroup.subtree_control")).toEqual({ ok: true, value: "cpu memory" });
});

test("v2: delegating controllers from a cgroup with processes fails, with the number of processes", async () => {
  const { kernel, hierarchy } = simulated(2);
  await hierarchy.create("/", ["cpu"]);
  kernel.find("", ROOT)?.processes.add(1).add(2);
  const made = await hierarchy.create("/a", ["cpu"]);
  expect(made.ok ? "" : made.error.message).toBe(
    "write / cgroup.subtree_control: tried `+cpu`, got EBUSY (processes 2); a cgroup that hands down controllers may not hold processes",
  );
});

test("v1: a cgroup that cannot be created in every hierarchy is created in none", async () => {
  const { kernel, hierarchy } = simulated(1);
  await hierarchy.create("/", hierarchy.support().controllers);
  kernel.rmdir("pids", ROOT);
  const made = await hierarchy.create("/a", hierarchy.support().controllers);
  expect(made.ok ? "made" : made.error.code).toBe("not_found");
  expect(hierarchy.identities("/a")).toEqual({});
});

test("v2: a read-only tree can be read, is reported as such, and refuses writes", async () => {
  const kernel = new SimKernel(v2Rules({ cpus: "0-1", mems: "0" }));
  kernel.denied = () => "EROFS";
  const chosen = chooseHierarchy(kernel.open(ROOT), parseMounts(line(AT, "cgroup2", "ro"), AT));
  if (!chosen.ok) throw new Error(chosen.error.message);
  expect(chosen.value.support().controllers).toContain("memory");
  expect(chosen.value.readOnly).toEqual([
    expect.stringMatching(/^cgroup2 cannot be written \(EROFS\): \/sys\/fs\/cgroup is/),
  ]);
  const made = await chosen.value.create("/", ["memory"]);
  expect(made.ok ? "made" : made.error.errno).toBe("EROFS");
});

test("without a given mountinfo the machine's own is read", () => {
  const opened = openHierarchy({ root: "/nodewise-none" });
  const found = parseMounts(readFileSync("/proc/self/mountinfo", "utf8"), AT);
  expect(opened.ok).toBe(found.v1.size > 0 || found.v2 !== null);
});

test("a trailing slash in the mount root makes no difference", () => {
  const tree = tempTree(2, ROOT);
  try {
    const opened = openHierarchy({ mountRoot: `${tree.mountRoot}/`, root: ROOT, mountinfo: tree.mountinfo });
    expect(opened.ok && opened.value.version).toBe(2);
  } finally {
    tree.remove();
  }
});
