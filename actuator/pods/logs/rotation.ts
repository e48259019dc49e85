import { closeSync, constants, realpathSync } from "node:fs";
import { chmod, chown, link, lstat, open, rename, unlink } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { createGzip } from "node:zlib";
import type { Fields } from "../../../api/base/own.ts";
import { err, ok, type Result } from "../../../api/base/result.ts";
import { configurationPath } from "../../../api/model/kubelet-configuration.ts";
import { effectiveDocument } from "../../../api/profiles/effective.ts";
import { bytesIn, type Defaults, millisIn, type Profile } from "../../../api/profiles/profile.ts";
import type { PodRuntime, RuntimeContainer, RuntimeFault, RuntimePods } from "../../containerd/cri.ts";
import { faultText } from "../../containerd/fault.ts";
import { codeOf, goErrorText } from "../../core/error-text.ts";
import type { Problem } from "../../core/interfaces.ts";
import type { Counters } from "../../status/counters.ts";
import { isWithin, openWithin, UnsafePathError } from "../volumes/places.ts";
import { COMPRESSED, nextStamp, type RotatedLog, rotatedLogs, TEMPORARY } from "./rotated.ts";

/** The rotation of containers' logs: the fields containerLog* of a KubeletConfiguration. */
interface LogPolicy {
  /** The size in bytes from which a log is rotated; negative: never. */
  readonly maxSize: number;
  /** Files per container, including the current one. */
  readonly maxFiles: number;
  /** Logs that are rotated at the same time. */
  readonly maxWorkers: number;
  /** The interval between checks of log sizes. */
  readonly intervalMs: number;
}
/** `at 10485760 bytes, 5 files each,` */
const policyText = ({ maxSize, maxFiles }: LogPolicy): string => `at ${maxSize} bytes, ${maxFiles} files each,`;

/**
 * Reads the log settings of a KubeletConfiguration (as in a file or /configz). Error: why a kubelet would not start with it, in
 * its words. kubelet 1.36: ValidateKubeletConfiguration, NewContainerLogManager.
 */
async function logPolicyOf(configuration: unknown, profile: Profile): Promise<Result<LogPolicy, string>> {
  const isWrapped = configurationPath(configuration).length > 0;
  const given = ((isWrapped ? (configuration as Fields)["kubeletconfig"] : configuration) ?? {}) as Fields;
  const own = Object.fromEntries(
    Object.entries(given).filter(([name, set]) => name.startsWith("containerLog") && set !== null),
  );
  if (Object.keys(own).length === 0) return ok(policyIn(profile.defaults));
  // most configurations have no log settings and need no linter for them
  const { lintConfiguration } = await import("../../../api/decide/lint/lint.ts");
  const refusals = lintConfiguration(own).filter(({ severity }) => severity === "refuses-start");
  const wrong = refusals.filter(({ field }) => field in own).map(({ message }) => message);
  if (wrong.length > 0) return err(wrong.join("; "));
  return ok(policyIn(effectiveDocument(profile, own)));
}

/** The longest delay of a timer. */
const LONGEST_MS = 2 ** 31 - 1;
/** Throws on an invalid size or interval. */
function policyIn(configuration: Defaults): LogPolicy {
  return {
    maxSize: bytesIn(configuration.containerLogMaxSize),
    maxFiles: configuration.containerLogMaxFiles,
    maxWorkers: configuration.containerLogMaxWorkers,
    intervalMs: Math.min(millisIn(configuration.containerLogMonitorInterval), LONGEST_MS),
  };
}
/**
 * The changes on the disk, one step each: after a crash between any two, the next rotation continues from there.
 */
export interface LogFiles {
  rename(from: string, to: string): Promise<void>;
  /** Throws EEXIST rather than overwrite a file. */
  link(from: string, to: string): Promise<void>;
  unlink(path: string): Promise<void>;
  /** Writes `to`, which must not exist; on return it is on disk. */
  compress(from: string, to: string, signal: AbortSignal): Promise<void>;
}
interface LogToRotate {
  /** A directory path that cannot be replaced during the work: the path of an open handle. */
  readonly directory: string;
  /** `0.log` */
  readonly name: string;
  /** The maximum number of files including the current one; at least 2. */
  readonly maxFiles: number;
  /** Makes the runtime reopen the log by its name. */
  readonly reopen: () => Promise<Result<unknown, RuntimeFault>>;
}
interface RotateOptions {
  readonly files?: LogFiles;
  readonly now?: Date;
  readonly signal?: AbortSignal;
}

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_RDONLY, O_WRONLY } = constants;
const NEVER = new AbortController().signal;

/** Compresses in libuv's threads, one piece of the file after the other. */
export const systemLogFiles: LogFiles = {
  rename,
  link,
  unlink,
  compress: async (from, to, signal) => {
    const source = await open(from, O_RDONLY | O_NOFOLLOW);
    const target = await open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600).catch(async (error: unknown) => {
      await source.close();
      throw error;
    });
    // the streams close their files
    await pipeline(source.createReadStream(), createGzip(), target.createWriteStream({ flush: true }), { signal });
    const { mode, uid, gid } = await lstat(from);
    await chown(to, uid, gid);
    await chmod(to, mode & 0o7777);
  },
};

/**
 * Rotates a log in the kubelet's steps: removes what an earlier rotation left unfinished, then the oldest logs beyond `maxFiles`,
 * compresses the others, renames the log with the current time, and makes the runtime open a new one. If the runtime does not,
 * the log gets its name back. Error: why the log is unchanged; `notes`: what else went wrong. A log that cannot be
 * compressed stays as it is, and the rotation continues, since on a full disk nothing else limits the logs.
 * kubelet 1.36: rotateLog.
 */
export async function rotateLog(
  { directory, name, maxFiles, reopen }: LogToRotate,
  { files = systemLogFiles, now = new Date(), signal = NEVER }: RotateOptions = {},
): Promise<Result<{ readonly notes: readonly string[] }, string>> {
  const at = (one: string): string => join(directory, one);
  const notes: string[] = [];
  try {
    const kept = await withoutExcess(directory, name, maxFiles, files);
    for (const { name: one } of kept.filter(({ isCompressed }) => !isCompressed)) {
      const note = await compress(directory, one, files, signal);
      if (signal.aborted) return err(`rotation of ${name} was interrupted`);
      if (note === null) continue;
      notes.push(note);
      break;
    }
    const rotated = `${name}.${nextStamp(now, kept.at(-1)?.stamp)}`;
    await files.rename(at(name), at(rotated));
    const reopened = await reopen();
    if (reopened.ok) return ok({ notes });
    const why = `failed to reopen container log: ${reopened.error.code}: ${reopened.error.message}`;
    // the runtime may have opened a new log, and only its answer was lost
    return (await restoreRotated(at(rotated), at(name), files)) ? err(why) : ok({ notes: [...notes, why] });
  } catch (error) {
    return err(goErrorText(error));
  }
}

/** Removes unused files and the oldest logs, so that after the rotation there are `maxFiles`. */
async function withoutExcess(
  directory: string,
  name: string,
  maxFiles: number,
  files: LogFiles,
): Promise<readonly RotatedLog[]> {
  const { inUse, unused } = await rotatedLogs(directory, name);
  for (const one of unused) await files.unlink(join(directory, one));
  const log = await lstat(join(directory, name));
  const kept: RotatedLog[] = [];
  for (const one of inUse) {
    // this is another name of the log itself, from an interrupted `restoreRotated`
    if ((await lstat(join(directory, one.name))).ino === log.ino) await files.unlink(join(directory, one.name));
    else kept.push(one);
  }
  const excess = kept.splice(0, Math.max(0, kept.length - (maxFiles - 2)));
  for (const one of excess) await files.unlink(join(directory, one.name));
  return kept;
}

/** Compresses a log; null: done. kubelet 1.36: compressLog. */
async function compress(directory: string, name: string, files: LogFiles, signal: AbortSignal): Promise<string | null> {
  const path = join(directory, name);
  const temporary = path + TEMPORARY;
  try {
    await files.compress(path, temporary, signal);
    await files.rename(temporary, path + COMPRESSED);
    await files.unlink(path);
    return null;
  } catch (error) {
    await files.unlink(temporary).catch(() => {});
    if (signal.aborted) return "it was interrupted";
    return `failed to compress log ${name}: ${isOfZlib(error) ? error.message : goErrorText(error)}`;
  }
}

/** Errors of zlib and of streams have a code and no system call. */
const isOfZlib = (error: unknown): error is Error =>
  error instanceof Error && "code" in error && !("syscall" in error && error.syscall !== undefined);

/** Renames a rotated log back; false: a log of that name exists already, and both stay. */
async function restoreRotated(rotated: string, log: string, files: LogFiles): Promise<boolean> {
  try {
    await files.link(rotated, log);
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
  await files.unlink(rotated);
  return true;
}

/**
 * Gives the log of an ended container its name back, after an interrupted rotation had renamed it.
 * True: the log has its name again.
 */
export async function restoreLog(directory: string, name: string, files = systemLogFiles): Promise<boolean> {
  const { inUse } = await rotatedLogs(directory, name);
  const last = inUse.at(-1);
  if (last === undefined || last.isCompressed) return false;
  return restoreRotated(join(directory, last.name), join(directory, name), files);
}

export interface RotationDeps {
  readonly runtime: Pick<PodRuntime, "reopenLog">;
  /** The runtime's pods of this daemon; null: the runtime never answered. INVARIANT: no other log is changed. */
  readonly runtimePods: () => RuntimePods | null;
  /** The KubeletConfiguration in force. */
  readonly configuration: () => unknown;
  /** The kubelet version that is reimplemented. */
  readonly profile: Profile;
  readonly podLogsDirectory: string;
  readonly counters: Pick<Counters, "logRotated" | "logRotationFailed">;
  readonly onProblem: (problem: Problem) => void;
  /** Replaced by tests. */
  readonly files?: RotateOptions["files"];
}
interface Logged {
  readonly container: RuntimeContainer;
  readonly name: string;
}

/** Interval of looks until the runtime has answered once. */
const FIRST_INTERVAL_MS = 1000;
/** The number of single logs whose problems are shown. */
const MAX_PROBLEMS = 10;

/** Rotates the logs of the daemon's own containers as they grow. kubelet 1.36: containerLogManager. */
export class LogRotation {
  readonly #deps: RotationDeps;
  readonly #stop = new AbortController();
  /** Logs to check, by container id; while a log is being checked, its next check waits. */
  readonly #queue = new Map<string, Logged>();
  readonly #busy = new Map<string, Promise<void>>();
  /** Faults of logs, by container id. */
  readonly #faults = new Map<string, string>();
  /** Ended containers whose logs have their names. */
  readonly #ended = new WeakSet<RuntimeContainer>();
  #policy: LogPolicy;
  #configured = "";
  #configurationFault: string | null = null;

  constructor(deps: RotationDeps) {
    this.#deps = deps;
    this.#policy = policyIn(deps.profile.defaults);
  }

  /** Checks the logs repeatedly, until it is closed. */
  start(): void {
    void this.#run();
  }
  /** Ends running work at its next step. `rest` waits for that. */
  close(): void {
    this.#stop.abort();
    this.#queue.clear();
  }
  /** Resolves when no work is running. */
  async rest(): Promise<void> {
    while (this.#busy.size > 0) await Promise.all(this.#busy.values());
  }
  /** The reasons why logs cannot be rotated now. */
  problems(): readonly Problem[] {
    const all = [this.#configurationFault ?? [], ...this.#faults.values()].flat();
    const more = all.length - MAX_PROBLEMS;
    const shown = more > 0 ? [...all.slice(0, MAX_PROBLEMS), `${more} more logs cannot be rotated`] : all;
    return shown.map(problemOf);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await this.rotateLogs();
      const ms = this.#deps.runtimePods() === null ? FIRST_INTERVAL_MS : this.#policy.intervalMs;
      await sleep(ms, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  /** Queues every log that may be due. */
  async rotateLogs(): Promise<void> {
    await this.#readPolicy();
    const logged = [...(this.#deps.runtimePods()?.values() ?? [])].flatMap(({ namespace, name, containers }) =>
      containers.map((container) => ({ container, name: `${namespace}/${name} ${container.name}` })),
    );
    const ids = new Set(logged.map(({ container }) => container.id));
    for (const id of this.#faults.keys()) if (!ids.has(id)) this.#faults.delete(id);
    if (this.#policy.maxSize < 0) return;
    for (const one of logged) {
      const { id, state, logPath } = one.container;
      const isDue = state === "running" || (state === "exited" && !this.#ended.has(one.container));
      if (isDue && logPath !== "" && !this.#busy.has(id)) this.#queue.set(id, one);
    }
    this.#work();
  }

  #work(): void {
    for (const [id, one] of this.#queue) {
      if (this.#busy.size >= this.#policy.maxWorkers || this.#stop.signal.aborted) return;
      this.#queue.delete(id);
      const work = this.#checkLog(one)
        // a mistake in the code ends one check, not the daemon that runs the pods
        .catch((error: unknown) => `unexpected: ${(error as Error).message}`)
        .then((fault) => {
          this.#recordFault(one, fault);
          this.#busy.delete(id);
          this.#work();
        });
      this.#busy.set(id, work);
    }
  }

  /** The fault of a container's log; null: none. kubelet 1.36: processContainer. */
  async #checkLog({ container }: Logged): Promise<string | null> {
    const { state, logPath } = container;
    try {
      const found = await sizeOf(logPath);
      if (state === "exited") {
        if (found === null) await this.#inDirectory(logPath, (directory, name) => restoreLog(directory, name));
        this.#ended.add(container);
        return null;
      }
      const size = found ?? (await this.#begun(container));
      if (typeof size === "string") return size;
      return size < this.#policy.maxSize ? null : await this.#rotate(container);
    } catch (error) {
      if (error instanceof UnsafePathError) return error.message;
      // the directory is removed with its pod
      return codeOf(error) === "ENOENT" && this.#isGone(container) ? null : goErrorText(error);
    }
  }

  /** The size of a log, which is created if it is missing; a text: why there is none. */
  async #begun({ id, logPath }: RuntimeContainer): Promise<number | string> {
    const reopened = await this.#deps.runtime.reopenLog(id);
    if (!reopened.ok) return `it is not there, and was not created again: ${faultText(reopened.error)}`;
    return (await sizeOf(logPath)) ?? "it is not there, although the runtime reports that it was created again";
  }

  async #rotate(container: RuntimeContainer): Promise<string | null> {
    const { counters, runtime, files } = this.#deps;
    const rotated = await this.#inDirectory(container.logPath, (directory, name) =>
      rotateLog(
        { directory, name, maxFiles: this.#policy.maxFiles, reopen: () => runtime.reopenLog(container.id) },
        { signal: this.#stop.signal, ...(files === undefined ? {} : { files }) },
      ),
    );
    if (rotated.ok) counters.logRotated();
    else if (this.#stop.signal.aborted || this.#isGone(container)) return null;
    const faults = rotated.ok ? rotated.value.notes : [rotated.error];
    for (const _ of faults) counters.logRotationFailed();
    return faults.length === 0 ? null : faults.join("; ").replaceAll(HANDLE, dirname(container.logPath));
  }

  /** Works in the log's directory through a handle, so that no part of its path can be replaced by a link meanwhile. */
  async #inDirectory<T>(logPath: string, work: (directory: string, name: string) => Promise<T>): Promise<T> {
    const { podLogsDirectory } = this.#deps;
    const directory = dirname(logPath);
    if (!isWithin(directory, podLogsDirectory))
      throw new UnsafePathError(`${directory} is outside of ${podLogsDirectory}`);
    const fd = openWithin(realpathSync(podLogsDirectory), relative(podLogsDirectory, directory));
    try {
      return await work(`/proc/self/fd/${fd}`, basename(logPath));
    } finally {
      closeSync(fd);
    }
  }

  #isGone({ id }: RuntimeContainer): boolean {
    for (const { containers } of this.#deps.runtimePods()?.values() ?? [])
      for (const one of containers) if (one.id === id) return one.state !== "running";
    return true;
  }

  /** Reports a fault once while it stays the same. */
  #recordFault({ container: { id, logPath }, name }: Logged, fault: string | null): void {
    const message = fault === null ? undefined : `the log of ${name}, ${logPath}: ${fault}`;
    if (message === undefined) this.#faults.delete(id);
    else if (this.#faults.get(id) !== message) {
      this.#faults.set(id, message);
      this.#deps.onProblem(problemOf(message));
    }
  }

  /**
   * Reads the policy. With a configuration with which a kubelet does not start, the old policy stays, so that logs
   * never grow without limit.
   */
  async #readPolicy(): Promise<void> {
    const configuration = this.#deps.configuration();
    const configured = JSON.stringify(configuration) ?? "";
    if (configured === this.#configured) return;
    this.#configured = configured;
    const read = await logPolicyOf(configuration, this.#deps.profile);
    if (read.ok) this.#policy = read.value;
    this.#configurationFault = read.ok
      ? null
      : `${read.error}; logs are rotated ${policyText(this.#policy)} until then`;
    if (this.#configurationFault !== null) this.#deps.onProblem(problemOf(this.#configurationFault));
  }
}

const HANDLE = /\/proc\/self\/fd\/\d+/g;
const problemOf = (message: string): Problem => ({ from: "logs", message });
/** Null: the log does not exist. Throws if it is no regular file, since a container may have replaced it. */
async function sizeOf(path: string): Promise<number | null> {
  try {
    const stats = await lstat(path);
    if (!stats.isFile()) throw new UnsafePathError("it is not a regular file, and is left alone");
    return stats.size;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}
