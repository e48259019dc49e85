import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RAM_DISK } from "../../kit/ram-disk.ts";
import { NODE_NAME } from "./manifest.ts";

let made = 0;

/** The files that a test writes for its daemon: settings, the kubelet's configuration, and manifests. */
export class NodeFiles {
  readonly dir = mkdtempSync(join(RAM_DISK, "nodewise-pods-"));
  readonly manifests = join(this.dir, "manifests");
  readonly cgroupRoot = `/nodewise-pods-${process.pid}-${++made}`;

  constructor() {
    mkdirSync(this.manifests);
  }
  removeFiles(): void {
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 5 });
  }

  configure(configuration: object): void {
    const head = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
    // the test machine may be short of any resource
    const ours = { failCgroupV1: false, evictionHard: { "memory.available": "1Mi" } };
    this.#replace(join(this.dir, "kubelet.json"), JSON.stringify({ ...head, ...ours, ...configuration }));
  }

  /** Writes settings in which all paths belong to the test; returns the file. */
  protected writeSettings(settings: Readonly<Record<string, unknown>>): string {
    const file = join(this.dir, "settings.json");
    const own = {
      mode: "enforce",
      pods: "enforce",
      nodeName: NODE_NAME,
      cgroupRoot: this.cgroupRoot,
      stateDir: join(this.dir, "state"),
      podsDirectory: join(this.dir, "pods"),
      podLogsDirectory: join(this.dir, "logs"),
      containerLogsDirectory: join(this.dir, "links"),
      devicePluginsDirectory: join(this.dir, "dp"),
      pluginsRegistryDirectory: join(this.dir, "registry"),
      podResourcesDirectory: join(this.dir, "pr"),
      kubeletConfiguration: join(this.dir, "kubelet.json"),
      syncSeconds: 0.5,
    };
    this.#replace(file, JSON.stringify({ ...own, ...settings }));
    return file;
  }

  /** Writes a manifest, which is replaced atomically. */
  put(file: string, pod: object | string): void {
    this.#replace(join(this.manifests, `${file}.yaml`), typeof pod === "string" ? pod : JSON.stringify(pod));
  }
  remove(...files: readonly string[]): void {
    for (const file of files) rmSync(join(this.manifests, `${file}.yaml`));
  }
  #replace(path: string, text: string): void {
    const fresh = join(this.dir, ".fresh");
    writeFileSync(fresh, text);
    renameSync(fresh, path);
  }
}
