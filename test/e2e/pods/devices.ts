import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { healthy, NodePlugin, type PluginScript } from "../../actuator/deviceplugin/node-plugin.ts";
import { podOf, type TestPod } from "./manifest.ts";
import type { PodNode } from "./node.ts";

export const GPU = "example.com/gpu";
export const NIC = "example.org/nic";

/** A vendor's plugin that answers with environment variables, a mount of a file, a device node and an annotation. */
export const bringing =
  (from: string) =>
  (request: Record<string, unknown>): object => {
    const [{ devicesIds = [] } = {}] = request["containerRequests"] as readonly { devicesIds?: readonly string[] }[];
    const ids = devicesIds.toSorted();
    return {
      containerResponses: [
        {
          envs: { VISIBLE_DEVICES: ids.join(",") },
          mounts: [{ containerPath: "/vendor", hostPath: from, readOnly: true }],
          devices: ids.map((id) => ({ containerPath: `/dev/gpu-${id}`, hostPath: "/dev/null", permissions: "rw" })),
          annotations: { "example.com/devices": ids.join(",") },
        },
      ],
    };
  };

/** A plugin beside the node's kubelet.sock, which registers again whenever the socket is created again. */
export function pluginOn(node: PodNode, ids: readonly string[], script: Partial<PluginScript> = {}): NodePlugin {
  const dir = join(node.dir, "dp");
  const vendor = join(node.dir, "vendor");
  for (const one of [dir, vendor]) mkdirSync(one, { recursive: true });
  return new NodePlugin({
    dir,
    resource: GPU,
    devices: healthy(...ids),
    answers: { Allocate: bringing(vendor) },
    ...script,
  });
}

/** A pod with one container that requests this many devices of a resource. */
export const deviceOf = (name: string, count: number, resource = GPU, more: TestPod = {}): object =>
  podOf(name, { ...more, containers: [{ limits: { [resource]: count } }] });
