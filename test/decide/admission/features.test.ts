import { describe, expect, it } from "vitest";
import type { Json } from "../../kit/snapshots.ts";
import { admitted, boundPod, readyNode } from "./asking.ts";

const shown = (snapshot: Json, pod: Json): string => {
  const { reason, message } = admitted(snapshot, pod).decision;
  return `${reason}: ${message}`;
};

describe("AppArmor", () => {
  const on = readyNode({ kubelet: { appArmor: true } });
  const off = readyNode({ kubelet: { appArmor: false } });
  const profile = (appArmorProfile: Json, more: Json = {}): Json =>
    boundPod("p", {}, { securityContext: { appArmorProfile } }, more);
  it("must be there for a pod that asks for it and has not started", () => {
    const confined = { type: "RuntimeDefault" };
    expect(shown(off, profile(confined))).toBe(
      "AppArmor: Cannot enforce AppArmor: AppArmor is not enabled on the host",
    );
    expect(admitted(off, profile({ type: "Unconfined" })).decision.admit).toBe(true);
    expect(admitted(off, profile(confined, { status: { phase: "Running" } })).decision.admit).toBe(true);
    expect(admitted(readyNode(), profile(confined))).toMatchObject({
      decision: { admit: true },
      needs: ["kubelet.appArmor"],
    });
  });
  it("profiles of the host have a name", () => {
    expect(shown(on, profile({ type: "Localhost" }))).toBe(
      'AppArmor: Cannot enforce AppArmor: invalid empty AppArmor profile name: "&AppArmorProfile{Type:Localhost,LocalhostProfile:nil,}"',
    );
    expect(admitted(on, profile({ type: "Localhost", localhostProfile: "mine" })).decision.admit).toBe(true);
  });
  it("is also asked for by annotation", () => {
    const annotations = { "container.apparmor.security.beta.kubernetes.io/c": "localhost/ " };
    const pod = { ...boundPod("p"), metadata: { name: "p", uid: "u", annotations } };
    expect(shown(on, pod)).toContain("LocalhostProfile:* ,}");
  });
});

describe("features", () => {
  it("of pod level need their gate", () => {
    const gateOff = readyNode({ kubeletConfiguration: { featureGates: { PodLevelResources: false } } });
    const pod = boundPod("p", { cpu: "1" }, { resources: { requests: { cpu: "2" } } });
    expect(shown(gateOff, pod)).toBe("PodLevelResourcesNotSupported: PodLevelResources feature gate is disabled");
    expect(admitted(gateOff, pod).decision.resources).toContainEqual(
      expect.objectContaining({ resource: "cpu", requested: 1000 }),
    );
    expect(admitted(readyNode(), pod).decision.resources).toContainEqual(
      expect.objectContaining({ resource: "cpu", requested: 2000 }),
    );
  });
  it("that a node declares are compared by name", () => {
    const rules = [{ action: "RestartAllContainers" }];
    const pod = boundPod(
      "p",
      {},
      {
        containers: [{ name: "c", restartPolicyRules: rules }],
        hostNetwork: true,
        hostUsers: false,
      },
    );
    const declaring = (...declaredFeatures: string[]): Json => readyNode({}, { declaredFeatures });
    expect(shown(declaring(), pod)).toBe(
      "PodFeatureUnsupported: Pod requires node features that are not available: RestartAllContainersOnContainerExits, UserNamespacesHostNetworkSupport",
    );
    expect(shown(declaring("RestartAllContainersOnContainerExits"), pod)).toMatch(
      /: UserNamespacesHostNetworkSupport$/,
    );
    expect(admitted(readyNode(), pod)).toMatchObject({
      decision: { admit: true },
      needs: ["node.status.declaredFeatures"],
    });
    const under = (version: string, featureGates: object): string =>
      shown(
        readyNode(
          { kubeletConfiguration: { featureGates } },
          { declaredFeatures: [], nodeInfo: { kubeletVersion: `v${version}.0` } },
        ),
        pod,
      );
    // a gate that 1.34 does not know, and that is off in 1.35, which knows one of the two features
    expect(under("1.35", { NodeDeclaredFeatures: true })).toMatch(/: RestartAllContainersOnContainerExits$/);
    expect([under("1.35", {}), under("1.34", {})]).toEqual([": ", ": "]);
    expect(under("1.37", {})).toMatch(/, UserNamespacesHostNetworkSupport$/);
  });
  it("of supplementary groups are told by the node", () => {
    const pod = boundPod("p", {}, { securityContext: { supplementalGroupsPolicy: "Strict" } });
    expect(shown(readyNode({}, { features: { supplementalGroupsPolicy: false } }), pod)).toBe(
      "SupplementalGroupsPolicyNotSupported: SupplementalGroupsPolicy=Strict is not supported in this node",
    );
    expect(admitted(readyNode({}, { features: { supplementalGroupsPolicy: true } }), pod).decision.admit).toBe(true);
  });
});
