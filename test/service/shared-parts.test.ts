import { expect, test } from "vitest";
import { decodeShared } from "../../api/service/node-turn/shared-parts.ts";
import { realSnapshot } from "../kit/real-node.ts";

const shared = (posted: unknown) => {
  const decoded = decodeShared(posted, "snapshot");
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
  return decoded.value;
};
test("equal parts of two nodes' pods are shared objects, and parts of a single pod are not", () => {
  const [a, b] = [shared(realSnapshot()), shared(realSnapshot())];
  expect(a).toEqual(b);
  expect(a.kubeletConfiguration).toBe(b.kubeletConfiguration);
  const met = { resources: 0, tolerations: 0 };
  for (const [i, pod] of (a.pods ?? []).entries()) {
    const other = b.pods?.[i];
    expect(pod).not.toBe(other);
    expect(pod.status?.conditions).not.toBe(other?.status?.conditions);
    expect(pod.spec.containers).toBe(other?.spec.containers);
    if (pod.spec.tolerations !== undefined) met.tolerations++;
    expect(pod.spec.tolerations).toBe(other?.spec.tolerations);
    for (const [j, container] of pod.spec.containers.entries()) {
      if (container.resources !== undefined) met.resources++;
      expect(container.resources).toBe(other?.spec.containers[j]?.resources);
    }
  }
  expect(Math.min(met.resources, met.tolerations)).toBeGreaterThan(3);
});

test("parts with the same text but different types are not shared", () => {
  const text = { cpu: "1" };
  const posted = {
    metadata: { name: "p", uid: "u" },
    spec: { containers: [{ name: "c" }], nodeSelector: text },
    status: { containerStatuses: [{ name: "c", allocatedResources: text }] },
  };
  const [pod] = shared({ pods: [posted] }).pods ?? [];
  expect(pod?.spec.nodeSelector).toEqual(text);
  expect(pod?.status?.containerStatuses?.[0]?.allocatedResources?.["cpu"]?.format).toBe("DecimalSI");
  expect(JSON.parse(JSON.stringify(pod))).toMatchObject(posted);
});
