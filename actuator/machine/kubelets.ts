import { readFileSync, type Stats, statSync } from "node:fs";
import { basename, join } from "node:path";
import { err, ok, type Result } from "../../api/base/result.ts";
import { parseDocuments } from "../../api/documents/parse.ts";
import { NEWEST } from "../../api/profiles/index.ts";
import { socketPathOf } from "../core/addresses.ts";
import { machineFiles } from "./files.ts";
import { listeningPorts } from "./listening-ports.ts";

/** A process that is a kubelet. */
export interface KubeletProcess {
  readonly pid: number;
  readonly name: string;
  /** The endpoint from its flags or its configuration. Null: they cannot be read. */
  readonly endpoint: string | null;
  /** True: the kubelet stores pod logs in the given directory, and removes those of other pods there. */
  readonly collectsLogs: boolean;
  /** The kubelet's runtime: the given one, or another. */
  readonly uses: "this" | "another" | "unknown";
}
/**
 * A port, or a socket in the state directory, that a kubelet listens on; `holder`: null if its process is not visible.
 */
interface KubeletListener {
  readonly what: string;
  readonly holder: { readonly pid: number; readonly name: string } | null;
}
export interface KubeletTraces {
  readonly processes: readonly KubeletProcess[];
  /** Listeners that belong to none of these processes nor to this process. */
  readonly listeners: readonly KubeletListener[];
}
interface KubeletQuestion {
  /** The root directory of the machine's /proc. */
  readonly root?: string;
  readonly runtimeEndpoint: string;
  readonly kubeletDir: string;
  readonly podLogsDirectory: string;
}

/** The kubelet's server and its healthz. */
const PORTS: readonly number[] = [NEWEST.defaults.port, NEWEST.defaults.healthzPort];
/** Sockets of its device manager and of podresources, which no setting turns off; the latter is first bound under a temporary name. */
const SOCKETS = /^(?:device-plugins\/kubelet\.sock|pod-resources\/[^/]+)$/;
const { containerRuntimeEndpoint: DEFAULT_ENDPOINT, podLogsDir: DEFAULT_POD_LOGS } = NEWEST.defaults;
const K3S_ENDPOINT = "unix:///run/k3s/containerd/containerd.sock";
const MICROSHIFT_ENDPOINT = "unix:///var/run/crio/crio.sock";
/**
 * Names of programs that are or contain a kubelet. Those of k0s and rke2 are separate processes with a kubelet's name.
 */
const COMMANDS = /kubelet|kubelite|k3s|hyperkube|microshift|edgecore/;
/** Variables in MicroK8s' file of arguments that the process's environment lacks. */
const SNAP: Readonly<Record<string, string>> = {
  SNAP_DATA: "/var/snap/microk8s/current",
  SNAP_COMMON: "/var/snap/microk8s/common",
};
/** A process that was just forked has still its parent's name. */
const SETTLED_READS = 2;

/**
 * Finds the machine's kubelets and the runtime of each: from its command line, else its configuration, read in that
 * process's file system. `isWhole`: checks every process, ports and sockets; else only new processes. What cannot be
 * read counts as absent.
 */
export function kubeletsOn(question: KubeletQuestion): (isWhole: boolean) => KubeletTraces {
  const { root = "/", kubeletDir } = question;
  const ports = listeningPorts(root);
  let processes = new Map<string, KubeletProcess | null>();
  let reads = new Map<string, number>();
  let listeners: readonly KubeletListener[] = [];

  const readProcesses = (isWhole: boolean): void => {
    const files = machineFiles(root);
    const [now, seen] = [new Map<string, KubeletProcess | null>(), new Map<string, number>()];
    for (const pid of files.names("/proc").filter((name) => /^\d+$/.test(name))) {
      const count = isWhole ? 0 : (reads.get(pid) ?? 0);
      const known = isWhole ? undefined : processes.get(pid);
      const isKnown = known !== undefined && (known !== null || count >= SETTLED_READS);
      now.set(pid, isKnown ? known : kubeletOf(pid, question));
      seen.set(pid, count + 1);
    }
    processes = now;
    reads = seen;
  };
  return (isWhole) => {
    readProcesses(isWhole);
    const kubelets = [...processes.values()].filter((one) => one !== null);
    // a visible running kubelet explains the listeners, even if its descriptors cannot be read
    if (kubelets.length > 0) listeners = [];
    else if (isWhole) listeners = listenersIn(root, kubeletDir, ports);
    return { processes: kubelets, listeners };
  };
}

/** The kubelet of a process; null: the process is no kubelet. */
function kubeletOf(pid: string, question: KubeletQuestion): KubeletProcess | null {
  const { root = "/" } = question;
  const comm = textOf(join(root, "proc", pid, "comm")).trim();
  // this rules out nearly all processes without a second file
  if (!COMMANDS.test(comm)) return null;
  const argv = textOf(join(root, "proc", pid, "cmdline"))
    .split("\0")
    .slice(0, -1);
  const started = startedAs(argv, pid, root);
  // a zombie process has no command line
  if (started === null) return null;
  const { flags, fallback } = started;
  const configuration = configurationOf(flags, pid, root);
  const logs = stringField(configuration, "podLogsDir", DEFAULT_POD_LOGS);
  const endpoint =
    flagOf(flags, "container-runtime-endpoint") ?? stringField(configuration, "containerRuntimeEndpoint", fallback);
  return {
    pid: Number(pid),
    name: comm,
    endpoint,
    collectsLogs: logs !== null && compared(logs, question.podLogsDirectory, pid, root) === "this",
    uses: endpoint === null ? "unknown" : usesOf(endpoint, pid, question),
  };
}

interface Started {
  /** The flags in a kubelet's form. */
  readonly flags: readonly string[];
  /** The default endpoint; null: not known. */
  readonly fallback: string | null;
}
/** How a process was started as a kubelet; null: it is no kubelet. */
function startedAs(argv: readonly string[], pid: string, root: string): Started | null {
  const [program = "", verb = ""] = argv;
  const name = basename(program);
  const isServing = verb === "server" || verb === "agent";
  if (/^kubelet(?:-?v?\d[\d.]*)?$/.test(name) || (name === "hyperkube" && verb === "kubelet"))
    return { flags: argv, fallback: DEFAULT_ENDPOINT };
  if ((name === "k3s" && isServing) || name === "k3s-server" || name === "k3s-agent")
    return { flags: argv, fallback: K3S_ENDPOINT };
  if (name === "microshift" && verb === "run") return { flags: argv, fallback: MICROSHIFT_ENDPOINT };
  if (name === "edgecore") return { flags: argv, fallback: null };
  return name === "kubelite" ? kubeliteOf(argv, pid, root) : null;
}

/** MicroK8s: its kubelet's arguments are in a file, one or two words per line, with environment variables. */
function kubeliteOf(argv: readonly string[], pid: string, root: string): Started {
  const file = flagOf(argv, "kubelet-args-file");
  if (file === undefined) return { flags: argv, fallback: DEFAULT_ENDPOINT };
  const text = fileOf(file, pid, root);
  if (!text.ok) return { flags: argv, fallback: null };
  const own = textOf(join(root, "proc", pid, "environ")).split("\0");
  const environment = new Map([...Object.entries(SNAP), ...own.map(variableOf)]);
  const words = text.value.split("\n").flatMap((line) => (/^\s*#/.test(line) ? [] : line.trim().split(/\s+/)));
  const expanded = words.map((word) =>
    word.replaceAll(/\$(?:\{(\w+)\}|(\w+))/g, (_, braced, bare) => environment.get(braced ?? bare) ?? ""),
  );
  return { flags: [...expanded, ...argv], fallback: DEFAULT_ENDPOINT };
}
const variableOf = (pair: string): readonly [name: string, value: string] => {
  const [name = "", ...value] = pair.split("=");
  return [name, value.join("=")];
};

/** The KubeletConfiguration that a process names; null: it cannot be read. */
function configurationOf(argv: readonly string[], pid: string, root: string): Readonly<Record<string, unknown>> | null {
  const file = flagOf(argv, "config");
  // files of that directory may override it
  if (flagOf(argv, "config-dir") !== undefined) return null;
  if (file === undefined) return {};
  const text = fileOf(file, pid, root);
  if (!text.ok) return null;
  const [document] = parseDocuments(text.value, file).documents;
  return (document?.value ?? {}) as Readonly<Record<string, unknown>>;
}
function stringField(
  configuration: Readonly<Record<string, unknown>> | null,
  field: string,
  fallback: string | null,
): string | null {
  if (configuration === null) return null;
  const value = configuration[field];
  return typeof value === "string" && value !== "" ? value : fallback;
}

/** `--NAME=VALUE` or `--NAME VALUE`; the last counts. */
function flagOf(argv: readonly string[], name: string): string | undefined {
  let found: string | undefined;
  for (const [i, word] of argv.entries()) {
    if (word.startsWith(`--${name}=`)) found = word.slice(name.length + 3);
    else if (word === `--${name}`) found = argv[i + 1];
  }
  return found;
}

function usesOf(
  endpoint: string,
  pid: string,
  { root = "/", runtimeEndpoint }: KubeletQuestion,
): KubeletProcess["uses"] {
  const [theirs, ours] = [socketPathOf(endpoint), socketPathOf(runtimeEndpoint)];
  return theirs.ok && ours.ok ? compared(theirs.value, ours.value, pid, root) : "another";
}

/** Whether paths of that process lead to the same places as ours. */
function compared(theirs: string, ours: string, pid: string, root: string): KubeletProcess["uses"] {
  const own = statOf(join(root, ours));
  const found = seenBy(theirs, pid, root, (path) => statSync(path));
  if (own !== null && found.ok) return found.value.dev === own.dev && found.value.ino === own.ino ? "this" : "another";
  const isSameText = withoutVarRun(theirs) === withoutVarRun(ours);
  if (found.ok || found.error === "ENOENT") return isSameText && hasOurMounts(pid, root) ? "this" : "another";
  return "unknown";
}
/**
 * The path with /run for /var/run, a symbolic link that would lead from /proc/PID/root into this process's own tree.
 */
const withoutVarRun = (path: string): string => path.replace(/^\/var\/run\//, "/run/");

function fileOf(file: string, pid: string, root: string): Result<string, string> {
  if (file.startsWith("/")) return seenBy(file, pid, root, (path) => readFileSync(path, "utf8"));
  return attempt(join(root, "proc", pid, "cwd", file), (path) => readFileSync(path, "utf8"));
}

/**
 * Reads the file system as that process sees it. Without the right to do so (CAP_SYS_PTRACE) it reads directly, if both have
 * the same mounts. Errors: errno.
 */
function seenBy<T>(path: string, pid: string, root: string, look: (path: string) => T): Result<T, string> {
  const theirs = attempt(join(root, "proc", pid, "root", withoutVarRun(path)), look);
  const mayNot = !theirs.ok && (theirs.error === "EACCES" || theirs.error === "EPERM");
  return mayNot && hasOurMounts(pid, root) ? attempt(join(root, path), look) : theirs;
}

/** Each mount namespace numbers its mounts on its own. proc(5), mountinfo. */
function hasOurMounts(pid: string, root: string): boolean {
  const rootMount = (of: string): string | undefined =>
    textOf(join(root, "proc", of, "mountinfo"))
      .split("\n")
      .find((line) => line.split(" ")[4] === "/")
      ?.split(" ")[0];
  const theirs = rootMount(pid);
  return theirs !== undefined && theirs === rootMount("self");
}

/** TCP ports and sockets in the state directory with a listener other than this process. */
function listenersIn(
  root: string,
  kubeletDir: string,
  ports: ReturnType<typeof listeningPorts>,
): readonly KubeletListener[] {
  const taken = ports.list().filter(({ protocol, port }) => protocol === "TCP" && PORTS.includes(port));
  const open = new Map<string, string>(taken.map(({ port, inode }) => [`port ${port}`, inode]));
  const below = `${kubeletDir}/`;
  for (const { path, inode } of unixListeners(textOf(join(root, "proc/net/unix"))))
    if (path.startsWith(below) && SOCKETS.test(path.slice(below.length))) open.set(path, inode);
  return [...open].flatMap(([what, inode]) => {
    const holder = ports.ownerOf(inode) ?? null;
    // another daemon that serves device plugins takes the kubelet's place
    const isOurs = holder !== null && (holder.pid === process.pid || isNodewise(holder.pid, root));
    return isOurs ? [] : [{ what, holder: holder === null ? null : { pid: holder.pid, name: holder.name } }];
  });
}
const isNodewise = (pid: number, root: string): boolean =>
  textOf(join(root, "proc", String(pid), "cmdline"))
    .split("\0")
    .some((word) => /nodewise(?:\.js)?$/.test(word));

/** Parses /proc/net/unix: `Num RefCount Protocol Flags Type St Inode Path`; listening sockets have 00010000. */
export function unixListeners(table: string): readonly { readonly path: string; readonly inode: string }[] {
  return table.split("\n").flatMap((line) => {
    const [, , , flags = "", , , inode = "", path = ""] = line.trim().split(/\s+/);
    return flags === "00010000" && path.startsWith("/") ? [{ path, inode }] : [];
  });
}

function attempt<T>(path: string, look: (path: string) => T): Result<T, string> {
  try {
    return ok(look(path));
  } catch (error) {
    return err((error as NodeJS.ErrnoException).code ?? "EIO");
  }
}
const textOf = (path: string): string => {
  const text = attempt(path, (one) => readFileSync(one, "utf8"));
  return text.ok ? text.value : "";
};
const statOf = (path: string): Stats | null => {
  const stats = attempt(path, (one) => statSync(one));
  return stats.ok ? stats.value : null;
};
