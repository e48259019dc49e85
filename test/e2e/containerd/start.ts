import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, rmdirSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { type Connection, openConnection } from "../../../actuator/containerd/connection.ts";
import type { Runtime } from "../../../actuator/containerd/cri.ts";
import { runtimeOver } from "../../../actuator/containerd/runtime.ts";
import { RAM_DISK } from "../../kit/ram-disk.ts";
import { cdiOf, cniOf, type Daemon, type DaemonFiles, PAUSE_IMAGE, startDaemon } from "./daemon.ts";
import { type ImageArchive, type ImageArchiveSpec, imageArchive } from "./image-archive.ts";
import { killShims, ownDirectory, removeCgroups, unmountBelow } from "./leftovers.ts";
import {
  type ContainerSpec,
  exited,
  must,
  type Pod,
  type PodFixture,
  type PodSpec,
  runContainer,
  runSandbox,
} from "./pods.ts";
import { findPrograms, type Programs } from "./programs.ts";

const CALL_MS = 90_000;
/** The prefix of each containerd's directory name and cgroup name. */
const OWN = "ctd";
/** The directories below /run that shims, runc and networks use whatever containerd's state directory is. */
const SHARED_STATE = ["containerd/s", "containerd/runc/k8s.io", "containerd/runc", "containerd", "netns"].map((dir) =>
  join("/run", dir),
);

export interface StartOptions {
  /**
   * The directory for images and the containers' layers, such as a `smallFileSystem`; default: in the temporary
   * directory.
   */
  readonly root?: string;
  /** The configuration as it is shipped; default: the tests' configuration. */
  readonly configuration?: string | undefined;
  /** The path of another binary than the machine's. */
  readonly binary?: string | undefined;
  /** The images that it has from the start, in addition to the sandbox image. */
  readonly images?: readonly ImageSpec[];
}
export interface ImageSpec extends ImageArchiveSpec {
  readonly pinned?: boolean;
}
export type RunSpec = PodSpec & Pick<ContainerSpec, "image" | "command">;
export interface RunPod {
  readonly pod: Pod;
  readonly sandboxId: string;
  readonly containerId: string;
}

/** A containerd of this test, which shares nothing with the machine's own. */
export interface Containerd {
  readonly endpoint: string;
  readonly connection: Connection;
  readonly runtime: Runtime;
  readonly podLogs: string;
  readonly containerLogs: string;
  readonly cni: ReturnType<typeof cniOf>;
  /** The directory of its CDI specifications. */
  readonly cdi: string;
  /** Makes an image and imports it; resolves when CRI lists the image. */
  importImage(spec: ImageSpec): Promise<ImageArchive>;
  /** A sandbox without containers. */
  runSandbox(spec: PodSpec): Promise<Pod>;
  /** A sandbox with one running container, `app`. */
  runPod(spec: RunSpec): Promise<RunPod>;
  /** A sandbox with one container that has exited. */
  exitPod(spec: Omit<RunSpec, "command">): Promise<RunPod>;
  /** Adds a container to a pod; `exits`: waits for its exit. */
  addContainer(pod: Pod, spec: ContainerSpec & { readonly exits?: boolean }): Promise<string>;
  /** Stops only the daemon; its containers keep running. */
  halt(signal?: "SIGTERM" | "SIGKILL"): Promise<void>;
  resume(): Promise<void>;
  /** Stops everything and removes all files, mounts and cgroups. */
  stop(): Promise<void>;
}

const PAUSE: ImageSpec = {
  name: PAUSE_IMAGE,
  sizeBytes: 0,
  base: "busybox",
  command: ["/bin/busybox", "sleep", "1000000"],
};

/** The reason why containerd cannot run here, or undefined. */
export const whyNoContainerd = (): string | undefined => {
  const programs = findPrograms();
  return "missing" in programs ? programs.missing : undefined;
};

/** Starts a containerd with a sandbox image that is not pinned. Throws if `whyNoContainerd` returns a reason. */
export async function startContainerd(options: StartOptions = {}): Promise<Containerd> {
  const programs = findPrograms(options.binary);
  if ("missing" in programs) throw new Error(programs.missing);
  const dir = ownDirectory(OWN);
  const files = filesIn(dir, options.root ?? join(dir, "root"));
  const cgroupParent = `/${basename(dir)}`;
  const connection = open(files.socket);
  const ground: PodFixture = {
    connection,
    cgroupParent,
    podLogs: join(dir, "pods"),
    containerLogs: join(dir, "links"),
  };
  for (const path of [ground.podLogs, ground.containerLogs]) mkdirSync(path);
  const runtime = runtimeOver(connection);
  let daemon: Daemon | undefined;
  const resume = async (): Promise<void> => {
    daemon = await startDaemon(programs, files, connection, options.configuration);
  };
  const halt = async (signal?: "SIGTERM" | "SIGKILL"): Promise<void> => {
    await daemon?.stop(signal);
    daemon = undefined;
  };
  const importImages = (...specs: readonly ImageSpec[]) => importInto(programs, files.socket, connection, specs);
  const stop = async (): Promise<void> => {
    // Only the daemon can remove its sandboxes completely; without it, the steps below remove most of what they left.
    if (daemon === undefined) await resume().catch(() => undefined);
    await removeSandboxes(runtime);
    await halt();
    connection.close();
    killShims(files.socket);
    for (const path of [dir, files.root]) unmountBelow(path);
    removeCgroups(cgroupParent);
    for (const path of [files.root, dir]) rmSync(path, { recursive: true, force: true, maxRetries: 5 });
    // another containerd may be about to create a socket there, so only the last one removes them
    if (!readdirSync(RAM_DISK).some((name) => name.startsWith(`nodewise-${OWN}-`))) SHARED_STATE.forEach(removeIfEmpty);
  };
  const addContainer: Containerd["addContainer"] = async (pod, spec) => {
    const id = await runContainer(ground, pod, spec.exits ? { command: ["/bin/busybox", "true"], ...spec } : spec);
    if (spec.exits) await exited(connection, id);
    return id;
  };
  const run = async ({ image, command, ...spec }: RunSpec, exits: boolean): Promise<RunPod> => {
    const pod = await runSandbox(ground, spec);
    const containerId = await addContainer(pod, { image, exits, ...(command === undefined ? {} : { command }) });
    return { pod, sandboxId: pod.sandboxId, containerId };
  };
  try {
    await resume();
    await importImages(PAUSE, ...(options.images ?? []));
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    endpoint: `unix://${files.socket}`,
    connection,
    runtime,
    podLogs: ground.podLogs,
    containerLogs: ground.containerLogs,
    cni: cniOf(files.state),
    cdi: cdiOf(files.state),
    importImage: async (spec) => (await importImages(spec))[0] as ImageArchive,
    runSandbox: (spec) => runSandbox(ground, spec),
    runPod: (spec) => run(spec, false),
    exitPod: (spec) => run(spec, true),
    addContainer,
    halt,
    resume,
    stop,
  };
}

const filesIn = (dir: string, root: string): DaemonFiles => ({
  root,
  state: join(dir, "state"),
  socket: join(dir, "containerd.sock"),
  config: join(dir, "config.toml"),
  log: join(dir, "containerd.log"),
});

function open(socket: string): Connection {
  const connection = openConnection({ endpoint: socket, timeoutMs: CALL_MS });
  if (!connection.ok) throw new Error(connection.error);
  return connection.value;
}

async function importInto(
  programs: Programs,
  socket: string,
  connection: Connection,
  specs: readonly ImageSpec[],
): Promise<readonly ImageArchive[]> {
  const { bytes, images } = imageArchive(...specs);
  const ctr = (args: readonly string[], input?: Buffer): Promise<void> =>
    runProgram(programs.ctr, ["--namespace", "k8s.io", "--address", socket, "images", ...args], input);
  await ctr(["import", "-"], bytes);
  for (const [i, { name, pinned }] of specs.entries()) {
    if (pinned) await ctr(["label", name, "io.cri-containerd.pinned=pinned"]);
    for (const deadline = Date.now() + CALL_MS; ; await sleep(20)) {
      const { image: listed } = await must(connection.call("ImageStatus", { image: { image: name } }));
      if (listed?.id === images[i]?.id && (listed?.pinned || !pinned)) break;
      if (Date.now() > deadline)
        throw new Error(`${name} was imported, and CRI does not tell it: ${JSON.stringify(listed)}`);
    }
  }
  return images;
}

async function runProgram(program: string, args: readonly string[], input?: Buffer): Promise<void> {
  const child = spawn(program, args, { stdio: ["pipe", "ignore", "pipe"] });
  const ended = once(child, "exit");
  child.stdin.on("error", () => undefined).end(input);
  const words = await buffer(child.stderr);
  const [code] = await ended;
  if (code !== 0) throw new Error(`${program} ${args.join(" ")}: ${words}`);
}

/** Stops and removes all sandboxes as far as possible; the caller kills and unmounts what remains. */
async function removeSandboxes(runtime: Runtime): Promise<void> {
  const listed = await runtime.list();
  const sandboxes = listed.ok ? (listed.value["sandboxes"] as readonly { readonly id: string }[]) : [];
  await Promise.all(
    sandboxes.map(async ({ id }) => {
      await runtime.stopSandbox(id);
      await runtime.removeSandbox(id);
    }),
  );
}

function removeIfEmpty(dir: string): void {
  try {
    rmdirSync(dir);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "";
    if (!["ENOENT", "ENOTEMPTY", "EBUSY"].includes(code)) throw error;
  }
}
