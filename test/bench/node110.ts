import { realSnapshot } from "../kit/real-node.ts";

const POD_COPIES = 10;

interface Captured {
  readonly pods: { readonly items: readonly CapturedPod[] };
}
interface CapturedPod {
  readonly metadata: { readonly name: string; readonly uid: string; readonly annotations?: Record<string, string> };
}

/** The captured node with ten copies of each of its 11 pods: 463 KB. */
export function node110(): object {
  const node = realSnapshot() as unknown as Captured;
  const copyOf = ({ metadata, ...pod }: CapturedPod, copy: number): CapturedPod => {
    const ofCopy = (uid: string): string => `${uid.slice(0, -2)}${copy.toString(16).padStart(2, "0")}`;
    // two annotations contain the uid that the kubelet gives to a static pod
    const annotations = Object.entries(metadata.annotations ?? {}).map(([name, value]) => [
      name,
      /^kubernetes\.io\/config\.(?:hash|mirror)$/.test(name) ? ofCopy(value) : value,
    ]);
    const { name, uid } = metadata;
    const own = { name: `${name}-${copy}`, uid: ofCopy(uid), annotations: Object.fromEntries(annotations) };
    return { ...pod, metadata: { ...metadata, ...own } };
  };
  const items = Array.from({ length: POD_COPIES }, (_, copy) => node.pods.items.map((pod) => copyOf(pod, copy)));
  return { ...node, pods: { ...node.pods, items: items.flat() } };
}
