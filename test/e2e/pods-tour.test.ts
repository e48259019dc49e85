import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PodRecord } from "../../actuator/lifecycle/record.ts";
import type { PodStatus } from "../../actuator/lifecycle/status/status.ts";
import type { CgroupsDecision } from "../../api/model/cgroups.ts";
import { run } from "../cli/run.ts";
import { expectAsShown } from "../docs/shown.ts";
import { NODE_NAME } from "./pods/manifest.ts";
import { PodNode } from "./pods/node.ts";
import { freePort } from "./pods/port.ts";
import { noPods } from "./pods/skip.ts";
import { until, WAITS } from "./pods/until.ts";

const LONG_MS = 300_000;
const DATA = join(import.meta.dirname, "../data/pods");
const NAMES = readdirSync(DATA).map((file) => file.replace(/\.yaml$/, ""));
const CRI_LINE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:Z|[+-]\d\d:\d\d) (?:stdout|stderr) [FP] /;
const why = noPods("the tour of ten pods");

describe.skipIf(why !== undefined)("ten pods of a manifest directory", { timeout: LONG_MS }, () => {
  let node: PodNode;
  const ports = { "18080": 0, "18081": 0, "19100": 0 };
  beforeAll(async () => {
    node = await PodNode.start({ hasNetwork: true });
    for (const name of ["18080", "18081", "19100"] as const) ports[name] = await freePort();
    for (const name of NAMES) {
      // ports and paths of this test
      const text = Object.entries(ports).reduce(
        (text, [from, to]) => text.replaceAll(from, String(to)),
        readFileSync(join(DATA, `${name}.yaml`), "utf8"),
      );
      node.put(name, text.replaceAll(/\/var\/(?:lib|log)\/nodewise-tour/g, join(node.dir, "host")));
    }
  }, LONG_MS);
  afterAll(() => node?.stop(), LONG_MS);

  /** The page of a port, as soon as a server listens on it. */
  const page = (port: number, path = "/"): Promise<string> =>
    until(`port ${port}`, () =>
      fetch(`http://127.0.0.1:${port}${path}`)
        .then((answer) => answer.text())
        .catch(() => undefined),
    );
  const print = async (pod: string, container: string, script: string): Promise<string> => {
    const [newest] = await node.containersOf(pod, container);
    return node.exec(newest?.id ?? "", script);
  };
  /** The lines of a container's log, as soon as one of them matches. */
  const logWith = (pod: string, container: string, line: RegExp): Promise<readonly string[]> =>
    until(`${line} in the log of ${pod}`, async () => {
      const [newest] = await node.containersOf(pod, container);
      const lines = readFileSync(newest?.logPath ?? "", "utf8")
        .split("\n")
        .slice(0, -1);
      return lines.some((one) => line.test(one)) ? lines : undefined;
    });

  test("start, and serve what their manifests say", async () => {
    const daemon = node.startDaemon();
    await daemon.running(...NAMES.filter((name) => name !== "batch-job"));
    expect(await page(ports["18080"])).toBe(`hello from web-${NODE_NAME} on ${NODE_NAME}\n`);
    expect(await page(ports["19100"])).toMatch(/^node_load1 \d/);
    expect(await page(ports["18081"], "/settings")).toBe(`currency=EUR\nport=${ports["18081"]}\n`);

    await logWith("database", "db", / stdout F open \/var\/lib\/db, cache 128 MB$/);
    const lines = await logWith("sidecar", "ship-logs", / stdout F order 2$/);
    for (const line of lines) expect(line).toMatch(CRI_LINE);
    expect(await print("database", "db", "df -k /tmp | tail -n 1 | awk '{print $1, $2}'; id -G")).toBe(
      "tmpfs 16384\n0 1000",
    );
    // a program that the container starts briefly may appear in the list as well
    const beside = () => print("pipeline", "print", "hostname; ps -o args | grep -c '[i]n.tmp'");
    await expect.poll(beside, WAITS).toBe("pipeline\n1");
    expect(await print("node-agent", "agent", "grep collector /etc/hosts")).toBe("127.0.0.1\tcollector.local");
    expect(await print("cleanup-loop", "cleanup", "grep ' /spool ' /proc/mounts | wc -l; echo $NAMESPACE")).toBe(
      "1\nbatch",
    );
    expect(await print("exporter", "exporter", "id -u; touch /x 2>&1")).toMatch(/^exit 1/);

    // the next turn records a finished pod as ended
    const job = await daemon.pod("batch-job", "done", ({ state }) => state === "terminated");
    expect(job).toMatchObject({ phase: "Succeeded", containers: [{ restarts: 1, exitCode: 0 }] });
    const { record } = JSON.parse(readFileSync(join(node.dir, "state/pods", `${job.uid}.pod.json`), "utf8")) as {
      record: PodRecord;
    };
    expect((record.status as unknown as PodStatus).containerStatuses[0]?.lastState.terminated).toMatchObject({
      exitCode: 3,
      message: "the first try always fails\n",
    });
  });

  test("have the values in the kernel's files that nodewise decides from outside", async () => {
    const source = ["--manifests", node.manifests, "--config", join(node.dir, "kubelet.json")];
    const snapshot = await run(["snapshot", "--node-name", NODE_NAME, ...source]);
    const decided = await run(["decide", "cgroups", "--snapshot", "-", "--cgroup-version", "1", "-o", "json"], {
      input: snapshot.stdout,
    });
    const { cgroups } = (JSON.parse(decided.stdout) as { decision: CgroupsDecision }).decision;
    const wanted = cgroups.filter(({ pod, level }) => level !== "qos" && pod?.name !== `batch-job-${NODE_NAME}`);
    let compared = 0;
    for (const { path, pod, container, files } of wanted) {
      // init containers have exited
      const [newest] = container === null ? [] : await node.containersOf(pod?.name ?? "", container);
      if (newest?.state === "exited") continue;
      const real = container === null ? path : path.replace(/[^/]+$/, newest?.id ?? "none");
      const asked = files.filter(({ path: file }) => node.hierarchy.read("/", file).ok);
      const read = asked.map(({ path: file }) => ({ path: file, value: node.cgroupFile(real, file) }));
      expect([real, read]).toEqual([real, asked]);
      compared += read.length;
    }
    expect(compared).toBeGreaterThan(60);
    // a pass has run since the job ended
    const { pods } = await node.daemon.until("its rows", (status) =>
      status.pods.every(({ state, cgroups }) => state !== "terminated" || cgroups.length === 0) ? status : undefined,
    );
    const rows = pods.flatMap(({ cgroups }) => cgroups);
    expect(rows.length).toBeGreaterThan(NAMES.length);
    for (const { path, files } of rows)
      for (const { file, wanted, actual } of files) {
        expect([path, file, actual]).toEqual([path, file, wanted]);
        if (node.hierarchy.read("/", file).ok)
          expect([path, file, node.cgroupFile(path, file)]).toEqual([path, file, wanted]);
      }
  });

  test("are shown by nodewise pods, and end within their grace period without a trace", async () => {
    const { daemon } = node;
    const table = await run(["pods", "--status-url", node.statusUrl]);
    expect(table.code).toBe(0);
    for (const name of NAMES) expect(table.stdout).toContain(`${name}-${NODE_NAME}`);
    const GUIDE = "docs/guide/daemon.md";
    expectAsShown(GUIDE, "nodewise pods", table.stdout.replaceAll(NODE_NAME, "n1"));
    const top = await until("two readings of each pod's CPU", async () => {
      const ran = await run(["top", "--sort", "name", "--status-url", node.statusUrl]);
      expect(ran).toMatchObject({ code: 0, stderr: "" });
      return ran.stdout.includes("–") ? undefined : ran.stdout;
    });
    const head = top.split("\n").slice(0, 6).join("\n");
    expectAsShown(GUIDE, "nodewise top --sort name | head -6", head.replaceAll(NODE_NAME, "n1"));

    node.remove(...NAMES);
    await daemon.gone(...NAMES);
    expect(await until("nothing left", async () => ((await node.leftovers()).length === 0 ? [] : undefined))).toEqual(
      [],
    );
    const journal = readFileSync(join(node.dir, "host/database/journal"), "utf8").trimEnd().split("\n");
    expect(journal.filter((line) => !/^\d+$/.test(line))).toEqual(["stopping", "closed"]);
    const killed = () => daemon.eventsOf("sidecar", "Killing").map(({ container }) => container);
    await expect.poll(killed, WAITS).toEqual(["orders", "ship-logs"]);
    await expect.poll(async () => (await daemon.status())?.problems, WAITS).toEqual([]);
    expect(await daemon.stop()).toMatchObject({ code: 0 });
  });
});
