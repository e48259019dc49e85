import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { socketPathOf } from "../../../actuator/core/addresses.ts";
import { type ActuatorConfig, checkSettings, SETTINGS } from "../../../actuator/core/config.ts";
import { sessionsOf } from "../../docs/sessions.ts";
import { scratchFolder } from "../../kit/scratch.ts";
import { scratch } from "../manifests/scratch.ts";

vi.setConfig({ testTimeout: 120_000 });

const ROOT = join(import.meta.dirname, "../../..");
const DEPLOY = join(ROOT, "actuator/deploy");
const textOf = (file: string): string => readFileSync(join(DEPLOY, file), "utf8");
const defaults = ((): ActuatorConfig => {
  const checked = checkSettings({ stateDir: "/var/lib/nodewise/actuator" });
  if (!checked.ok) throw new Error(JSON.stringify(checked.error));
  return checked.value;
})();

const devicePlaces = (config: ActuatorConfig): readonly string[] => [
  config.devicePluginsDirectory,
  config.pluginsRegistryDirectory,
  config.podResourcesDirectory,
];

/** Reads `--node-name=x` as a setting; flags that are not settings are left out. */
function settingsIn(args: readonly string[]): Readonly<Record<string, string>> {
  const [command, ...flags] = args;
  expect(command).toBe("actuator");
  const pairs = flags.map((flag) => /^--([a-z-]+)=(.+)$/.exec(flag)?.slice(1) as [string, string]);
  const named = pairs.map(
    ([name, value]) => [name.replace(/-(.)/g, (_, c: string) => c.toUpperCase()), value] as const,
  );
  const own = named.filter(([name]) => !["settings", "logFormat", "logLevel"].includes(name));
  for (const [name] of own) expect(SETTINGS, name).toContain(name);
  return Object.fromEntries(own);
}

interface Mount {
  readonly name: string;
  readonly mountPath: string;
  readonly readOnly?: boolean;
  readonly mountPropagation?: string;
}
function daemonSet(file: string) {
  // biome-ignore lint/suspicious/noExplicitAny: Kubernetes objects, of which each test reads different fields
  const objects = parseAllDocuments(textOf(file)).map((d): any => {
    expect(d.errors).toEqual([]);
    return d.toJS();
  });
  const kind = (name: string) => objects.filter((o) => o.kind === name);
  const [set] = kind("DaemonSet");
  const [configMap] = kind("ConfigMap");
  const pod = set.spec.template.spec;
  const [container] = pod.containers;
  const hostPaths = new Map<string, string>(
    pod.volumes.flatMap((v: { name: string; hostPath?: { path: string } }) =>
      v.hostPath ? [[v.name, v.hostPath.path]] : [],
    ),
  );
  const mounts = container.volumeMounts as Mount[];
  const settings = { ...parse(configMap.data["actuator.yaml"]), ...settingsIn(container.args) };
  const checked = checkSettings({ stateDir: defaults.stateDir, ...settings, nodeName: "n1" });
  return { objects, kind, set, pod, container, hostPaths, mounts, settings, checked };
}

describe.each(["observe.yaml", "enforce.yaml"])("the DaemonSet of %s", (file) => {
  const { kind, set, pod, container, hostPaths, mounts, checked } = daemonSet(file);
  test("has valid settings and a matching selector", () => {
    expect(checked.ok ? [] : checked.error).toEqual([]);
    expect(set.spec.selector.matchLabels).toEqual(set.spec.template.metadata.labels);
  });
  test("mounts every volume, and the node's directories at their own paths", () => {
    expect(mounts.map(({ name }) => name).sort()).toEqual(pod.volumes.map((v: { name: string }) => v.name).sort());
    for (const { name, mountPath } of mounts) {
      const path = hostPaths.get(name);
      if (path !== undefined) expect(mountPath).toBe(path);
    }
    expect(hostPaths.get("cgroups")).toBe(defaults.cgroupMount);
    const settings = container.args.find((arg: string) => arg.startsWith("--settings=")).slice("--settings=".length);
    expect(mounts.find(({ name }) => name === "settings")?.mountPath).toBe(dirname(settings));
    expect(mounts.some(({ mountPath }) => defaults.stateDir.startsWith(`${mountPath}/`))).toBe(true);
  });
  test("refers to its own service account only", () => {
    const [account] = kind("ServiceAccount");
    expect(pod.serviceAccountName).toBe(account.metadata.name);
    for (const binding of kind("ClusterRoleBinding"))
      expect(binding.subjects).toEqual([
        { kind: "ServiceAccount", name: account.metadata.name, namespace: account.metadata.namespace },
      ]);
  });
});

test("observe.yaml grants no right that observing does not need", () => {
  const { kind, pod, container, hostPaths, mounts, checked } = daemonSet("observe.yaml");
  expect(checked.ok && [checked.value.mode, checked.value.pods, checked.value.garbageCollection]).toEqual([
    "observe",
    "off",
    "off",
  ]);
  expect(checked.ok && checked.value.cgroupRoot).toBe("/");
  expect(kind("ClusterRole").map(({ rules }) => rules)).toEqual([
    [{ apiGroups: [""], resources: ["pods"], verbs: ["list"] }],
  ]);
  expect([pod.hostPID, pod.hostNetwork, pod.hostIPC]).toEqual([undefined, undefined, undefined]);
  expect(container.securityContext).toMatchObject({
    privileged: false,
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"] },
  });
  expect(container.securityContext.capabilities.add).toBeUndefined();
  expect([...hostPaths.values()].sort()).toEqual([defaults.cgroupMount, `${defaults.kubeletDir}/config.yaml`]);
  for (const { name, readOnly } of mounts) if (hostPaths.has(name)) expect(readOnly, name).toBe(true);
  expect(checked.ok && checked.value.kubeletConfiguration).toBe(hostPaths.get("kubelet-configuration"));
});

test("enforce.yaml mounts what it writes to, and needs no API server", () => {
  const { kind, pod, hostPaths, mounts, checked } = daemonSet("enforce.yaml");
  expect(checked.ok && [checked.value.mode, checked.value.pods, checked.value.devicePlugins]).toEqual([
    "enforce",
    "enforce",
    "serve",
  ]);
  expect(kind("ClusterRole")).toEqual([]);
  expect(pod.automountServiceAccountToken).toBe(false);
  const shown = [...hostPaths.values()];
  const holds = (path: string): boolean => shown.some((dir) => path === dir || path.startsWith(`${dir}/`));
  const config = checked.ok ? checked.value : defaults;
  const socket = socketPathOf(config.runtimeEndpoint);
  const wanted = [
    config.podLogsDirectory,
    config.containerLogsDirectory,
    defaults.podsDirectory,
    defaults.stateDir,
    "/run", // claims on cgroup roots
    checked.ok ? (checked.value.manifests ?? "") : "",
    ...devicePlaces(checked.ok ? checked.value : defaults),
    socket.ok ? socket.value : "",
  ];
  expect(wanted.filter((path) => !holds(path))).toEqual([]);
  // Nodewise runs beside a kubelet, which stops and removes unknown pods in its own runtime and directories
  expect(config.runtimeEndpoint).not.toBe(defaults.runtimeEndpoint);
  expect(config.podLogsDirectory).not.toBe(defaults.podLogsDirectory);
  const toml = textOf("containerd.toml");
  expect(`unix://${/^\s*address = "(.*\.sock)"$/m.exec(toml)?.[1]}`).toBe(config.runtimeEndpoint);
  expect(holds(/^root = "(.*)"$/m.exec(toml)?.[1] ?? "")).toBe(true);
  expect(devicePlaces(checked.ok ? checked.value : defaults).filter((d) => devicePlaces(defaults).includes(d))).toEqual(
    [],
  );
  // the runtime must see the volumes that are mounted there
  expect(mounts.find(({ mountPath }) => `${defaults.podsDirectory}/`.startsWith(`${mountPath}/`))).toMatchObject({
    mountPropagation: "Bidirectional",
  });
});

test("the guide's commands install its containerd's files where containerd and systemd look for them", () => {
  const [session] = sessionsOf("docs/guide/beside-a-kubelet.md");
  const commands = session?.commands.map(({ text }) => text) ?? [];
  const node = scratchFolder();
  const installed = commands.slice(0, -2).map((command) => {
    expect(command).toMatch(/^install -D -m 644 \S+ +\/etc\/\S+$/);
    const [, file = "", path = ""] = /(\S+) +(\/\S+)$/.exec(command) ?? [];
    expect(spawnSync("bash", ["-c", command.replace(path, node + path)], { cwd: DEPLOY }).status).toBe(0);
    expect(readFileSync(node + path, "utf8")).toBe(textOf(file));
    return path;
  });
  const toml = textOf("containerd.toml");
  const [, configuration] = / --config (\S+)$/m.exec(textOf("nodewise-containerd.service")) ?? [];
  const [, networks] = /^ +conf_dir = "(.*)"$/m.exec(toml) ?? [];
  const unit = "/etc/systemd/system/nodewise-containerd.service";
  expect(installed).toEqual([configuration, `${networks}/10-nodewise.conflist`, unit]);
  const [, socket] = /^ +address = "(.*\.sock)"$/m.exec(toml) ?? [];
  expect(commands.slice(-2)).toEqual([
    "systemctl daemon-reload && systemctl enable --now nodewise-containerd",
    `ctr --address ${socket} version`,
  ]);
});

test("its own containerd shares no path with the kubelet's, and finds its unit and network", () => {
  const toml = textOf("containerd.toml");
  const values = [...toml.matchAll(/^\s*\w+ = "(\/[^"]*)"$/gm)].map(([, path]) => path ?? "");
  expect(values.length).toBeGreaterThan(5);
  expect(values.filter((path) => !path.includes("/nodewise"))).toEqual(["/opt/cni/bin"]);
  // containerd 2.x has one machine-wide path for the NRI socket unless it is configured
  expect(toml).toMatch(/^\[plugins\."io\.containerd\.nri\.v1\.nri"\]\n +disable = true$/m);
  expect(textOf("nodewise-containerd.service")).toMatch(
    /^ExecStart=\S*containerd --config \/etc\/nodewise\/containerd\.toml$/m,
  );
  const { name, plugins } = JSON.parse(textOf("10-nodewise.conflist"));
  expect([name, plugins[0].bridge, plugins[0].ipam.dataDir]).toEqual([
    "nodewise",
    "nodewise0",
    "/var/lib/nodewise/cni",
  ]);
});

describe("the systemd unit", () => {
  const unit = textOf("nodewise-actuator.service");
  const value = (name: string): string | undefined => new RegExp(`^${name}=(.*)$`, "m").exec(unit)?.[1];

  test("starts the package's command with the settings and state directory that the guide names", () => {
    // test/actuator/deploy/image.process.test.ts installs the package with the same prefix
    expect(unit).toContain("`npm install --global --prefix /opt/nodewise ");
    const [program, command, flag, settings] = (value("ExecStart") ?? "").split(" ");
    expect(program).toBe("/opt/nodewise/bin/nodewise");
    expect([command, flag, settings]).toEqual(["actuator", "--settings", "/etc/nodewise/actuator.yaml"]);
    expect(`${value("Environment")?.replace("XDG_STATE_HOME=", "")}/nodewise/actuator`).toBe(defaults.stateDir);
    expect(`/var/lib/${value("StateDirectory")}/pods`).toBe(defaults.podsDirectory);
    expect(value("ExecReload")).toBe("/bin/kill -HUP $MAINPID");
    expect([value("KillMode"), value("Restart")]).toEqual(["process", "on-failure"]);
  });

  test("has no mount namespace of its own, so that volumes are mounted for the pods", () => {
    const lines = unit.split("\n").filter((line) => /^\w+=/.test(line));
    const apart =
      /^(?:Protect(?:System|Home|KernelTunables|KernelModules|KernelLogs|ControlGroups|Proc)|Private\w+|ReadOnlyPaths|ReadWritePaths|InaccessiblePaths|TemporaryFileSystem|BindPaths|BindReadOnlyPaths|RootDirectory|RootImage|DynamicUser|MountFlags|ProcSubset)=/;
    expect(lines.filter((line) => apart.test(line))).toEqual([]);
    expect(lines.length).toBeGreaterThan(15);
  });

  const found = spawnSync("systemd-analyze", ["--version"]).status === 0;
  test.skipIf(!found)(`passes systemd-analyze verify${found ? "" : " (skipped: there is no systemd-analyze)"}`, () => {
    const file = join(scratch({}), "nodewise-actuator.service");
    // an existing program, since systemd checks that the program exists
    writeFileSync(file, unit.replace("/opt/nodewise/bin/nodewise", join(ROOT, "api/cli/nodewise.js")));
    const verified = spawnSync("systemd-analyze", ["verify", "--man=no", file], { encoding: "utf8" });
    const own = verified.stderr.split("\n").filter((line) => line.includes("nodewise-actuator"));
    expect([verified.status, own]).toEqual([0, []]);
  });
});
