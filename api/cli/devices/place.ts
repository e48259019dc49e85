import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { type ActuatorConfig, checkSettings } from "../../../actuator/core/config.ts";
import { claimsDirectory, takeLock } from "../../../actuator/core/lock.ts";
import { ownFolder, replaceText } from "../../../actuator/core/record-file.ts";
import { observeMachine } from "../../../actuator/machine/observe.ts";
import { claimDevices } from "../../../actuator/pods/devices/device-manager.ts";
import { ManagerFiles } from "../../../actuator/pods/devices/manager-files.ts";
import { PodRecords } from "../../../actuator/pods/records/records.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { stateHome } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";
import type { AllocateFlags } from "./container-devices.ts";

const knownPod = z.object({
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
  /** The calls that plugins require before its containers start have been made. */
  isReady: z.boolean(),
  /** The v1.Pod. */
  pod: z.record(z.string(), z.unknown()),
});
/** A pod with devices from `devices allocate`. */
export type KnownPod = z.output<typeof knownPod>;
const content = z.object({ version: z.literal(1), pods: z.array(knownPod) });

/**
 * The pods of a state directory that may have devices: those of `devices allocate`, in a separate file, and those in the daemon's
 * records. INVARIANT: a pod is stored before it gets a device.
 */
class KnownPods {
  readonly #file: string;
  readonly #byHand: Map<string, KnownPod>;
  /** The daemon's pods: uid -> the v1.Pod. */
  readonly ofDaemon: ReadonlyMap<string, Readonly<Record<string, unknown>>>;

  private constructor(file: string, pods: readonly KnownPod[], ofDaemon: KnownPods["ofDaemon"]) {
    this.#file = file;
    this.#byHand = new Map(pods.map((pod) => [pod.uid, pod]));
    this.ofDaemon = ofDaemon;
  }

  /** Errors: a file that cannot be read, since its pods' devices would be allocated to others. */
  static open(stateDir: string): Result<KnownPods, string> {
    const file = join(stateDir, "device-pods.json");
    const read = readByHand(file);
    if (!read.ok) return read;
    const ofDaemon = readRecords(join(stateDir, "pods"));
    return ofDaemon.ok ? ok(new KnownPods(file, read.value, ofDaemon.value)) : ofDaemon;
  }

  get byHand(): ReadonlyMap<string, KnownPod> {
    return this.#byHand;
  }
  /** All v1.Pods except one. */
  objectsBut(uid: string): readonly unknown[] {
    const all = [...this.ofDaemon, ...[...this.#byHand].map(([other, { pod }]) => [other, pod] as const)];
    return [...new Map(all)].filter(([other]) => other !== uid).map(([, pod]) => pod);
  }
  get uids(): ReadonlySet<string> {
    return new Set([...this.ofDaemon.keys(), ...this.#byHand.keys()]);
  }

  /** Stores a pod; on success it is on disk. */
  put(pod: KnownPod): Result<null, string> {
    return this.#write(new Map(this.#byHand).set(pod.uid, pod));
  }
  remove(uid: string): Result<null, string> {
    return this.#write(new Map([...this.#byHand].filter(([other]) => other !== uid)));
  }

  #write(pods: ReadonlyMap<string, KnownPod>): Result<null, string> {
    try {
      ownFolder(join(this.#file, ".."));
      const text = { version: 1, pods: [...pods.values()] } satisfies z.input<typeof content>;
      replaceText(this.#file, `${JSON.stringify(text)}\n`);
    } catch (error) {
      return err(`${this.#file}: ${(error as Error).message}`);
    }
    this.#byHand.clear();
    for (const [uid, pod] of pods) this.#byHand.set(uid, pod);
    return ok(null);
  }
}

function readByHand(file: string): Result<readonly KnownPod[], string> {
  try {
    const read = content.safeParse(JSON.parse(readFileSync(file, "utf8")));
    if (read.success) return ok(read.data.pods);
    const [issue] = read.error.issues;
    return err(`${file}: ${issue?.path.join(".") || "the whole"}: ${issue?.message ?? ""}: ${MEND}`);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === "ENOENT" ? ok([]) : err(`${file}: ${message}: ${MEND}`);
  }
}
const MEND =
  "devices of pods that it names would be allocated to others: repair it, or remove it if none of these pods exists any more";

/** Reads the daemon's pods that have not ended and so may hold devices. */
function readRecords(directory: string): Result<KnownPods["ofDaemon"], string> {
  if (!existsSync(directory)) return ok(new Map());
  const problems: string[] = [];
  const records = PodRecords.open(directory, (message) => problems.push(message));
  if (!records.ok) return records;
  const [problem] = problems;
  if (problem !== undefined)
    return err(`${problem}, and the devices of its pod would be allocated to others: repair or remove it`);
  const living = [...records.value.entries()].filter(([, { state }]) => state === "active" || state === "terminating");
  return ok(new Map(living.map(([uid, { pod }]) => [uid, pod])));
}

/** A state directory that is locked for this process, with the allocated devices. */
export interface DevicePaths {
  readonly config: ActuatorConfig;
  readonly bootId: string;
  readonly files: ManagerFiles;
  readonly pods: KnownPods;
  readonly release: () => void;
}

/** The actuator's settings from commander's flags. Errors: every invalid setting. */
function configOf(given: Partial<AllocateFlags>, env: Cli["env"]): Result<ActuatorConfig, Fault> {
  const { cgroupRoot, nodeName, api, apiTokenFile, kubeletConfig } = given;
  const settings = {
    stateDir: given.stateDir ?? join(stateHome(env), "actuator"),
    cgroupRoot,
    nodeName,
    api,
    apiTokenFile,
    kubeletConfiguration: kubeletConfig,
    devicePluginsDirectory: given.devicePluginsDirectory,
    pluginsRegistryDirectory: given.pluginsRegistryDirectory,
  };
  const config = checkSettings(Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined)));
  if (config.ok) return config;
  const texts = config.error.map(({ setting, message }) => `${FLAG_OF[setting] ?? setting}: ${message}`);
  return fault(EXIT.badInput, texts.join("; "));
}
const FLAG_OF: Readonly<Record<string, string>> = {
  stateDir: "--state-dir",
  cgroupRoot: "--cgroup-root",
  nodeName: "--node-name",
  api: "--api",
  apiTokenFile: "--api-token-file",
  kubeletConfiguration: "--kubelet-config",
  devicePluginsDirectory: "--device-plugins-directory",
  pluginsRegistryDirectory: "--plugins-registry-directory",
};

/**
 * Takes the lock of a daemon that runs pods, so that only one of the two allocates devices. Errors: such a daemon or another
 * command is running; the stored pods cannot be read.
 */
export async function openPlace(given: Partial<AllocateFlags>, env: Cli["env"]): Promise<Result<DevicePaths, Fault>> {
  const config = configOf(given, env);
  if (!config.ok) return config;
  const { stateDir, cgroupRoot } = config.value;
  try {
    ownFolder(stateDir);
  } catch (error) {
    const why = `state directory ${stateDir}: ${(error as Error).message}`;
    return fault(EXIT.cannotRun, `${why}: name another with --state-dir`);
  }
  const bootId = observeMachine().system.bootID ?? "";
  const ofRoot = await takeLock(claimsDirectory(), cgroupRoot, bootId);
  if (!ofRoot.ok) return fault(EXIT.cannotRun, `${ofRoot.error}, ${BUSY}`);
  const ofState = await claimDevices(stateDir, bootId);
  const release = (): void => {
    ofRoot.value.release();
    if (ofState.ok) ofState.value.release();
  };
  const pods = ofState.ok ? KnownPods.open(stateDir) : ofState;
  if (pods.ok) {
    return ok({
      config: config.value,
      bootId,
      files: new ManagerFiles(join(stateDir, "managers")),
      pods: pods.value,
      release,
    });
  }
  release();
  return fault(EXIT.cannotRun, ofState.ok ? pods.error : `state directory ${stateDir}: ${pods.error}`);
}
const BUSY =
  "or let that daemon run the pod (its manifests or podsUrl): it allocates devices itself; for another place use --cgroup-root and --state-dir";
