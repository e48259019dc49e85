import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { PodRow } from "../../../actuator/status/node-status.ts";
import { IMAGE, NODE_NAME } from "../pods/manifest.ts";
import { GuestStatus } from "./guest-status.ts";

export const UNIT = "nodewise-actuator";
export const CGROUPS = "/sys/fs/cgroup";
const ETC = "/etc/nodewise";
const SETTINGS = join(ETC, "actuator.yaml");
const runFile = promisify(execFile);
/** Only the daemon may change these files in its pods' cgroups. */
const VALUES = [
  "cgroup.subtree_control",
  "cgroup.procs",
  "cpuset.cpus",
  "cpu.max",
  "cpu.weight",
  "memory.max",
  "pids.max",
];
/** A file's text; undefined: it is not there. */
export function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * A machine on which systemd starts containerd and the daemon; the daemon's settings are where the unit expects them.
 */
export class SystemdMachine extends GuestStatus {
  constructor() {
    // the daemon's default address
    super("127.0.0.1:10260");
    mkdirSync(join(ETC, "manifests"), { recursive: true });
  }

  /** Runs systemctl and returns its output; throws with its messages if it fails. */
  systemctl(...args: readonly string[]): string {
    return execFileSync("systemctl", [...args], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim();
  }
  property(name: string, unit = UNIT): string {
    return this.systemctl("show", "--value", "--property", name, unit);
  }
  pid(): string {
    return this.property("MainPID");
  }
  /** The journal of a unit; without `unit`, only systemd's own warnings and errors. */
  journal(unit?: string): string {
    const which = unit === undefined ? ["_PID=1", "--priority", "warning"] : ["--unit", unit];
    return execFileSync("journalctl", ["--no-pager", "--output", "cat", ...which], { encoding: "utf8" });
  }
  /**
   * Returns ctr's output about the pods' images and containers. `socket`: the socket of another containerd than the
   * machine's.
   */
  async ctr(args: readonly string[], socket?: string): Promise<string> {
    const address = socket === undefined ? [] : ["--address", socket];
    return (await runFile("ctr", [...address, "--namespace", "k8s.io", ...args])).stdout;
  }
  async importImage(socket?: string): Promise<void> {
    await this.ctr(["images", "import", "/job/image.tar"], socket);
    await this.wait("the image", async () => {
      const images = await this.ctr(["images", "list", "--quiet"], socket);
      return images.includes(IMAGE) ? true : undefined;
    });
  }

  configure(more: object = {}): void {
    const kubelet = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
    const kubeletFile = join(ETC, "kubelet.yaml");
    writeFileSync(kubeletFile, JSON.stringify({ ...kubelet, evictionHard: { "memory.available": "1Mi" } }));
    const settings = {
      mode: "enforce",
      pods: "enforce",
      nodeName: NODE_NAME,
      manifests: join(ETC, "manifests"),
      kubeletConfiguration: kubeletFile,
      syncSeconds: 2,
      ...more,
    };
    writeFileSync(SETTINGS, JSON.stringify(settings));
  }
  put(name: string, pod: object): void {
    writeFileSync(join(ETC, "manifests", `${name}.json`), JSON.stringify(pod));
  }
  remove(name: string): void {
    rmSync(join(ETC, "manifests", `${name}.json`));
  }

  /** A container's output, without the runtime's prefix of each line. */
  log({ namespace, name, uid }: PodRow, container: string): readonly string[] {
    const text = textOf(join("/var/log/pods", `${namespace}_${name}_${uid}`, container, "0.log")) ?? "";
    return text.split("\n").map((line) => line.split(" ").slice(3).join(" "));
  }
  /** Every value of every cgroup of the daemon's pods, and the processes in it. */
  tree(): Readonly<Record<string, string | undefined>> {
    const root = join(CGROUPS, "nodewise");
    const inside = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isDirectory());
    const paths = [root, ...inside.map((entry) => join(entry.parentPath, entry.name))].sort();
    return Object.fromEntries(
      paths.flatMap((path) => VALUES.map((file) => [join(path, file), textOf(join(path, file))])),
    );
  }
}
