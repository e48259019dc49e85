import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FOLLOWER_FLAGS } from "../../../api/cli/start.ts";
import { NODE } from "../../cli/run.ts";
import { KUBERNETES, KWOK } from "../go-programs.ts";
import { WAITS } from "../pods/until.ts";
import { bundle } from "../vm/bundle.ts";
import { READER, serviceAccount } from "./access.ts";
import { ControlPlane, noCluster } from "./control-plane.ts";
import { Fleet, nodeName } from "./fleet.ts";
import type { FollowerMessage } from "./follower-child.ts";
import { KubeletServers } from "./kubelets.ts";

const LONG_MS = 300_000;
const [NODES, PODS] = [1000, 10_000];
/** The number of nodes whose kubelet refuses connections, and the number of nodes whose kubelet never answers. */
const [DEAD, HANGING] = [20, 5];
const AT_A_TIME = 16;
const INTERVAL_MS = 60_000;
const why = noCluster("a thousand nodes", KUBERNETES, KWOK);

/** The reader as a separate process. */
class Reader {
  readonly reported: FollowerMessage[] = [];
  readonly #child;

  /** `script` is one bundled file, as in the package, because each module of a checkout uses memory of its own. */
  constructor(script: string, kubeconfig: string) {
    const args = [...FOLLOWER_FLAGS, script, kubeconfig, String(INTERVAL_MS)];
    this.#child = spawn(NODE, args, { stdio: ["pipe", "pipe", "inherit"] });
    createInterface(this.#child.stdout).on("line", (line) => this.reported.push(JSON.parse(line) as FollowerMessage));
  }
  all<A extends FollowerMessage["at"]>(at: A): readonly Extract<FollowerMessage, { readonly at: A }>[] {
    return this.reported.filter((reported) => reported.at === at) as Extract<FollowerMessage, { readonly at: A }>[];
  }
  last<A extends FollowerMessage["at"]>(at: A): Extract<FollowerMessage, { readonly at: A }> | undefined {
    return this.all(at).at(-1);
  }
  changesOf(pod: string): readonly string[] {
    return this.all("change").flatMap(({ change, name }) => (name === pod ? [change] : []));
  }
  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.stdin.end();
    await ended;
  }
}

describe.skipIf(why !== undefined)("a thousand nodes of a real API server", { timeout: LONG_MS }, () => {
  let plane: ControlPlane;
  let kubelets: KubeletServers;
  let fleet: Fleet;
  let reader: Reader;
  beforeAll(async () => {
    plane = await ControlPlane.start(KUBERNETES);
    kubelets = await KubeletServers.start(plane);
    const kubeletPort = (i: number): number =>
      i < DEAD ? 1 : i < DEAD + HANGING ? kubelets.hangingPort : kubelets.port;
    fleet = await Fleet.start(plane, { nodes: NODES, pods: PODS, kubeletPort });
    const script = join(plane.dir, "follower.mjs");
    writeFileSync(script, await bundle("cluster/follower-child.ts"));
    reader = new Reader(script, plane.kubeconfig("reader", await serviceAccount(plane, "reader", READER)));
  }, LONG_MS);
  afterAll(async () => {
    await reader?.end();
    await fleet?.stop();
    kubelets?.stop();
    await plane?.stop();
  }, LONG_MS);

  test("are read completely, few kubelets at a time, and dead ones do not delay others", async () => {
    await expect.poll(() => reader.last("read"), WAITS).toMatchObject({ nodes: NODES, pods: PODS });
    expect(reader.all("listed")).toEqual(
      expect.arrayContaining([
        { at: "listed", resource: "nodes", objects: NODES },
        { at: "listed", resource: "pods", objects: PODS },
      ]),
    );
    expect(reader.last("read")?.missing).toBe(2 * (DEAD + HANGING));
    expect(kubelets.asked).toBeGreaterThanOrEqual(2 * (NODES - DEAD - HANGING));
    expect(kubelets.peak).toBeLessThanOrEqual(AT_A_TIME);
    const { peakMiB = Infinity, cpuSeconds = Infinity, seconds = 0 } = reader.last("usage") ?? {};
    console.log(`the reader took ${peakMiB.toFixed(0)} MiB and ${cpuSeconds.toFixed(1)} s of CPU to catch up`);
    expect(peakMiB).toBeLessThan(300);
    // at most one core on average
    expect(cpuSeconds).toBeLessThan(seconds);
  });

  test("are watched for changes", async () => {
    await fleet.addPod("fresh", nodeName(7));
    await expect.poll(() => reader.changesOf("fresh"), WAITS).toEqual(["added", "modified"]);
    await plane.admin.must("DELETE", "/api/v1/namespaces/default/pods/fresh");
    await expect.poll(() => reader.changesOf("fresh").at(-1), WAITS).toBe("deleted");
  });

  test("are compared after the API server was down, and the changes reported", async () => {
    await fleet.addPod("earlier", nodeName(0));
    await expect.poll(() => reader.changesOf("earlier").length, WAITS).toBe(2);
    const others = await fleet.podsLike("earlier", [["another", nodeName(8)]]);
    await plane.killServer();
    await expect.poll(() => reader.last("fault"), WAITS).toMatchObject({ code: expect.any(String) });
    await plane.store([["pods/default/earlier", null], ...others]);
    await plane.startServer();
    await expect.poll(() => reader.changesOf("another"), WAITS).toEqual(["added"]);
    await expect.poll(() => reader.changesOf("earlier").at(-1), WAITS).toBe("deleted");
    await expect.poll(() => reader.last("fault"), WAITS).toMatchObject({ code: null });
    const { peakMiB = Infinity } = reader.last("usage") ?? {};
    console.log(`and ${peakMiB.toFixed(0)} MiB at most while the API server was away and came back`);
    expect(peakMiB).toBeLessThan(300);
  });
});
