import { describe, expect, test } from "vitest";
import { decideLocally } from "../../../actuator/client/local-client.ts";
import { observeMachine } from "../../../actuator/machine/observe.ts";
import { nodeSnapshot } from "../../../actuator/pods/admission/node-snapshotter.ts";
import { LIMITS } from "../../../api/base/limits.ts";
import { v1_36 } from "../../../api/profiles/v1_36.ts";
import { limited } from "../../kit/runnable-pods.ts";
import { decided, nodeWith } from "../pods/devices/manager-kit.ts";
import { hostFixture } from "./host-kit.ts";
import { healthy, type NodePlugin, register, until } from "./node-plugin.ts";

const name = (i: number) => `example.com/r${i}`;

/** One process serves all resources at one socket, each with one device. */
async function registerAll(socketPath: string, of: NodePlugin, most: number): Promise<void> {
  await of.serve();
  const endpoint = of.socketPath.slice(of.script.dir.length + 1);
  for (let i = 0; i < most; i += 32) {
    const some = Array.from({ length: Math.min(32, most - i) }, (_, k) => name(i + k));
    await register(socketPath, ...some.map((resourceName) => ({ version: "v1beta1", endpoint, resourceName })));
  }
}

test.each([64, LIMITS.deviceResources])(
  "a node with %i plugin resources still admits pods",
  { timeout: 120_000 },
  async (most) => {
    const node = await nodeWith();
    const { host } = node.manager;
    await registerAll(host.socketPath, node.plugin({ resource: name(0), devices: healthy("a") }), most);
    await until(host.devices, (d) => d.length === most);
    const amounts = { cpu: "8", memory: "8Gi", "ephemeral-storage": "8Gi", pods: "110" };
    const decide = (limits: Readonly<Record<string, number>>) => {
      const asking = limited("p", { app: limits });
      const snapshot = nodeSnapshot({
        machine: observeMachine(),
        profile: v1_36,
        kubeletConfiguration: {},
        pods: [],
        assignments: undefined,
        nodeName: "n1",
        cgroupMount: "/sys/fs/cgroup",
        allocatable: amounts,
        conditions: [],
        sequence: 1,
        devices: node.manager.snapshot(asking.uid),
        amounts: node.manager.amounts(),
      });
      return decideLocally("admission", snapshot, { ask: { pod: asking.object } });
    };
    for (const limits of [{}, { [name(most - 1)]: 1 }]) {
      expect(decide(limits)).toMatchObject({ ok: true, value: { decision: { admit: true } } });
    }
    expect(decide({ [name(0)]: 2 })).toMatchObject({ ok: true, value: { decision: { admit: false } } });
    expect(decided(node, limited("p", { app: { [name(1)]: 1 } })).refusal).toBeNull();
  },
);

describe("a plugin resource beyond the limit", () => {
  test("is refused by name, and accepted once another one was removed", { timeout: 120_000 }, async () => {
    const { host, plugin, faults } = await hostFixture({ graceMs: 300, timeouts: { dialMs: 20_000 } });
    const gone = plugin({ resource: "example.com/gone", devices: healthy("a") });
    await gone.start();
    await registerAll(
      host.socketPath,
      plugin({ resource: name(0), devices: healthy("a") }),
      LIMITS.deviceResources - 1,
    );
    const last = plugin({ resource: "example.com/last", devices: healthy("a") });
    await expect(last.start()).rejects.toMatchObject({
      details:
        "`example.com/last` is one resource too many: device plugins have 1024 already, the most that a node takes",
    });
    expect(faults).toMatchObject([{ resource: "example.com/last", call: "Register", code: "RESOURCE_EXHAUSTED" }]);
    // a registered plugin may register again
    await gone.register();
    await gone.vanish();
    await until(host.states, (states) => states[0]?.state === "removed");
    await last.register();
    await until(host.amounts, (amounts) => amounts.get("example.com/last")?.allocatable === 1);
    expect(host.states()).toHaveLength(LIMITS.deviceResources);
    expect(host.amounts().has("example.com/gone")).toBe(false);
  });
  test("that pods hold devices of replaces the last unused resource", {
    timeout: 120_000,
  }, async () => {
    const { host, plugin, faults } = await hostFixture({
      isInUse: (resource) => resource === "example.com/used" || resource === name(LIMITS.deviceResources - 1),
      timeouts: { dialMs: 20_000 },
    });
    const all = plugin({ resource: name(0), devices: healthy("a") });
    await registerAll(host.socketPath, all, LIMITS.deviceResources);
    await plugin({ resource: "example.com/used", devices: healthy("a", "b") }).start();
    await until(host.amounts, (amounts) => amounts.get("example.com/used")?.allocatable === 2);
    const gone = faults.map(({ resource }) => resource);
    expect(gone).toHaveLength(1);
    expect(gone).not.toContain(name(LIMITS.deviceResources - 1));
    expect(faults[0]?.message).toMatch(/^it is replaced by `example\.com\/used`, of which pods hold devices: /);
    expect(host.states().map(({ resource }) => resource)).not.toContain(gone[0]);
    expect(host.states()).toHaveLength(LIMITS.deviceResources);
  });
});
