import { describe, expect, it } from "vitest";
import type { Json } from "../../kit/snapshots.ts";
import { admitted, boundPod, readyNode } from "./admission-kit.ts";

const shown = (snapshot: Json, pod: Json): string => {
  const { reason, message } = admitted(snapshot, pod).decision;
  return `${reason}: ${message}`;
};

describe("AppArmor", () => {
  const on = readyNode({ kubelet: { appArmor: true } });
  const off = readyNode({ kubelet: { appArmor: false } });
  const profile = (appArmorProfile: Json, more: Json = {}): Json =>
    boundPod("p", {}, { securityContext: { appArmorProfile } }, more);
  it("must be enabled on the node for a pod that asks for a profile and has not started", () => {
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
  it("refuses a Localhost profile without a name", () => {
    expect(shown(on, profile({ type: "Localhost" }))).toBe(
      'AppArmor: Cannot enforce AppArmor: invalid empty AppArmor profile name: "&AppArmorProfile{Type:Localhost,LocalhostProfile:nil,}"',
    );
    expect(admitted(on, profile({ type: "Localhost", localhostProfile: "mine" })).decision.admit).toBe(true);
  });
  it("is also read from the pod's annotation", () => {
    const annotations = { "container.apparmor.security.beta.kubernetes.io/c": "localhost/ " };
    const pod = { ...boundPod("p"), metadata: { name: "p", uid: "u", annotations } };
    expect(shown(on, pod)).toContain("LocalhostProfile:* ,}");
  });
});

describe("features that a pod needs", () => {
  it("pod-level resources are refused while their feature gate is off", () => {
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
  it("features that the node declares are compared by name", () => {
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
    const RESTART = "RestartAllContainersOnContainerExits";
    const USERS = "UserNamespacesHostNetworkSupport";
    const on = (version: string, featureGates: object, declaredFeatures?: string[]): Json =>
      readyNode(
        { kubeletConfiguration: { featureGates } },
        { nodeInfo: { kubeletVersion: `v${version}.0` }, ...(declaredFeatures && { declaredFeatures }) },
      );
    const lacks = (...names: string[]): string =>
      `PodFeatureUnsupported: Pod requires node features that are not available: ${names.join(", ")}`;
    // the node's own feature gates count, not the features that its status declared before; USERS is off by default
    expect(shown(on("1.36", { [RESTART]: false }, [RESTART, USERS]), pod)).toBe(lacks(RESTART, USERS));
    expect(shown(on("1.36", {}), pod)).toBe(lacks(USERS));
    // the container runtime must support the feature too
    expect(shown(on("1.36", { [USERS]: true }, []), pod)).toBe(lacks(USERS));
    expect(shown(on("1.37", { [USERS]: true }, [USERS]), pod)).toBe(": ");
    expect(admitted(on("1.36", { [USERS]: true }), pod)).toMatchObject({
      decision: { admit: true },
      needs: ["node.status.declaredFeatures"],
    });
    // 1.34 does not know the gate NodeDeclaredFeatures. 1.35 knows it, and one of the features, but has it off by
    // default
    expect([shown(on("1.35", {}), pod), shown(on("1.34", {}), pod)]).toEqual([": ", ": "]);
    expect(shown(on("1.35", { NodeDeclaredFeatures: true }), pod)).toBe(lacks(RESTART));
  });
  it("bindMountOptions are a required feature for containers of any sort, in 1.37 alone", () => {
    const FEATURE = "VolumeBindMountOptions";
    const on = (version: string, featureGates: object, declaredFeatures?: string[]): Json =>
      readyNode(
        { kubeletConfiguration: { featureGates } },
        { nodeInfo: { kubeletVersion: `v${version}.0` }, ...(declaredFeatures && { declaredFeatures }) },
      );
    const mount = { name: "data", mountPath: "/data" };
    const options = { ...mount, bindMountOptions: ["noexec"] };
    const podOf = (...volumeMounts: object[]) => boundPod("p", {}, { containers: [{ name: "c", volumeMounts }] });
    const pod = podOf(mount, options);
    const lacks = `PodFeatureUnsupported: Pod requires node features that are not available: ${FEATURE}`;
    expect(shown(on("1.37", {}), pod)).toBe(lacks);
    expect(shown(on("1.37", { [FEATURE]: true }, []), pod)).toBe(lacks);
    expect(shown(on("1.37", { [FEATURE]: true }, [FEATURE]), pod)).toBe(": ");
    expect(admitted(on("1.37", { [FEATURE]: true }), pod)).toMatchObject({
      decision: { admit: true },
      needs: ["node.status.declaredFeatures"],
    });
    expect(shown(on("1.36", {}), pod)).toBe(": ");
    expect(shown(on("1.37", {}), podOf(mount, { ...mount, bindMountOptions: [] }))).toBe(": ");
    for (const list of ["initContainers", "ephemeralContainers"]) {
      const more = { [list]: [{ name: "d", volumeMounts: [options] }] };
      expect([list, shown(on("1.37", {}), boundPod("p", {}, { containers: [{ name: "c" }], ...more }))]).toEqual([
        list,
        lacks,
      ]);
    }
  });
  it("a strict supplementalGroupsPolicy needs a node that reports the feature", () => {
    const pod = boundPod("p", {}, { securityContext: { supplementalGroupsPolicy: "Strict" } });
    expect(shown(readyNode({}, { features: { supplementalGroupsPolicy: false } }), pod)).toBe(
      "SupplementalGroupsPolicyNotSupported: SupplementalGroupsPolicy=Strict is not supported in this node",
    );
    expect(admitted(readyNode({}, { features: { supplementalGroupsPolicy: true } }), pod).decision.admit).toBe(true);
  });
});
