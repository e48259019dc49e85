import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  accessSync,
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { removeCgroups, unmountBelow } from "../containerd/leftovers.ts";
import { freePort } from "../pods/port.ts";
import { until } from "../pods/until.ts";

/** Where `.ci/kubelet` puts it. */
const cache =
  process.env["NODEWISE_CACHE"] ?? join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "nodewise");
export const KUBELET = join(cache, "kubelet-1.36.3/kubelet");

const CGROUPS = "/sys/fs/cgroup";
/**
 * Whatever --root-dir says, device plugins register below /var/lib/kubelet, and the kernel is set up as a kubelet wants it: neither
 * is done to the machine.
 */
const APART = `mount -t tmpfs tmpfs /var/lib || exit 1
for name in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes
do copy=/var/lib/$(basename $name)
cat /proc/sys/$name >$copy && mount --bind $copy /proc/sys/$name || exit 1
done
exec "$@"`;

/** Why no real kubelet can be started here, said once; undefined: one can. CI may go without: building one takes long. */
export function noKubelet(what: string): string | undefined {
  try {
    accessSync(KUBELET, constants.X_OK);
    return undefined;
  } catch {
    console.warn(`skipped ${what} end to end: there is no ${KUBELET}: build it once with .ci/kubelet`);
    return "no kubelet";
  }
}

export interface KubeletOptions {
  readonly runtimeEndpoint: string;
  /** Fields of the KubeletConfiguration. */
  readonly configuration?: object;
}

/** A real kubelet without an API server, on a cgroup, a directory and ports of its own; it runs what lies in `manifests`. */
export class Kubelet {
  readonly dir = mkdtempSync(join(tmpdir(), "nodewise-kubelet-"));
  readonly manifests = join(this.dir, "manifests");
  readonly cgroupRoot = `/nodewise-kubelet-${process.pid}-${this.dir.slice(-6)}`;
  #child: ChildProcess | undefined;

  private constructor() {}

  /** Resolves when it answers. */
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

  async #open({ runtimeEndpoint, configuration }: KubeletOptions): Promise<void> {
    for (const name of ["manifests", "root", "logs"]) mkdirSync(join(this.dir, name));
    // in every hierarchy, those without a controller too
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
      // the test's machine may be short of anything
      evictionHard: { "memory.available": "1Mi" },
      imageGCHighThresholdPercent: 100,
      ...configuration,
    };
    writeFileSync(join(this.dir, "config.json"), JSON.stringify(config));
    const log = openSync(join(this.dir, "kubelet.log"), "a");
    const apart = ["--mount", "sh", "-c", APART, "sh"];
    const own = [`--config=${join(this.dir, "config.json")}`, `--root-dir=${join(this.dir, "root")}`];
    const more = [`--cert-dir=${join(this.dir, "pki")}`, "--hostname-override=beside", "-v=2"];
    this.#child = spawn("unshare", [...apart, KUBELET, ...own, ...more], { stdio: ["ignore", log, log] });
    closeSync(log);
    const answers = (): Promise<true | undefined> =>
      fetch(`http://127.0.0.1:${healthzPort}/healthz`).then(
        ({ ok }) => ok || undefined,
        () => undefined,
      );
    const look = async (): Promise<true | undefined> => {
      if (this.#child?.exitCode !== null) throw new Error(`the kubelet has ended:\n${this.log().slice(-3000)}`);
      return answers();
    };
    await until("the kubelet's answer", look, () => this.log().slice(-3000));
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }
  log(): string {
    return readFileSync(join(this.dir, "kubelet.log"), "utf8");
  }
  put(file: string, pod: object): void {
    writeFileSync(join(this.manifests, `${file}.json`), JSON.stringify(pod));
  }

  /** The kubelet alone: what it runs goes on. */
  async end(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }
  /** With every trace; what it runs must have ended. */
  async stop(): Promise<void> {
    await this.end();
    unmountBelow(this.dir);
    removeCgroups(this.cgroupRoot.slice(1));
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 5 });
  }
}
