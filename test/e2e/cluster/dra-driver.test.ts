import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cdiContainerd } from "../containerd/programs.ts";
import { draTestDriver, type GoProgram, KUBERNETES, NEWEST_KUBERNETES, pathOf } from "../go-programs.ts";
import { LoggedProcess } from "../logged-process.ts";
import { knownClaims, servesCdi } from "../pods/claims-on-node.ts";
import { NODE_NAME, podOf } from "../pods/manifest.ts";
import { PodNode } from "../pods/node.ts";
import { noPods } from "../pods/skip.ts";
import { holds, until } from "../pods/until.ts";
import { READER, serviceAccount } from "./access.ts";
import { ControlPlane, noCluster } from "./control-plane.ts";

const LONG_MS = 300_000;
const WHAT = "the Kubernetes project's own DRA driver";
const [DRIVER_NOW, DRIVER_BEFORE] = [draTestDriver(NEWEST_KUBERNETES), draTestDriver(KUBERNETES)];
const why = noPods(WHAT) ?? noCluster(WHAT, NEWEST_KUBERNETES, DRIVER_NOW, DRIVER_BEFORE);
const DRIVER = "test-driver.cdi.k8s.io";
const DRA = "/apis/resource.k8s.io/v1";
const PODS = "/api/v1/namespaces/default/pods";
const RESOURCE = "example.com/gpu";

const HEALTH_BEFORE = '"/v1alpha1.DRAResourceHealth/NodeWatchResources"';

interface Slice {
  readonly spec: {
    readonly driver: string;
    readonly pool: { readonly name: string };
    readonly devices: { name: string }[];
  };
}

describe.skipIf(why !== undefined)(`the daemon beside an API server and ${WHAT}`, { timeout: LONG_MS }, () => {
  let plane: ControlPlane;
  let node: PodNode;
  let driver: LoggedProcess;
  let kubeconfig = "";
  beforeAll(async () => {
    plane = await ControlPlane.start(NEWEST_KUBERNETES);
    kubeconfig = plane.kubeconfig("driver", plane.credentialsOf("driver", "/O=system:masters/CN=driver"));
    await plane.admin.must("POST", "/api/v1/nodes", { metadata: { name: NODE_NAME } });
    await plane.admin.must("POST", `${DRA}/deviceclasses`, { metadata: { name: "any" }, spec: {} });
    const token = await serviceAccount(plane, "nodewise", READER);
    const tokenFile = join(plane.dir, "token");
    writeFileSync(tokenFile, "token" in token ? token.token : "", { mode: 0o600 });
    node = await PodNode.start({
      runtime: cdiContainerd(),
      configuration: { featureGates: { ResourceHealthStatus: true } },
      settings: {
        manifests: undefined,
        podsUrl: `${plane.url}/api/v1/pods?fieldSelector=spec.nodeName%3D${NODE_NAME}`,
        podsTokenFile: tokenFile,
        podsCaFile: plane.caFile,
        kubeletVersion: NEWEST_KUBERNETES.slice(0, NEWEST_KUBERNETES.lastIndexOf(".")),
        draDrivers: "serve",
      },
    });
    for (const dir of ["registry", join("plugins", DRIVER)]) mkdirSync(join(node.dir, dir), { recursive: true });
    node.startDaemon();
    driver = startDriver(DRIVER_NOW);
  }, LONG_MS);
  afterAll(async () => {
    await driver?.end();
    await node?.stop();
    await plane?.stop();
  }, LONG_MS);

  const startDriver = (program: GoProgram): LoggedProcess =>
    new LoggedProcess(
      pathOf(program),
      [
        `--kubeconfig=${kubeconfig}`,
        "-v=5",
        "kubelet-plugin",
        `--plugin-registration-path=${join(node.dir, "registry")}`,
        `--datadir=${join(node.dir, "plugins")}`,
        `--cdi-dir=${node.containerd.cdi}`,
        `--node-name=${NODE_NAME}`,
      ],
      join(node.dir, "driver.log"),
    );
  /**
   * Does what the claim's author and the scheduler do: creates the pod and its claim, which gets the first device that
   * the driver has published. The pod names the claim, or gets it for an extended resource, and is bound once the claim
   * is reserved for it.
   */
  const create = async (name: string, by: "claim" | "extended resource" = "claim"): Promise<void> => {
    const { pool, devices } = await until(
      "the driver's slice",
      async () => {
        if (driver.hasEnded) throw new Error(`the driver has ended:\n${driver.log().slice(-3000)}`);
        const { items } = await plane.admin.get<{ readonly items: readonly Slice[] }>(`${DRA}/resourceslices`);
        return items.find(({ spec }) => spec.driver === DRIVER)?.spec;
      },
      () => driver.log().slice(-3000),
    );
    const claims = `${DRA}/namespaces/default/resourceclaims`;
    const requests = [{ name: "gpu", exactly: { deviceClassName: "any" } }];
    const claim = await plane.admin.must<object>("POST", claims, {
      metadata: { name },
      spec: { devices: { requests } },
    });
    const resourceClaims = [{ name: "gpu", resourceClaimName: name }];
    const one = { [RESOURCE]: "1" };
    const pod =
      by === "claim"
        ? podOf(name, { resourceClaims, containers: [{ resources: { claims: [{ name: "gpu" }] } }] })
        : podOf(name, { containers: [{ requests: one, limits: one }] });
    const { metadata } = await plane.admin.must<{ readonly metadata: { readonly uid: string } }>("POST", PODS, pod);
    const results = [{ request: "gpu", driver: DRIVER, pool: pool.name, device: devices[0]?.name }];
    const reservedFor = [{ resource: "pods", name, uid: metadata.uid }];
    const status = { allocation: { devices: { results } }, reservedFor };
    await plane.admin.must("PUT", `${claims}/${name}/status`, { ...claim, status });
    const requestMappings = [{ containerName: "app", resourceName: RESOURCE, requestName: "gpu" }];
    const made = { status: { extendedResourceClaimStatus: { resourceClaimName: name, requestMappings } } };
    if (by === "extended resource")
      await plane.admin.must("PATCH", `${PODS}/${name}/status`, made, "application/merge-patch+json");
    const target = { kind: "Node", name: NODE_NAME };
    await plane.admin.must("POST", `${PODS}/${name}/binding`, { metadata: { name }, target });
  };
  const remove = async (name: string): Promise<void> => {
    await plane.admin.must("DELETE", `${PODS}/${name}`, { gracePeriodSeconds: 0 });
    await node.daemon.gone(name);
    expect(knownClaims(node)).toEqual([]);
  };
  const specifications = (): readonly string[] =>
    existsSync(node.containerd.cdi) ? readdirSync(node.containerd.cdi).filter((file) => file.startsWith(DRIVER)) : [];

  test("prepares its claims, passes the driver's devices to the container, reports health and unprepares", async ({
    skip,
  }) => {
    await create("first");
    await until(
      "the driver's specification",
      () => holds(specifications().length === 1),
      () => driver.log().slice(-3000),
    );
    if (!(await servesCdi(node))) {
      await remove("first");
      skip("this runtime does not serve CDI");
    }
    await node.daemon.running("first");
    const [container] = await node.containersOf("first");
    expect(await node.exec(container?.id ?? "", "env | grep ^claim_")).toBe("claim_first_gpu=true");
    const { containers } = await node.daemon.pod("first", "whose health is reported", (row) =>
      row.containers.some(({ allocatedResourcesStatus = [] }) => allocatedResourcesStatus.length > 0),
    );
    expect(containers[0]?.allocatedResourcesStatus?.map(({ name }) => name)).toEqual(["claim:gpu"]);
    expect(driver.log()).toContain('"/v1.DRAResourceHealth/NodeWatchResources"');
    await remove("first");
    expect(specifications()).toEqual([]);
  });

  test("gives a container the device of the claim made for its extended resource", async ({ skip }) => {
    if (!(await servesCdi(node))) skip("this runtime does not serve CDI");
    await create("extended", "extended resource");
    await node.daemon.running("extended");
    const [container] = await node.containersOf("extended");
    expect(await node.exec(container?.id ?? "", "env | grep ^claim_")).toBe("claim_extended_gpu=true");
    await remove("extended");
  });

  test("keeps a pod running while the driver is killed, and an older driver unprepares its claim", async ({ skip }) => {
    if (!(await servesCdi(node))) skip("this runtime does not serve CDI");
    await create("second");
    await node.daemon.running("second");
    await driver.end("SIGKILL");
    await node.daemon.turns(2);
    expect((await node.containersOf("second")).map(({ state, attempt }) => [state, attempt])).toEqual([["running", 0]]);
    driver = startDriver(DRIVER_BEFORE);
    await until("the health stream of the older driver", async () => holds(driver.log().includes(HEALTH_BEFORE)));
    await remove("second");
    expect(driver.log()).toContain("NodeUnprepareResources");
  });
});
