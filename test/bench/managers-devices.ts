import { inventoriesOf } from "../../api/decide/devices/inventory.ts";
import { deviceManager } from "../../api/decide/devices/manager.ts";
import { numaNodes } from "../../api/decide/topology/hint.ts";
import type { Container } from "../../api/model/pod.ts";
import { epochMs } from "../../api/model/units.ts";
import { container } from "../kit/containers.ts";
import { decodedPod, namedPod } from "../kit/pods.ts";
import { BEHAVIOUR } from "../kit/profiles.ts";

const DEVICES = 4096;
const NODES = 8;
const RESOURCE = "example.com/gpu";
const resources = [
  {
    resource: RESOURCE,
    devices: Array.from({ length: DEVICES }, (_, i) => ({
      // in no order, as device plugins list them
      id: `dev-${(i * 2731) % DEVICES}`,
      health: "Healthy",
      numaNodes: [i % NODES],
    })),
  },
];
const pod = decodedPod(namedPod("p", [container("c", undefined, { [RESOURCE]: "8" })]));
const asking = pod.spec.containers[0] as Container;
/** Every second device is allocated to a different pod. */
const entries = Array.from({ length: DEVICES / 2 }, (_, i) => ({
  podUid: `pod-${i}`,
  containerName: "c",
  resourceName: RESOURCE,
  deviceIds: new Map([[0, [`dev-${2 * i}`]]]),
  // the recorded response of a real plugin, with a device node
  allocResp: "GhsKCS9kZXYvZnVzZRIJL2Rldi9mdXNlGgNtcnc=",
}));
const activePods = new Set(entries.map((e) => e.podUid));

/**
 * One run makes a whole decision: the known devices, their current allocations, the topology hints for a container that
 * requests 8 devices, and the allocated devices.
 */
export const DEVICES_CASE = {
  name: "devices, 8 of 4096 on 8 nodes, half taken",
  run: (): void => {
    const now = epochMs(0);
    const manager = deviceManager({
      inventories: inventoriesOf({ resources, checkpointed: [], now, kubeletStartedAt: undefined }),
      checkpoint: { entries, registered: null },
      nodes: numaNodes(Array.from({ length: NODES }, (_, i) => i)),
      sourcesReady: true,
      activePods,
      runningAtStart: () => false,
      prefer: () => undefined,
      behaviour: BEHAVIOUR,
    });
    const hint = manager
      .containerHints(pod, asking)
      .get(RESOURCE)
      ?.find((h) => h.preferred);
    if (hint === undefined || !manager.allocate(pod, asking, hint).ok) throw new Error("8 devices were not given");
  },
};
