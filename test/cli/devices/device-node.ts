import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { readCheckpoint } from "../../../api/decide/devices/checkpoint-read.ts";
import { NodePlugin, type PluginScript } from "../../actuator/deviceplugin/node-plugin.ts";
import { podManifest } from "../../kit/manifests.ts";
import { scratchFolder } from "../../kit/scratch.ts";
import { type Ran, run } from "../run.ts";

export const GPU = "vendor.com/gpu";

/**
 * A node without a daemon and a container runtime: its own directories, and plugins that register when kubelet.sock
 * appears.
 */
export function deviceNode() {
  const dir = scratchFolder();
  const at = (name: string): string => join(dir, name);
  for (const name of ["dp", "pr", "state"]) mkdirSync(at(name));
  const place = ["--state-dir", at("state"), "--cgroup-root", `/nodewise-test-${randomUUID()}`];
  const plugins = ["--device-plugins-directory", at("dp"), "--plugins-registry-directory", at("pr")];
  const checkpoint = () => {
    const file = at("state/managers/device-plugins/kubelet_internal_checkpoint");
    const read = readCheckpoint(readFileSync(file, "utf8"));
    if (!read.ok) throw new Error(read.error.message);
    return read.value;
  };
  return {
    at,
    place,
    plugins,
    /** Registers at each kubelet.sock that is created. */
    plugin: (script: Partial<PluginScript> = {}): NodePlugin => {
      const plugin = new NodePlugin({ dir: at("dp"), resource: GPU, ...script });
      const stop = plugin.comeBack("kubelet.sock");
      onTestFinished(async () => {
        stop();
        await plugin.vanish();
      });
      return plugin;
    },
    pod: (name: string, containers: readonly object[], more: object = {}): string => {
      const metadata = { namespace: "ml", uid: `uid-${name}` };
      writeFileSync(at(`${name}.json`), JSON.stringify(podManifest(name, { metadata, spec: { containers, ...more } })));
      return at(`${name}.json`);
    },
    allocate: (pod: string, ...more: readonly string[]): Promise<Ran> =>
      run(["devices", "allocate", "--pod", pod, "--wait", "30", ...place, ...plugins, ...more]),
    free: (pod: string, ...more: readonly string[]): Promise<Ran> => run(["devices", "free", pod, ...place, ...more]),
    history: (...more: readonly string[]): Promise<Ran> =>
      run(["devices", "history", "--state-dir", at("state"), ...more]),
    checkpoint,
    /** `uid container: id id`, sorted. */
    held: (): readonly string[] =>
      (checkpoint().entries ?? [])
        .map(({ podUid, containerName, deviceIds }) => {
          const ids = [...(deviceIds?.values() ?? [])].flatMap((list) => list ?? []).sort();
          return `${podUid} ${containerName}: ${ids.join(" ")}`;
        })
        .sort(),
  };
}

export const wants = (name: string, count: number, resource = GPU): object => ({
  name,
  image: "app:1",
  resources: { limits: { [resource]: count } },
});
