import type { RuntimeFault } from "../../actuator/containerd/cri.ts";
import type { Draws } from "../actuator/cgroups/draws.ts";
import type { SimApi } from "./api.ts";
import { type Call, type FakeContainer, faultOf } from "./fake-runtime.ts";
import { Died, type GcNode } from "./gc-node.ts";

/** A node, and everything that an event between or within its collector's turns may change. */
export interface Story {
  readonly node: GcNode;
  readonly api: SimApi;
  readonly d: Draws;
  nowMs: number;
  ids: number;
}

export const EVENTS: Readonly<Record<string, (story: Story) => void>> = {
  "images are pulled": (s) => {
    for (let i = s.d.below(6); i >= 0; i--) pull(s, `sha256:i${++s.ids}`);
  },
  "an image that was collected is pulled again": (s) => {
    const gone = [...new Set(s.node.runtime.performed.flatMap(({ what, id }) => (what === "image" ? [id] : [])))];
    if (gone.length > 0) pull(s, s.d.pick(gone));
  },
  "a pod starts": start,
  "a container exits": (s) => {
    const running = containers(s, "CONTAINER_RUNNING");
    if (running.length === 0) return;
    const old = s.d.pick(running);
    old.state = s.d.chance(5) ? "CONTAINER_UNKNOWN" : "CONTAINER_EXITED";
    if (s.d.chance(3)) return;
    const id = `c${++s.ids}`;
    s.node.runtime.containers.set(id, {
      ...old,
      id,
      attempt: old.attempt + 1,
      state: "CONTAINER_RUNNING",
      createdAtMs: s.nowMs,
    });
  },
  "a pod goes": (s) => {
    if (s.node.pods.length === 0) return;
    const pod = s.d.pick(s.node.pods);
    s.node.pods = s.node.pods.filter((one) => one !== pod);
    for (const sandbox of s.node.runtime.sandboxes.values()) {
      if (sandbox.pod.uid !== pod.metadata.uid) continue;
      sandbox.state = "SANDBOX_NOTREADY";
      for (const one of s.node.runtime.containers.values())
        if (one.sandbox === sandbox.id) one.state = "CONTAINER_EXITED";
    }
    s.node.links.add(`${pod.metadata.name}_ns_c-${++s.ids}.log`);
  },
  "an image is pinned": (s) => {
    const images = [...s.node.runtime.images.values()];
    if (images.length > 0) s.d.pick(images).pinned = true;
  },
  "the disk fills": (s) => {
    s.node.runtime.otherBytes = s.d.below(700);
  },
  "the API goes or comes": ({ api }) => {
    api.reachable = !api.reachable;
  },
  "pods can or cannot be listed": ({ node }) => {
    node.podsReadable = !node.podsReadable;
  },
  "the configuration changes": ({ node, d }) => {
    const high = d.pick([60, 85, 100]);
    node.kubeletConfiguration = {
      imageGCHighThresholdPercent: high,
      imageGCLowThresholdPercent: high - 10,
      imageMaximumGCAge: d.pick(["0s", "30m"]),
      evictionHard: { "imagefs.available": d.pick(["2%", "30%"]) },
    };
  },
  "a call fails": ({ node, d }) => {
    const call = d.pick(["List", "ImageStatus", "ListContainers", "RemoveImage", "RemoveContainer", "StopPodSandbox"]);
    const phase = call.startsWith("Remove") && d.chance(2) ? "after" : "before";
    once(
      node,
      d.below(3),
      (one) => one.call === call && one.phase === phase,
      () => faultOf(call, "UNAVAILABLE"),
    );
  },
  "a removal fails": ({ node, d }) => {
    const phase = d.chance(3) ? "after" : "before";
    once(
      node,
      d.below(2),
      (one) => one.call.startsWith("Remove") && one.phase === phase,
      ({ call }) => faultOf(call),
    );
  },
  "an image comes into use while it is looked at": (s) => {
    once(s.node, s.d.below(3), isBefore("ImageStatus"), ({ id }) => start(s, id));
  },
  "an image is pinned while it is looked at": ({ node, d }) => {
    once(node, d.below(3), isBefore("ImageStatus"), ({ id }) => {
      const image = node.runtime.images.get(id);
      if (image !== undefined) image.pinned = true;
      return undefined;
    });
  },
  "an image vanishes": ({ node, d }) => {
    once(node, d.below(3), isBefore("ImageStatus"), ({ id }) => {
      node.runtime.images.delete(id);
      return undefined;
    });
  },
  "a container starts while it is looked at": ({ node, d }) => {
    once(node, d.below(2), isBefore("ContainerStatus"), ({ id }) => {
      const one = node.runtime.containers.get(id);
      if (one !== undefined) one.state = "CONTAINER_RUNNING";
      return undefined;
    });
  },
  "the daemon dies at a call": ({ node, d }) => {
    once(
      node,
      d.below(25),
      () => true,
      (call) => {
        throw new Died(JSON.stringify(call));
      },
    );
  },
  "the daemon dies at a removal": ({ node, d }) => {
    const phase = d.pick(["before", "after"] as const);
    once(
      node,
      d.below(2),
      (one) => one.call.startsWith("Remove") && one.phase === phase,
      (call) => {
        throw new Died(JSON.stringify(call));
      },
    );
  },
  "the daemon dies at a question": ({ node, d }) => {
    node.diesAtQuestion = d.below(8);
  },
  "the daemon is restarted": ({ node }) => node.restart(),
};

/** Fills a node as if it had worked for a while: some images and a few pods. */
export function fillUp(s: Story): void {
  for (let i = 0; i < 8; i++) pull(s, `sha256:i${++s.ids}`);
  for (let i = 0; i < 3; i++) start(s);
}

const isBefore =
  (call: string) =>
  (one: Call): boolean =>
    one.call === call && one.phase === "before";

/** Lets `act` happen at one matching call, after `skip` others, and never again. */
function once(
  { runtime }: GcNode,
  skip: number,
  is: (call: Call) => boolean,
  act: (call: Call) => RuntimeFault | undefined,
): void {
  let left = skip;
  runtime.on = (call) => {
    if (!is(call) || left-- > 0) return undefined;
    runtime.on = () => undefined;
    return act(call);
  };
}

const containers = ({ node }: Story, state: FakeContainer["state"]): readonly FakeContainer[] =>
  [...node.runtime.containers.values()].filter((one) => one.state === state);

function pull({ node, d }: Story, id: string): void {
  const bytes = 20 + 10 * d.below(10);
  if (!node.runtime.images.has(id)) node.runtime.images.set(id, { id, tags: [`${id}:v1`], bytes, pinned: false });
}

/** Starts a pod in a new sandbox, with the given image or a random one. */
function start(s: Story, given?: string): undefined {
  const { node, d, nowMs } = s;
  const images = [...node.runtime.images.keys()];
  if (images.length === 0) return undefined;
  const image = given ?? d.pick(images);
  const uid = `u${++s.ids}`;
  const pod = { namespace: "ns", name: `pod-${uid}`, uid };
  node.pods = [...node.pods, { metadata: pod, spec: { containers: [{ name: "c", image: `${image}:v1` }] } }];
  node.podLogs.add(`ns_${pod.name}_${uid}`);
  const sandbox = `s${++s.ids}`;
  node.runtime.sandboxes.set(sandbox, { id: sandbox, pod, attempt: 0, state: "SANDBOX_READY", createdAtMs: nowMs });
  const id = `c${++s.ids}`;
  const one = { id, sandbox, name: "c", attempt: 0, image, state: "CONTAINER_RUNNING", createdAtMs: nowMs } as const;
  node.runtime.containers.set(id, { ...one });
  return undefined;
}
