import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { ownDirectory, removeCgroups, unmountBelow } from "../containerd/leftovers.ts";
import { kubernetes, noGoPrograms, pathOf } from "../go-programs.ts";
import { LoggedProcess } from "../logged-process.ts";
import { freePort } from "../pods/port.ts";

const CGROUPS = "/sys/fs/cgroup";
/**
 * Whatever --root-dir says, device plugins register below /var/lib/kubelet, and a kubelet changes kernel settings. A
 * mount namespace keeps both from the machine.
 */
const APART = `mount -t tmpfs tmpfs /var/lib || exit 1
for name in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes
do copy=/var/lib/$(basename $name)
cat /proc/sys/$name >$copy && mount --bind $copy /proc/sys/$name || exit 1
done
exec "$@"`;

/** Why no real kubelet can be started here, printed once; undefined: it can. */
export const noKubelet = (what: string): string | undefined => noGoPrograms(what, kubernetes("kubelet"));

export interface KubeletOptions {
  readonly runtimeEndpoint: string;
  /** The version of the kubelet; default: the version that most tests use. */
  readonly version?: string;
  readonly nodeName?: string;
  /** Fields of the KubeletConfiguration. */
  readonly configuration?: object;
  /** Additional arguments. */
  readonly args?: readonly string[];
}

/**
 * A real kubelet with its own cgroup, directory and ports. It runs the pods in `manifests`; it has no API server unless
 * `args` names one.
 */
export class Kubelet {
  readonly dir = ownDirectory("kubelet");
  readonly manifests = join(this.dir, "manifests");
  readonly cgroupRoot = `/${basename(this.dir)}`;
  #process: LoggedProcess | undefined;

  private constructor() {}

  /** Resolves when the kubelet answers requests. */
  static async start(options: KubeletOptions): Promise<Kubelet> {
    const kubelet = new Kubelet();
    try {
      await kubelet.#open(options);
    } catch (error) {
      await kubelet.stop();
      throw error;
    }
    return kubelet;
  }

  async #open(options: KubeletOptions): Promise<void> {
    const { runtimeEndpoint, version, nodeName = "beside", configuration, args = [] } = options;
    for (const name of ["manifests", "root", "logs"]) mkdirSync(join(this.dir, name));
    // in every hierarchy, including hierarchies without a controller
    for (const hierarchy of readdirSync(CGROUPS))
      mkdirSync(join(CGROUPS, hierarchy, this.cgroupRoot), { recursive: true });
    const [port, healthzPort] = [await freePort(), await freePort()];
    const config = {
      apiVersion: "kubelet.config.k8s.io/v1beta1",
      kind: "KubeletConfiguration",
      containerRuntimeEndpoint: runtimeEndpoint,
      staticPodPath: this.manifests,
      fileCheckFrequency: "1s",
      cgroupRoot: this.cgroupRoot,
      cgroupDriver: "cgroupfs",
      failCgroupV1: false,
      failSwapOn: false,
      address: "127.0.0.1",
      port,
      healthzPort,
      authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
      authorization: { mode: "AlwaysAllow" },
      podLogsDir: join(this.dir, "logs"),
      makeIPTablesUtilChains: false,
      // the test machine may be short of any resource
      evictionHard: { "memory.available": "1Mi" },
      imageGCHighThresholdPercent: 100,
      ...configuration,
    };
    writeFileSync(join(this.dir, "config.json"), JSON.stringify(config));
    const own = [`--config=${join(this.dir, "config.json")}`, `--root-dir=${join(this.dir, "root")}`];
    const more = [`--cert-dir=${join(this.dir, "pki")}`, `--hostname-override=${nodeName}`, "-v=2", ...args];
    const command = ["--mount", "sh", "-c", APART, "sh", pathOf(kubernetes("kubelet", version)), ...own, ...more];
    this.#process = new LoggedProcess("unshare", command, join(this.dir, "kubelet.log"));
    await this.#process.ready("the kubelet", async () => (await fetch(`http://127.0.0.1:${healthzPort}/healthz`)).ok);
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }
  log(): string {
    return this.#process?.log() ?? "";
  }
  put(file: string, pod: object): void {
    writeFileSync(join(this.manifests, `${file}.json`), JSON.stringify(pod));
  }

  /** Stops only the kubelet; its pods keep running. */
  async end(): Promise<void> {
    await this.#process?.end("SIGKILL");
  }
  /** Stops the kubelet and removes all its files, mounts and cgroups; its pods must have ended. */
  async stop(): Promise<void> {
    await this.end();
    unmountBelow(this.dir);
    removeCgroups(this.cgroupRoot.slice(1));
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 5 });
  }
}
