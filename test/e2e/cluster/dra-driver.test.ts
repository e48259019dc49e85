import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cdiContainerd } from "../containerd/programs.ts";
import { DRA_TEST_DRIVER, KUBERNETES, pathOf } from "../go-programs.ts";
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
const why = noPods(WHAT) ?? noCluster(WHAT, KUBERNETES, DRA_TEST_DRIVER);
const DRIVER = "test-driver.cdi.k8s.io";
const DRA = "/apis/resource.k8s.io/v1";
const PODS = "/api/v1/namespaces/default/pods";

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
    plane = await ControlPlane.start(KUBERNETES);
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
        kubeletVersion: KUBERNETES.slice(0, KUBERNETES.lastIndexOf(".")),
        draDrivers: "serve",
      },
    });
    for (const dir of ["registry", join("plugins", DRIVER)]) mkdirSync(join(node.dir, dir), { recursive: true });
    node.startDaemon();
    driver = startDriver();
  }, LONG_MS);
  afterAll(async () => {
    await driver?.end();
    await node?.stop();
    await plane?.stop();
  }, LONG_MS);

  const startDriver = (): LoggedProcess =>
    new LoggedProcess(
      pathOf(DRA_TEST_DRIVER),
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
  /** What a scheduler and the claim's author do: the pod, and its claim with the first device that the driver has published. */
  const create = async (name: string): Promise<void> => {
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
    const spec = { nodeName: NODE_NAME, resourceClaims: [{ name: "gpu", resourceClaimName: name }] };
    const containers = [{ resources: { claims: [{ name: "gpu" }] } }];
    const pod = podOf(name, { ...spec, containers });
    const { metadata } = await plane.admin.must<{ readonly metadata: { readonly uid: string } }>("POST", PODS, pod);
    const results = [{ request: "gpu", driver: DRIVER, pool: pool.name, device: devices[0]?.name }];
    const reservedFor = [{ resource: "pods", name, uid: metadata.uid }];
    const status = { allocation: { devices: { results } }, reservedFor };
    await plane.admin.must("PUT", `${claims}/${name}/status`, { ...claim, status });
  };
  const remove = async (name: string): Promise<void> => {
    await plane.admin.must("DELETE", `${PODS}/${name}`, { gracePeriodSeconds: 0 });
    await node.daemon.gone(name);
    expect(knownClaims(node)).toEqual([]);
  };
  const specifications = (): readonly string[] =>
    existsSync(node.containerd.cdi) ? readdirSync(node.containerd.cdi).filter((file) => file.startsWith(DRIVER)) : [];

  test("prepares its claims, gives what the driver says to the container, tells its health, and gives all back", async ({
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
    const { containers } = await node.daemon.pod("first", "whose health is told", (row) =>
      row.containers.some(({ allocatedResourcesStatus = [] }) => allocatedResourcesStatus.length > 0),
    );
    expect(containers[0]?.allocatedResourcesStatus?.map(({ name }) => name)).toEqual(["claim:gpu"]);
    await remove("first");
    expect(specifications()).toEqual([]);
  });

  test("goes on with a pod while the driver is killed, which takes the claim back once it is there again", async ({
    skip,
  }) => {
    if (!(await servesCdi(node))) skip("this runtime does not serve CDI");
    await create("second");
    await node.daemon.running("second");
    await driver.end("SIGKILL");
    await node.daemon.turns(2);
    expect((await node.containersOf("second")).map(({ state, attempt }) => [state, attempt])).toEqual([["running", 0]]);
    driver = startDriver();
    await remove("second");
    expect(driver.log()).toContain("NodeUnprepareResources");
  });
});
