import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Connection } from "../../../actuator/containerd/connection.ts";
import type { Programs } from "./programs.ts";

/** Generous, for an emulated machine on a busy host. */
const READY_MS = 60_000;
const STOP_MS = 10_000;

export interface DaemonFiles {
  readonly root: string;
  readonly state: string;
  readonly socket: string;
  readonly config: string;
  readonly log: string;
}

export const PAUSE_IMAGE = "nodewise.test/pause:1";

/** The directories where containerd looks for network plugins and their configuration; both are empty at first. */
export const cniOf = (state: string) => ({ bin: join(state, "cni-bin"), conf: join(state, "cni-conf") });

/** The directory where containerd looks for CDI specifications; it is empty at first. */
export const cdiOf = (state: string): string => join(state, "cdi");

/** The timeouts for shims on a busy machine: see actuator/deploy/containerd.toml. */
export const TIMEOUTS = `[timeouts]
  "io.containerd.timeout.shim.load" = "60s"
  "io.containerd.timeout.shim.cleanup" = "60s"
  "io.containerd.timeout.task.state" = "60s"
`;

/** The environment of containerd, its shims and runc: Go collects garbage only near the memory limit. */
const NO_COLLECTIONS = { GOGC: "off", GOMEMLIMIT: "128MiB" };

/**
 * A configuration in the older format, which both containerd 1.6 and 2.x read; 1.6 ignores the settings that it does
 * not know. Without the right to lower oom_score_adj, sandboxes start only with restrict_oom_score_adj. After each of
 * its own garbage collections, containerd waits a multiple of the time that the collection took before it checks
 * whether the next one is due. On a file system in memory that means 60 checks per second, so the configuration makes
 * the checks rare and adds one at each deletion.
 */
const configOf = ({ root, state, socket }: DaemonFiles): string => `
version = 2
root = "${root}"
state = "${state}"
oom_score = 0
${TIMEOUTS}
[grpc]
  address = "${socket}"
[ttrpc]
  address = "${socket}.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = "${join(dirname(root), "opt")}"
[plugins."io.containerd.nri.v1.nri"]
  disable = true
[plugins."io.containerd.gc.v1.scheduler"]
  pause_threshold = 0.001
  deletion_threshold = 1
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  stats_collect_period = 1
  sandbox_image = "${PAUSE_IMAGE}"
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  enable_cdi = true
  cdi_spec_dirs = ["${cdiOf(state)}"]
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${cniOf(state).bin}"
    conf_dir = "${cniOf(state).conf}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
`;

/** The shipped configuration, in which only the paths are replaced by those of this test. */
export function placedConfig(text: string, { root, state, socket }: DaemonFiles): string {
  const places: readonly (readonly [RegExp, string])[] = [
    [/"\/run\/nodewise\/containerd\/containerd\.sock/g, `"${socket}`],
    [/"\/var\/lib\/nodewise-containerd\/opt"/, `"${join(dirname(root), "opt")}"`],
    [/"\/var\/lib\/nodewise-containerd"/, `"${root}"`],
    [/"\/run\/nodewise\/containerd"/, `"${state}"`],
    [/"\/run\/nodewise\/runc"/, `"${join(dirname(root), "runc")}"`],
    [/"\/opt\/cni\/bin"/, `"${cniOf(state).bin}"`],
    [/"\/etc\/nodewise\/cni\/net\.d"/, `"${cniOf(state).conf}"`],
    [/(sandbox_image = )".*"/, `$1"${PAUSE_IMAGE}"`],
    [/(restrict_oom_score_adj = )false/, "$1true"],
    [/(oom_score = )-999/, "$10"],
  ];
  return places.reduce((message, [place, own]) => {
    if (message.search(place) < 0) throw new Error(`the configuration has no ${place}`);
    return message.replace(place, own);
  }, text);
}

export interface Daemon {
  /** Containers keep running while the daemon is stopped. */
  stop(signal?: "SIGTERM" | "SIGKILL"): Promise<void>;
}

/** Starts containerd over its files and waits until CRI answers. */
export async function startDaemon(
  programs: Programs,
  files: DaemonFiles,
  connection: Connection,
  configuration?: string,
): Promise<Daemon> {
  writeFileSync(files.config, configuration === undefined ? configOf(files) : placedConfig(configuration, files));
  const log = openSync(files.log, "a");
  const child = spawn(programs.containerd, ["--config", files.config], {
    stdio: ["ignore", log, log],
    env: { ...process.env, PATH: programs.path, ...NO_COLLECTIONS },
  });
  closeSync(log);
  const failed = once(child, "error").then(([error]) => {
    throw error;
  });
  failed.catch(() => undefined);
  try {
    await Promise.race([ready(child, files, connection), failed]);
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
  return { stop: (signal = "SIGTERM") => end(child, signal) };
}

async function ready(child: ChildProcess, files: DaemonFiles, connection: Connection): Promise<void> {
  for (const deadline = Date.now() + READY_MS; ; await sleep(50)) {
    // an emulated machine would spend most of its time on calls before the socket exists
    const status = existsSync(files.socket) ? await connection.call("Status", { verbose: false }) : undefined;
    if (status?.ok) return;
    if (child.exitCode === null && Date.now() < deadline) continue;
    const tail = readFileSync(files.log, "utf8").split("\n").slice(-12).join("\n");
    throw new Error(
      `containerd does not answer (${status?.error.message ?? "it has no socket"}), its log ends:\n${tail}`,
    );
  }
}

async function end(child: ChildProcess, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill(signal);
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
  await ended;
  clearTimeout(timer);
}
