import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Verdict } from "../../api/model/decision.ts";
import type { ProbeGuardDecision } from "../../api/model/probe-guard.ts";
import { ended, printed, run, start } from "../cli/run.ts";
import { NODE_NAME, podOf, SERVES } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { freePort } from "./pods/port.ts";
import { noPods } from "./pods/skip.ts";
import { until } from "./pods/until.ts";

const LONG_MS = 300_000;
const why = noPods("the probe guard");
const NAMES = ["one", "two", "three", "four", "five"];

interface Recorded {
  readonly id: string;
  readonly verdict: Verdict;
  readonly decision: ProbeGuardDecision;
  readonly reasons: readonly { readonly at: string; readonly because: readonly { readonly code: string }[] }[];
}

describe.skipIf(why !== undefined)("kills held by the probe guard", { timeout: LONG_MS }, () => {
  let node: PodNode;
  let api: ReturnType<typeof start>;
  let url: string;
  beforeAll(async () => {
    node = await PodNode.start();
    api = start(["api", "--port", `${await freePort()}`], { env: { NODEWISE_DATA_DIR: join(node.dir, "history") } });
    url = (await printed(api, /\n/)).trim();
    node.startDaemon({ probeGuard: "hold", api: url });
  }, LONG_MS);
  afterAll(async () => {
    if (api !== undefined) {
      const end = ended(api);
      api.kill("SIGTERM");
      await end;
    }
    await node?.stop();
  }, LONG_MS);

  const get = async <T>(path: string): Promise<T> => (await (await fetch(`${url}${path}`)).json()) as T;
  async function recorded(): Promise<readonly Recorded[]> {
    const path = `/v1/nodes/${NODE_NAME}/decisions?kind=probe-guard&limit=100`;
    const { decisions = [] } = await get<{ decisions?: readonly { readonly id: string }[] }>(path);
    return Promise.all(decisions.map(({ id }) => get<Recorded>(`/v1/decisions/${id}`)));
  }

  test("are recorded with their reasons by the API and the node, and can be decided again", async () => {
    const shared = join(node.dir, "shared");
    mkdirSync(shared);
    writeFileSync(join(shared, "ok"), "");
    const volumes = [{ name: "shared", hostPath: { path: shared } }];
    const container = {
      script: SERVES,
      volumeMounts: [{ name: "shared", mountPath: "/shared", readOnly: true }],
      livenessProbe: {
        exec: { command: ["cat", "/shared/ok"] },
        ...{ periodSeconds: 1, timeoutSeconds: 30, failureThreshold: 2 },
      },
    };
    for (const name of NAMES) node.put(name, podOf(name, { volumes, containers: [container] }));
    await node.daemon.running(...NAMES);
    rmSync(join(shared, "ok"));
    const held = await until("a held kill", async () =>
      (await recorded()).find(({ decision }) => decision.hold.some(({ heldForMs }) => heldForMs === 0)),
    );
    expect(held).toMatchObject({ verdict: "keeps", decision: { storm: true, groups: 5, leastGroups: 3 } });
    const kept = held.decision.hold.find(({ heldForMs }) => heldForMs === 0)?.container ?? "";
    expect(kept).toMatch(/^default\/(one|two|three|four|five)-e2e\/app$/);
    const codes = held.reasons.find(({ at }) => at === kept)?.because.map(({ code }) => code);
    expect(codes).toEqual(["kill_held"]);
    expect(held.reasons.find(({ at }) => at === "node")?.because[0]?.code).toBe("probe_storm");
    const replay = await fetch(`${url}/v1/decisions/${held.id}/replay`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    expect(await replay.json()).toMatchObject({ same: true });

    // a daemon that is restarted keeps holding the restarts, although it has no new information about the storm
    const pod = kept.slice(0, kept.lastIndexOf("/"));
    const named = pod.slice(pod.indexOf("/") + 1);
    const name = named.slice(0, named.lastIndexOf("-"));
    const attempt = async () => (await node.containersOf(name))[0]?.attempt;
    expect(await attempt()).toBe(0);
    await node.daemon.kill();
    node.startDaemon({ probeGuard: "hold", api: url });
    await node.daemon.until("a kill that is held on", ({ probes = [] }) =>
      probes.find((row) => row.pod === named && row.activity === "held" && row.failures > 3),
    );
    expect(await attempt()).toBe(0);

    writeFileSync(join(shared, "ok"), "");
    await until("their release", async () =>
      (await recorded()).find(({ decision }) => decision.released.some(({ why }) => why === "recovered")),
    );
    // the pod is looked up by its name, as a person does
    const reported = await until("the node's own history", async () => {
      const ran = await run(["probes", "history", "--state-dir", join(node.dir, "state"), "--pod", pod, "-o", "json"]);
      const { entries } = JSON.parse(ran.stdout) as { entries: readonly Record<string, unknown>[] };
      return entries.find((entry) => entry["kind"] === "probe-guard" && "ask" in entry);
    });
    const file = join(node.dir, "ask.json");
    writeFileSync(file, JSON.stringify(reported["ask"]));
    const again = await run(["decide", "probe-guard", "--ask", file, "-o", "json"]);
    expect(JSON.parse(again.stdout)).toMatchObject({
      decision: { message: reported["why"], holding: reported["holding"] },
    });
    node.remove(...NAMES);
    await node.daemon.gone(...NAMES);
  });
});
