import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, type TestContext, test } from "vitest";
import { cdiContainerd } from "./containerd/programs.ts";
import { servesCdi } from "./pods/claims-on-node.ts";
import { deviceOf, pluginOn } from "./pods/devices.ts";
import { PodNode } from "./pods/node.ts";
import { noPods } from "./pods/skip.ts";

const LONG_MS = 300_000;
const why = noPods("pods with CDI devices");
const TOY = "example.com/toy";

/** A CDI specification as a vendor's driver writes it for the runtime. */
const specOf = (driver: string): object => ({
  cdiVersion: "0.5.0",
  kind: "vendor.example/toy",
  devices: ["t0", "t1"].map((name) => ({
    name,
    containerEdits: {
      env: [`TOY_${name.toUpperCase()}=by the spec`],
      deviceNodes: [{ path: `/dev/toy-${name}`, hostPath: "/dev/null", type: "c", major: 1, minor: 3 }],
    },
  })),
  containerEdits: { mounts: [{ hostPath: driver, containerPath: "/toy-driver", options: ["ro", "bind"] }] },
});
/** The answer of a plugin that leaves everything to the CDI specification. */
const namesOnly = (request: Record<string, unknown>): object => {
  const [{ devicesIds = [] } = {}] = request["containerRequests"] as readonly { devicesIds?: readonly string[] }[];
  return { containerResponses: [{ cdiDevices: devicesIds.map((id) => ({ name: `vendor.example/toy=${id}` })) }] };
};

const runtimes = [...new Set([undefined, cdiContainerd()])].map((path) => ({ runtime: path ?? "the machine's", path }));

describe.skipIf(why !== undefined).each(runtimes)(
  "pods with CDI devices: $runtime",
  { timeout: LONG_MS },
  ({ path }) => {
    let node: PodNode;
    let isServed = false;
    let close: () => unknown = () => undefined;
    beforeAll(async () => {
      node = await PodNode.start({ runtime: path, settings: { devicePlugins: "serve", retrySeconds: 1 } });
      isServed = await servesCdi(node);
      const daemon = node.startDaemon();
      await daemon.until("its status", (status) => status);
      const toys = pluginOn(node, ["t0", "t1"], { resource: TOY, answers: { Allocate: namesOnly } });
      close = () => toys.vanish();
      await toys.start();
    }, LONG_MS);
    afterAll(async () => {
      await close();
      await node?.stop();
    }, LONG_MS);
    /**
     * Replaces the file atomically, because the runtime may read it at any moment. containerd 1.7 does not notice a
     * file that was moved from another directory.
     */
    const specify = (spec: object): void => {
      mkdirSync(node.containerd.cdi, { recursive: true });
      const fresh = join(node.containerd.cdi, "toy.fresh");
      writeFileSync(fresh, JSON.stringify(spec));
      renameSync(fresh, join(node.containerd.cdi, "vendor.example-toy.json"));
    };
    const onlyWhere = (wanted: boolean, { skip }: TestContext): void => {
      if (isServed !== wanted) skip(`this runtime ${isServed ? "serves" : "does not serve"} CDI`);
    };

    test("get the variables, mounts and device nodes of the CDI specification", async (context) => {
      onlyWhere(true, context);
      const driver = join(node.dir, "toy-driver");
      mkdirSync(driver, { recursive: true });
      writeFileSync(join(driver, "version"), "7\n");
      specify(specOf(driver));
      node.put("toys", deviceOf("toys", 2, TOY));
      await node.daemon.running("toys");
      const [container] = await node.containersOf("toys");
      const script = `echo $TOY_T0, $TOY_T1; cat /toy-driver/version; echo x > /dev/toy-t0 && ls /dev | grep toy | sort; touch /toy-driver/new 2>&1 | grep -o Read-only`;
      expect(await node.exec(container?.id ?? "", script)).toBe(
        "by the spec, by the spec\n7\ntoy-t0\ntoy-t1\nRead-only",
      );
      node.remove("toys");
      await node.daemon.gone("toys");
    });

    test("name the device without a CDI specification, and start once there is one", async (context) => {
      onlyWhere(true, context);
      specify({ ...specOf(node.dir), devices: [] });
      node.put("early", deviceOf("early", 1, TOY));
      const waits = await node.daemon.pod("early", "failing", ({ containers }) =>
        containers.some(({ message }) => message.includes("vendor.example/toy=")),
      );
      expect(waits.containers[0]?.message).toMatch(/unresolvable CDI devices/);
      specify(specOf(node.dir));
      await node.daemon.running("early");
      node.remove("early");
      await node.daemon.gone("early");
    });

    test("do not start, and say why, where the runtime would ignore their CDI devices", async (context) => {
      onlyWhere(false, context);
      node.put("toys", deviceOf("toys", 1, TOY));
      const waits = await node.daemon.pod("toys", "failing", ({ containers }) =>
        containers.some(({ message }) => message.includes("CDI")),
      );
      expect(waits.containers[0]?.message).toMatch(
        /CDI devices \(vendor\.example\/toy=t0\): containerd \S+ (does not know them, and would start the container without: 1\.7 does|has them off: set `enable_cdi = true`)/,
      );
      expect(await node.containersOf("toys")).toEqual([]);
      node.remove("toys");
      await node.daemon.gone("toys");
    });
  },
);
