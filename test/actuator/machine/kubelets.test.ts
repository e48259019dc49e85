import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { kubeletsOn, unixListeners } from "../../../actuator/machine/kubelets.ts";
import { scratchFolder } from "../../kit/scratch.ts";

const OURS = "/run/nodewise/containerd.sock";
const MOUNTS = "22 27 0:21 / /proc rw,relatime - proc proc rw\n27 1 254:0 / / rw,relatime - ext4 /dev/root rw\n";
/** As a kubelet 1.36.3 listed its sockets, in its own directories. */
const UNIX = `Num       RefCount Protocol Flags    Type St Inode Path
000000001163683f: 00000002 00000000 00010000 0001 01 127158 /var/lib/kubelet/device-plugins/kubelet.sock
0000000050abf44d: 00000002 00000000 00010000 0001 01 126995 /var/lib/kubelet/pod-resources/2490708010
00000000b1a3cf1e: 00000003 00000000 00000000 0001 03 127001 /var/lib/kubelet/device-plugins/kubelet.sock
00000000ac1a4a52: 00000002 00000000 00010000 0001 01 31 /run/nodewise/containerd.sock
`;
const TCP_HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
const port = (number: number, inode: string): string =>
  `   0: 0100007F:${number.toString(16).toUpperCase().padStart(4, "0")} 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 ${inode} 1 0000000000000000 100 0 0 10 0\n`;

interface Process {
  readonly comm: string;
  readonly argv: readonly string[];
  /** The process's root directory; absent: the machine's root. */
  readonly root?: string;
  readonly mountinfo?: string;
  /** Inodes of the sockets that the process holds. */
  readonly inodes?: readonly string[];
}

/** A machine with the sockets of our runtime and of the default runtime. */
function machine(processes: Readonly<Record<string, Process>>, files: Readonly<Record<string, string>> = {}) {
  const root = scratchFolder();
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  const all = { [OURS]: "", "/run/containerd/containerd.sock": "", "/proc/self/mountinfo": MOUNTS, ...files };
  for (const [path, text] of Object.entries(all)) write(path, text);
  const put = (pid: string, { comm, argv, root: seen = root, mountinfo = MOUNTS, inodes = [] }: Process): void => {
    write(`/proc/${pid}/comm`, `${comm}\n`);
    write(`/proc/${pid}/cmdline`, argv.map((word) => `${word}\0`).join(""));
    write(`/proc/${pid}/mountinfo`, mountinfo);
    if (seen !== "none") symlinkSync(seen, join(root, "proc", pid, "root"));
    mkdirSync(join(root, "proc", pid, "fd"));
    for (const [i, inode] of inodes.entries()) symlinkSync(`socket:[${inode}]`, join(root, "proc", pid, "fd", `${i}`));
  };
  for (const [pid, one] of Object.entries(processes)) put(pid, one);
  const look = (runtimeEndpoint = `unix://${OURS}`) =>
    kubeletsOn({ root, runtimeEndpoint, kubeletDir: "/var/lib/kubelet", podLogsDirectory: "/logs/pods" });
  return { root, put, write, look };
}
const kubelet = (...flags: readonly string[]): Process => ({ comm: "kubelet", argv: ["/usr/bin/kubelet", ...flags] });

test.each<[string, Process, object, string]>([
  ["by its flag", kubelet(`--container-runtime-endpoint=unix://${OURS}`), {}, "this"],
  ["by a flag of two words, the path alone", kubelet("--container-runtime-endpoint", OURS), {}, "this"],
  [
    "by its configuration",
    kubelet("--config=/etc/k.yaml"),
    { "/etc/k.yaml": `containerRuntimeEndpoint: unix://${OURS}\n` },
    "this",
  ],
  [
    "by a flag that wins over it",
    kubelet("--config=/etc/k.yaml", "--container-runtime-endpoint=/run/x.sock"),
    { "/etc/k.yaml": `containerRuntimeEndpoint: unix://${OURS}\n` },
    "another",
  ],
  ["by the kubelet's default", kubelet("--config", "/etc/k.yaml"), { "/etc/k.yaml": "{}" }, "another"],
  ["with a configuration that cannot be read", kubelet("--config=/etc/none.yaml"), {}, "unknown"],
  [
    "with more configuration elsewhere",
    kubelet("--config=/etc/k.yaml", "--config-dir=/etc/k.d"),
    { "/etc/k.yaml": "{}" },
    "unknown",
  ],
  [
    "of k3s, which has its own",
    { comm: "k3s-server", argv: ["/usr/local/bin/k3s", "server"] },
    { "/run/k3s/containerd/containerd.sock": "" },
    "another",
  ],
  ["of k3s by another name", { comm: "k3s-agent", argv: ["/data/bin/k3s-agent", "agent"] }, {}, "another"],
  [
    "of MicroK8s, by its file of arguments",
    {
      comm: "kubelite",
      argv: ["/snap/microk8s/1/kubelite", "--start-control-plane=true", "--kubelet-args-file=/args/kubelet"],
    },
    {
      "/args/kubelet": `--root-dir=\${SNAP_COMMON}/k\n\n# its runtime\n--container-runtime-endpoint=\${RUN}/containerd.sock\n`,
      "/proc/41/environ": "A=b=c\0RUN=/run/nodewise\0",
    },
    "this",
  ],
  [
    "of MicroK8s, by its own place",
    { comm: "kubelite", argv: ["/snap/microk8s/1/kubelite", "--kubelet-args-file=/args/kubelet"] },
    {
      "/args/kubelet": "--container-runtime-endpoint $SNAP_COMMON/run/containerd.sock\n",
      "/var/snap/microk8s/common/run/containerd.sock": "",
    },
    "another",
  ],
  [
    "of MicroK8s, by its flags",
    { comm: "kubelite", argv: ["/kubelite", `--container-runtime-endpoint=${OURS}`] },
    {},
    "this",
  ],
  [
    "of MicroK8s, with arguments that cannot be read",
    { comm: "kubelite", argv: ["/kubelite", "--kubelet-args-file=/none"] },
    {},
    "unknown",
  ],
  ["of MicroShift, which has CRI-O", { comm: "microshift", argv: ["/usr/bin/microshift", "run"] }, {}, "another"],
  ["of KubeEdge, which nothing tells", { comm: "edgecore", argv: ["/usr/local/bin/edgecore"] }, {}, "unknown"],
])("a kubelet's runtime is recognised %s", (_, process, files, uses) => {
  const traces = machine(
    { "41": process, "1": { comm: "init", argv: ["/sbin/init"] } },
    files as Record<string, string>,
  ).look()(true);
  expect(traces.processes.map((one) => [one.pid, one.uses])).toEqual([[41, uses]]);
});

test("the default endpoint counts as this runtime when this one is at the default path, under any of its names", () => {
  const { look } = machine({ "41": kubelet() });
  expect(look("unix:///run/containerd/containerd.sock")(true).processes[0]?.uses).toBe("this");
  expect(look("/var/run/containerd/containerd.sock")(true).processes[0]?.uses).toBe("this");
  expect(look()(true).processes[0]).toMatchObject({
    uses: "another",
    endpoint: "unix:///run/containerd/containerd.sock",
  });
});

test("the same path in another mount namespace is another socket; mounts decide where it cannot be read", () => {
  const inside = scratchFolder();
  mkdirSync(join(inside, "run/nodewise"), { recursive: true });
  writeFileSync(join(inside, OURS), "");
  const flag = `--container-runtime-endpoint=unix://${OURS}`;
  const { look } = machine({
    "41": { ...kubelet(flag), root: inside, mountinfo: "900 1 254:0 / / rw - ext4 /dev/root rw\n" },
    "42": { ...kubelet(flag), root: "none" },
    "43": { ...kubelet(flag), root: "none", mountinfo: "900 1 254:0 / / rw - ext4 /dev/root rw\n" },
  });
  expect(look()(true).processes.map(({ pid, uses }) => `${pid} ${uses}`)).toEqual([
    "41 another",
    "42 this",
    "43 another",
  ]);
});

test("a kubelet collects our pods' logs only if its log directory is the very same", () => {
  const elsewhere = scratchFolder();
  for (const dir of ["etc", "logs/pods"]) mkdirSync(join(elsewhere, dir), { recursive: true });
  writeFileSync(join(elsewhere, "etc/k.yaml"), "podLogsDir: /logs/pods\n");
  const configured = kubelet("--config=/etc/k.yaml");
  const files = { "/etc/k.yaml": "podLogsDir: /logs/pods\n", "/logs/pods/one": "" };
  const inside = { ...configured, root: elsewhere, mountinfo: "900 1 254:0 / / rw - ext4 /dev/root rw\n" };
  const { look } = machine({ "41": configured, "42": kubelet(), "43": kubelet("--config=/none"), "44": inside }, files);
  expect(look()(true).processes.map(({ collectsLogs }) => collectsLogs)).toEqual([true, false, false, false]);
});

test("processes that merely have kubelet in their name are ignored", () => {
  const { look } = machine({
    "41": { comm: "vi", argv: ["vi", "/etc/kubelet"] },
    "42": { comm: "kubelet-csr-app", argv: ["/kubelet-csr-approver"] },
    "43": { comm: "kubelet", argv: [] },
    "45": { comm: "k3s", argv: ["k3s", "kubectl", "get", "pods"] },
    "46": { comm: "microshift", argv: ["microshift", "version"] },
    "44": { comm: "kubelet-1.36.3", argv: ["/opt/kubelet-1.36.3"] },
  });
  expect(look()(true).processes.map(({ pid }) => pid)).toEqual([44]);
});

test("a new kubelet is found at the next look, and an ended one disappears", () => {
  const { root, put, look } = machine({ "1": { comm: "init", argv: ["/sbin/init"] } });
  const kubelets = look("unix:///run/containerd/containerd.sock");
  expect(kubelets(true).processes).toEqual([]);
  // systemd has forked this process, which has not yet executed its program
  put("50", { comm: "(kubelet)", argv: ["/sbin/init"] });
  expect(kubelets(false).processes).toEqual([]);
  rmSync(join(root, "proc/50"), { recursive: true });
  put("50", kubelet());
  expect(kubelets(false).processes.map(({ pid, uses }) => [pid, uses])).toEqual([[50, "this"]]);
  rmSync(join(root, "proc/50"), { recursive: true });
  expect(kubelets(false).processes).toEqual([]);
});

test("a kubelet's ports and sockets are listed with their holder, except those of a kubelet already found", () => {
  const files = {
    "/proc/net/unix": UNIX,
    "/proc/net/tcp": TCP_HEAD + port(10250, "7") + port(10248, "8") + port(10251, "9"),
  };
  const nginx = { comm: "nginx", argv: ["nginx"], inodes: ["7"] };
  const reportOf = (processes: Readonly<Record<string, Process>>): readonly string[] =>
    machine(processes, files)
      .look()(true)
      .listeners.map(({ what, holder }) => `${what} ${holder?.name ?? "?"}`);
  expect(reportOf({ "60": nginx })).toEqual([
    "port 10250 nginx",
    "port 10248 ?",
    "/var/lib/kubelet/device-plugins/kubelet.sock ?",
    "/var/lib/kubelet/pod-resources/2490708010 ?",
  ]);
  expect(reportOf({ "60": nginx, "41": kubelet() })).toEqual([]);
  // another Nodewise daemon that serves device plugins instead of the kubelet
  const daemon = {
    comm: "node",
    argv: ["node", "/opt/nodewise/api/cli/nodewise.js", "actuator"],
    inodes: ["127158", "126995"],
  };
  expect(reportOf({ "61": daemon })).toEqual(["port 10250 ?", "port 10248 ?"]);
  expect(unixListeners(UNIX)).toHaveLength(3);
});
