import { describe, expect, test } from "vitest";
import { type LiveNode, liveSource, type PodResourcesSource } from "../../../actuator/podresources/live-source.ts";
import { podResources } from "../../../actuator/podresources/server.ts";
import { err, ok, type Result } from "../../../api/base/result.ts";
import { writeClaims } from "../../../api/decide/dra/checkpoint.ts";
import { ClaimInfoCache } from "../../../api/decide/dra/claim-info.ts";
import { NEWEST } from "../../../api/profiles/index.ts";
import { claiming, DRIVER } from "../../kit/claims.ts";
import { pod } from "../../kit/pods.ts";
import { realSnapshot } from "../../kit/real-node.ts";
import { clientOf, serving } from "./served.ts";

/** A node that a test changes; it counts how often it is read. */
function changingNode(...names: readonly string[]) {
  const node = {
    version: 1 as string | number,
    reported: ok({ pods: names.map((name) => pod(name)) }) as Result<unknown, string>,
    looks: 0,
    becomes: (reported: Result<unknown, string>): void => {
      node.reported = reported;
      node.version = `${node.version}+`;
    },
  };
  const live: LiveNode = {
    version: () => node.version,
    snapshot: () => {
      node.looks++;
      return node.reported;
    },
  };
  return { node, source: liveSource(live) };
}
const names = (source: Result<PodResourcesSource, string>): unknown =>
  source.ok ? podResources(source.value).podResources.map(({ name }) => name) : source;

describe("liveSource", () => {
  test("makes a source only when it is needed, and reuses it until the version changes", () => {
    const { node, source } = changingNode("a");
    expect(node.looks).toBe(0);
    const first = source();
    expect(names(first)).toEqual(["a"]);
    expect(source()).toBe(first);
    expect(node.looks).toBe(1);
    node.becomes(ok({ pods: [pod("a"), pod("b")] }));
    expect(names(source())).toEqual(["a", "b"]);
    expect(node.looks).toBe(2);
  });
  test("reports the claims of containers as in dra_manager_state", () => {
    const device = (name: string, shareId: string | null = null) => ({
      poolName: "n1",
      deviceName: name,
      shareId,
      requestNames: null,
      cdiDeviceIds: [`example.com/gpu=${name}`],
    });
    const devices = [device("a"), device("b", "s1")];
    const info = { namespace: "default", name: "gpus", uid: "u", podUids: new Set(["uid-p"]), prepared: true };
    const drivers = new Map([[DRIVER, { devices, skips: [] }]]);
    const cache = new ClaimInfoCache(NEWEST.behaviour.claims, [{ ...info, drivers, unpreparing: false }]);
    const reported = {
      pods: [claiming("p", ["gpus"]), pod("plain")],
      assignments: { dra_manager_state: writeClaims(cache) },
    };
    const source = liveSource({ version: () => 1, snapshot: () => ok(reported) })();
    if (!source.ok) throw new Error(source.error);
    const of = { driverName: DRIVER, poolName: "n1" };
    const [a, b] = ["a", "b"].map((name) => ({ name: `example.com/gpu=${name}` }));
    const claimResources = [
      { ...of, deviceName: "a", cdiDevices: [a] },
      // a kubelet accumulates the CDI devices of each driver
      { ...of, deviceName: "b", cdiDevices: [a, b], shareId: "s1" },
    ];
    expect(podResources(source.value).podResources.map(({ containers }) => containers[0]?.dynamicResources)).toEqual([
      [{ claimName: "gpus", claimNamespace: "default", claimResources }],
      [],
    ]);
  });
  test("picks up with the next call what changed while the snapshot was made", () => {
    let version = 1;
    const reported = [ok({ pods: [pod("old")] }), ok({ pods: [pod("new")] })];
    const source = liveSource({
      version: () => version,
      snapshot: () => {
        version++;
        return reported[version - 2] as Result<unknown, string>;
      },
    });
    expect(names(source())).toEqual(["old"]);
    expect(names(source())).toEqual(["new"]);
  });
  test("returns why the node is not known yet, and looks again with each call", () => {
    const { node, source } = changingNode("a");
    node.reported = err("the configuration cannot be read");
    expect(source()).toEqual(err("the configuration cannot be read"));
    node.reported = ok({ pods: [pod("a")] });
    expect(names(source())).toEqual(["a"]);
  });
  test("returns the faults of a snapshot, computed once", () => {
    const { node, source } = changingNode();
    node.becomes(ok({ pods: [{ metadata: {} }, { metadata: {} }] }));
    const fault = source();
    expect(fault).toMatchObject({ ok: false, error: expect.stringMatching(/^what is known .*pods\[0\].* more\)$/) });
    expect(source()).toBe(fault);
    expect(node.looks).toBe(1);
  });
  test("returns why a kubelet would not start, or which documents are missing for the assignments", () => {
    const { node, source } = changingNode();
    const { machine, ...real } = realSnapshot();
    node.becomes(ok(real));
    expect(source()).toEqual(err(expect.stringMatching(/^who holds what .* machine/)));
    node.becomes(ok({ ...real, machine, kubeletConfiguration: { cpuManagerPolicy: "none" } }));
    expect(source()).toEqual(err(expect.stringMatching(/^a kubelet would not start on this node: .*"none".*"static"/)));
  });
  test("serves each change of the node to a client", async () => {
    const { node, source } = changingNode("a");
    const ask = clientOf((await serving({ source })).path);
    expect(node.looks).toBe(0);
    for (let i = 0; i < 3; i++) expect(JSON.stringify(await ask("List"))).toContain('"name":"a"');
    expect(node.looks).toBe(1);
    node.becomes(err("the runtime has not answered yet"));
    expect(await ask("List")).toEqual({ code: "UNAVAILABLE", message: "the runtime has not answered yet" });
  });
});
