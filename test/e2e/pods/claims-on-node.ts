import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { HEALTH_SERVICES } from "../../../api/decide/dra/registration.ts";
import { TestDriver } from "../../actuator/dra/test-driver.ts";
import { claim, DRIVER, result } from "../../kit/claims.ts";
import { must } from "../containerd/pods.ts";
import { podOf, type TestPod } from "./manifest.ts";
import type { PodNode } from "./node.ts";

/**
 * A claim of this name for one device of the driver, which also has the claim's name; the claim is reserved for the
 * named pods.
 */
export const claimManifest = (name: string, pods: readonly string[], driver = DRIVER): object => ({
  apiVersion: "resource.k8s.io/v1",
  kind: "ResourceClaim",
  ...claim(name, [{ ...result(name), driver }], pods),
});
/** A pod whose container uses these claims. */
export const claimingPod = (name: string, claims: readonly string[], more: TestPod = {}): object =>
  podOf(name, {
    uid: `uid-${name}`,
    resourceClaims: claims.map((one) => ({ name: one, resourceClaimName: one })),
    containers: [{ resources: { claims: claims.map((one) => ({ name: one })) } }],
    ...more,
  });

/** A driver in the node's plugins_registry, which does not serve yet. `cdi`: the runtime adds its devices. */
export function driverOn(node: PodNode, name = DRIVER, cdi = false): TestDriver {
  const dir = join(node.dir, "registry");
  mkdirSync(dir, { recursive: true });
  return new TestDriver({ dir, name, cdi, health: HEALTH_SERVICES });
}

/**
 * Writes the CDI specification that a driver leaves for the runtime: each device sets an environment variable and adds
 * its own device node.
 */
export function specify(node: PodNode, devices: readonly string[], driver = DRIVER): void {
  mkdirSync(node.containerd.cdi, { recursive: true });
  const spec = {
    cdiVersion: "0.5.0",
    kind: `${driver}/dev`,
    devices: devices.map((name) => ({
      name,
      containerEdits: {
        env: [`CLAIMED_${name.toUpperCase()}=by the spec`],
        deviceNodes: [{ path: `/dev/claimed-${name}`, hostPath: "/dev/null", type: "c", major: 1, minor: 3 }],
      },
    })),
  };
  writeFileSync(join(node.containerd.cdi, `${driver}.json`), JSON.stringify(spec));
}

/**
 * Whether the node's runtime injects CDI devices, from its reported configuration. 1.6, which cannot, and 2.4, which
 * always can, do not report the setting.
 */
export async function servesCdi({ containerd: { connection } }: PodNode): Promise<boolean> {
  const { info } = await must(connection.call("Status", { verbose: true }));
  const { runtimeVersion } = await must(connection.call("Version", {}));
  const { enableCDI } = JSON.parse(info["config"] ?? "{}") as { readonly enableCDI?: boolean | null };
  return enableCDI ?? /^v?2\./.test(runtimeVersion);
}

/** `CLAIM: POD ...` for each claim in the daemon's dra_manager_state. */
export function knownClaims(node: PodNode): readonly string[] {
  const file = join(node.dir, "state", "managers", "dra_manager_state");
  if (!existsSync(file)) return [];
  const { Data } = JSON.parse(readFileSync(file, "utf8")) as { readonly Data: string };
  const { ClaimInfoStateList: list } = JSON.parse(Data) as { readonly ClaimInfoStateList: readonly Known[] | null };
  return (list ?? []).map(({ ClaimName, PodUIDs }) => `${ClaimName}: ${Object.keys(PodUIDs).join(" ")}`).sort();
}
interface Known {
  readonly ClaimName: string;
  readonly PodUIDs: object;
}
