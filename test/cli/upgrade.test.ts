import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { exampleSnapshot } from "../contract/api-subject.ts";
import { sharedApi } from "../kit/api.ts";
import { container } from "../kit/containers.ts";
import { pod } from "../kit/pods.ts";
import { captured, capturedText, realNode } from "../kit/real-node.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { interrupted, interrupting } from "./interrupting.ts";
import { ended, run, start } from "./run.ts";

const scratch = scratchFolder();
const dataDir = join(scratch, "history");
const api = sharedApi({ dataDir });

/** Two nodes of 1.36, on which MemoryQoS throttles a pod, and one node of 1.37. */
const snapshotOf = (name: string, kubeletVersion: string) => {
  const { status } = exampleSnapshot(name)["node"] as { readonly status: object };
  const app = container("app", { memory: "64Mi" }, { memory: "128Mi" });
  return exampleSnapshot(name, {
    node: { metadata: { name }, status: { ...status, nodeInfo: { kubeletVersion } } },
    cgroup: { version: 2, driver: "systemd" },
    pods: [pod("web", { metadata: { namespace: "shop", uid: `web-${name}` }, spec: { containers: [app] } })],
    kubeletConfiguration: { memoryThrottlingFactor: 0.8 },
  });
};
beforeAll(async () => {
  for (const [name, version] of [
    ["n1", "v1.36.3"],
    ["n2", "v1.36.3"],
    ["n3", "v1.37.2"],
  ] as const) {
    for (const kind of ["allocatable", "cgroups"]) {
      const headers = { "content-type": "application/json" };
      const body = JSON.stringify({ snapshot: snapshotOf(name, version) });
      const response = await fetch(`${api.url}/v1/decisions/${kind}`, { method: "POST", headers, body });
      expect(response.status).toBe(200);
    }
  }
});

const upgrade = (...args: string[]) => run(["upgrade", ...args]);
const written = (name: string, text: string): string => {
  writeFileSync(join(scratch, name), text);
  return join(scratch, name);
};
const parsed = (stdout: string) => JSON.parse(stdout) as Record<string, object>;

describe("nodewise upgrade with files", () => {
  test("prints first what does not start, last what to do before, and exits with 5", async () => {
    const snapshot = captured("snapshot.json");
    snapshot.node.status.nodeInfo.kubeletVersion = "v1.34.4";
    snapshot.kubeletConfiguration.memoryReservationPolicy = undefined;
    const args = ["--to", "1.35", "--snapshot", written("n1-34.json", JSON.stringify(snapshot))];
    const { code, stdout, stderr } = await upgrade(...args);
    expect([code, stderr]).toEqual([5, ""]);
    expect(stdout).toMatch(/^n1: kubelet 1\.34 -> 1\.35: it would not start with this configuration\n/);
    expect(stdout).toMatch(/^refuses-start +failCgroupV1 +new +cgroup-v1$/m);
    expect(stdout).toContain("  kubelet: kubelet is configured to not run on a host using cgroup v1.");
    expect(stdout).toContain('  patch: {"failCgroupV1":false}\n');
    expect(stdout).toMatch(/^Static pods that restart\nPOD\nkube-system\/static1-n1$/m);
    expect(stdout).toMatch(/^allocatable +the node +decided +kubelet-refuses$/m);
    expect(stdout).toMatch(/^What to do before, in order\n1\. failCgroupV1: boot the node with cgroup v2/m);
    const [title, ...rest] = stdout.split("\n");
    const named = await upgrade("--from", "1.36", ...args);
    const message = "the node reports kubelet v1.34.4, which takes precedence over 1.36";
    expect([named.code, named.stdout]).toEqual([5, [title, message, ...rest].join("\n")]);
  });

  test.each<[string, readonly string[], string, number]>([
    ["the same version", ["--from", "1.36", "--to", "1.36.9"], "maxPods: 100\n", 0],
    ["gates that flip", ["--from", "1.36", "--to", "1.37"], "maxPods: 100\n", 1],
    ["a way back", ["--from", "1.37", "--to", "1.36"], "maxPods: 100\n", 1],
    ["a gate that is gone", ["--from", "v1.36.3", "--to", "1.37"], "featureGates: {SidecarContainers: true}\n", 5],
    ["no version of now", ["--to", "1.37"], "maxPods: 100\n", 2],
    ["a version that is not known", ["--from", "1.36", "--to", "1.99"], "maxPods: 100\n", 2],
    ["what is no version", ["--from", "1.36", "--to", "newest"], "maxPods: 100\n", 2],
    ["a file that is not there", ["--from", "1.36", "--to", "1.37", "--snapshot", "/none"], "maxPods: 100\n", 2],
    ["what is no YAML", ["--from", "1.36", "--to", "1.37"], "maxPods: [\n", 2],
  ])("of %s exits with its exit code", async (_, args, text, exit) => {
    const ran = await run(["upgrade", ...args, "--config", "-"], { input: text });
    expect(ran.code, ran.stderr + ran.stdout).toBe(exit);
    expect(ran.stderr === "").toBe(exit !== 2);
  });

  test("says what to give for bad usage", async () => {
    const reportOf = async (...args: string[]) => (await upgrade(...args)).stderr;
    expect(await reportOf("--config", "x")).toContain("required option '--to <version>'");
    expect(await reportOf("--to", "1.37")).toContain("nothing to check: give --config FILE");
    expect(await reportOf("--to", "1.99", "--config", "x")).toContain(
      "--to: kubelet 1.99 is not known here: the versions are 1.34,",
    );
    const config = written("kubelet.yaml", "maxPods: 100\n");
    expect(await reportOf("--to", "1.37", "--config", config)).toContain("--from is needed");
    const snapshot = realNode("snapshot.json");
    expect(await reportOf("--to", "1.37", "--snapshot", snapshot, "--node", "n1")).toContain("--node uses");
    expect(await reportOf("--to", "1.37", "--since", "soon")).toContain("--since: `soon` is neither a time");
  });

  test("prints findings with their lines in file and command line, and why a gate cannot be kept", async () => {
    const config = written("placed.yaml", "maxPods: 100\nfeatureGates:\n  SidecarContainers: true\n");
    const args = ["--from", "1.36", "--config", config, "--kubelet-args", written("args", "kubelet --containerd=/x\n")];
    const { code, stdout } = await upgrade("--to", "1.37", ...args);
    expect(code).toBe(5);
    expect(stdout).toMatch(/^refuses-start +featureGates\["Sidecar\S+ +\S*placed\.yaml:3 +new +unknown-feature-gate$/m);
    expect(stdout).toMatch(/^refuses-start +--containerd +\S*args:1 +new +removed-flag$/m);
    expect(stdout).toMatch(
      /^SidecarContainers +on, locked +unknown +true \(\S*placed\.yaml:3\) +removed\n {2}no patch is needed/m,
    );
    const { reports } = parsed((await upgrade("--to", "1.37", ...args, "--json")).stdout) as Record<string, object[]>;
    const placed = { field: "--containerd", where: expect.stringMatching(/args:1$/) };
    expect(reports?.[0]).toMatchObject({ starts: [placed, { where: expect.stringMatching(/placed\.yaml:3$/) }] });
    const markdown = async (to: string) => (await upgrade("--to", to, ...args, "-o", "markdown")).stdout;
    expect(await markdown("1.37")).toMatch(
      /^\| refuses-start \| --containerd \| \S*args:1 \| new \| removed-flag \|$/m,
    );
    const back = await markdown("1.35");
    expect(back).toMatch(
      /^- \*\*PLEGOnDemandRelist on unknown\*\*\n {3}- cannot be kept: kubelet 1\.35 does not know it$/m,
    );
    expect(back).toMatch(/^- \*\*1\.36 metric kubelet/m);
  });

  test("merges the drop-ins of --config-dir over --config, and names a finding's file", async () => {
    const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
    const dir = join(scratch, "kubelet.conf.d");
    mkdirSync(dir);
    written("kubelet.conf.d/10-gates.conf", `${head}featureGates:\n  SidecarContainers: true\n`);
    written("kubelet.conf.d/20-other.yaml", "maxPods: [\n");
    const config = written("merged.yaml", "maxPods: 100\n");
    const files = ["--to", "1.37", "--config", config, "--config-dir", dir];
    const own = await upgrade("--from", "1.36", ...files);
    expect([own.code, own.stderr]).toEqual([5, ""]);
    expect(own.stdout).toMatch(
      /^refuses-start +featureGates\["Sidecar\S+ +\S*10-gates\.conf:4 +new +unknown-feature-gate$/m,
    );
    expect((await upgrade("--from", "1.36", "--to", "1.37", "--config", config)).code).toBe(1);
    const asked = ["--node", "n1", "-o", "json"];
    const [stored, posted] = [
      await upgrade(...files, ...asked, "--data-dir", dataDir),
      await upgrade(...files, ...asked, "--api", api.url),
    ];
    expect([stored.code, stored.stderr, posted.stderr]).toEqual([5, "", ""]);
    expect(parsed(posted.stdout)).toEqual(parsed(stored.stdout));
    const alone = await upgrade("--from", "1.36", "--to", "1.37", "--config-dir", dir);
    expect([alone.code, alone.stderr]).toEqual([2, expect.stringContaining("give that with --config FILE")]);
    const linted = async (...args: string[]) =>
      (await run(["lint", "--config", config, "--config-dir", dir, "--kubelet", "1.37", "--json", ...args])).stdout;
    const found = parsed(await linted())["findings"] as object[];
    expect(parsed(await linted("--api", api.url))["findings"]).toEqual(
      found.map((finding) => ({ ...finding, touched: expect.anything() })),
    );
  });

  test("reports an unknown current kubelet and an ignored field in every format", async () => {
    const config = written("newer.yaml", "maxPods: 100\nmemoryReservationPolicy: None\n");
    const args = ["--from", "v1.33.2", "--to", "1.37", "--config", config];
    const why = "kubelet 1.33 is not known here: 1.34 is the nearest that is";
    const caveat = `${why}; what changed between the two is not listed\n`;
    const { code, stdout, stderr } = await upgrade(...args);
    expect([code, stderr]).toEqual([1, ""]);
    expect(stdout).toMatch(/^kubelet 1\.34 \(the nearest known\) -> 1\.37: it would start; some things change\n/);
    expect(stdout).toContain(`\n${caveat}`);
    expect(stdout).toContain("\nWhat kubelet 1.34 alone does not take\n");
    expect(stdout).toMatch(/^error +memoryReservationPolicy +\S*newer\.yaml:2 +unknown-field$/m);
    expect(stdout).toContain('  kubelet: strict decoding error: unknown field "memoryReservationPolicy"\n');
    const markdown = (await upgrade(...args, "-o", "markdown")).stdout;
    expect(markdown).toContain(caveat);
    expect(markdown).toMatch(/^\| error \| memoryReservationPolicy \| \S*newer\.yaml:2 \| unknown-field \|$/m);
    const json = parsed((await upgrade(...args, "--json")).stdout);
    expect(json["reports"]).toMatchObject([
      { from: { version: "1.34", exact: false, why }, startsNow: [{ field: "memoryReservationPolicy" }] },
    ]);
    const same = ["--from", "1.33", "--to", "1.34", "--config", written("plain.yaml", "maxPods: 100\n")];
    expect((await upgrade(...same)).code).toBe(1);
    const asked = [...args, "--node", "n1", "-o", "json"];
    const [stored, posted] = [
      await upgrade(...asked, "--data-dir", dataDir),
      await upgrade(...asked, "--api", api.url),
    ];
    expect([stored.stderr, posted.stderr]).toEqual(["", ""]);
    expect(parsed(posted.stdout)).toEqual(parsed(stored.stdout));
    const counts = "the node reports kubelet v1.36.3, which takes precedence over 1.33";
    expect(parsed(posted.stdout)["reports"]).toMatchObject([{ from: { version: "1.36", exact: true, why: counts } }]);
    const ahead = await upgrade("--from", "1.36", "--to", "1.40", "--config", config);
    expect([ahead.code, ahead.stderr]).toEqual([2, expect.stringContaining("--to: kubelet 1.40 is not known here")]);
  });

  test("prints Markdown for a change request, and JSON", async () => {
    const args = ["--to", "1.37", "--snapshot", realNode("snapshot.json")];
    const { code, stdout } = await upgrade(...args, "-o", "markdown");
    expect(code).toBe(1);
    expect(stdout).toMatch(/^# n1: kubelet 1\.36 -\\> 1\.37: it would start; some things change\n\n/);
    expect(stdout).toContain(
      "\n## Feature gates\n\n| gate | now | then | set | why |\n| --- | --- | --- | --- | --- |\n",
    );
    expect(stdout).toMatch(/^\| MemoryQoS \| off \| on \| {2}\| alpha -\\> beta, on by default \|$/m);
    expect(stdout).toMatch(/^1\. flags of cAdvisor: take them out/m);
    const json = parsed((await upgrade(...args, "--json")).stdout);
    expect(json).toMatchObject({
      to: { version: "1.37" },
      reports: [{ node: "n1", outcome: "changes" }],
      history: null,
    });
  });
});

describe("nodewise upgrade with a history", () => {
  const since = ["--since", "1h"];

  test("reports on all nodes and their decisions by kind, node and pod, with examples and reasons", async () => {
    const { code, stdout, stderr } = await upgrade("--to", "1.37", "--data-dir", dataDir, ...since);
    expect([code, stderr]).toEqual([1, ""]);
    expect(stdout).toMatch(/^n1: kubelet 1\.36 -> 1\.37: it would start/);
    expect(stdout).toContain("\nthe same for 1 other node, apart from their pods: n2\n");
    expect(stdout).toContain("\nn3: kubelet 1.37 -> 1.37: nothing changes\n");
    expect(stdout).toContain("History: 2 of 6 recorded decisions would change; 2 were decided as 1.37 already\n");
    expect(stdout).toMatch(/^cgroups +3 +2 +0 +0$/m);
    expect(stdout).toMatch(/^n2 +2 +1 +0 +0$/m);
    expect(stdout).toMatch(/^cgroups +n1 +shop\/web +1\.36 +decided +decided +[0-9a-f]{32}\n {2}cgroups\["/m);
    expect(stdout).toMatch(/^shop\/web +n2 +1 +cgroups 1$/m);
    expect(stdout).toMatch(/^1\.36 +4 +2 +0 +0\n1\.37 +2 +0 +0 +0$/m);
  });

  test("says when it is interrupted before any comparison, and exits with 130", async () => {
    let child: ReturnType<typeof start> | undefined;
    const { url, close } = await interrupting(api.url, 1, () => interrupted(child?.pid as number));
    child = start(["upgrade", "--to", "1.37", ...since, "--node", "n1", "n2", "--api", url]);
    const ran = await ended(child);
    await close();
    expect(ran).toMatchObject({ code: 130, stdout: "", stderr: "nodewise: interrupted: nothing was compared yet\n" });
  });

  test("reports on named nodes and kinds only, the same over the API", async () => {
    const args = ["--to", "1.37", ...since, "--node", "n1", "n3", "--kind", "cgroups", "-o", "json"];
    const own = await upgrade(...args, "--data-dir", dataDir);
    const asked = await upgrade(...args, "--api", api.url);
    expect([own.code, own.stderr, asked.code, asked.stderr]).toEqual([1, "", 1, ""]);
    const times = { until: expect.any(String) };
    const [a, b] = [parsed(own.stdout), parsed(asked.stdout)];
    expect({ ...a, history: { ...a["history"], ...times } }).toEqual(b);
    expect(a["history"]).toMatchObject({
      byVersion: [
        { recordedUnder: "1.36", replayedUnder: "1.37", replayed: 1, differs: 1 },
        { recordedUnder: "1.37", replayedUnder: "1.37", replayed: 1, same: 1 },
      ],
      pods: [{ node: "n1", pod: "shop/web", count: 1, byKind: { cgroups: 1 } }],
    });
    expect(a).toMatchObject({
      reports: [{ node: "n1" }, { node: "n3" }],
      history: { counts: { replayed: 2, differs: 1 }, nextPageToken: null },
    });
  });

  test("names a node without a version, and goes on with the others, also over the API", async () => {
    const snapshot = { ...snapshotOf("n4", ""), sequence: 2 };
    const headers = { "content-type": "application/json" };
    const stored = await fetch(`${api.url}/v1/nodes/n4/snapshot`, {
      method: "PUT",
      headers,
      body: JSON.stringify(snapshot),
    });
    expect(stored.status).toBeLessThan(300);
    for (const source of [
      ["--data-dir", dataDir],
      ["--api", api.url],
    ]) {
      const { stdout, stderr, code } = await upgrade("--to", "1.37", ...source, "-o", "json");
      expect([code, stderr]).toEqual([1, ""]);
      const why = "--from is needed: no snapshot has the node's kubelet version";
      expect(parsed(stdout)).toMatchObject({
        reports: [{ node: "n1" }, { node: "n2" }, { node: "n3" }],
        unreported: [{ node: "n4", why }],
      });
      const ends = async (...args: string[]) => (await upgrade("--to", "1.37", ...source, ...args)).code;
      expect(await ends("--node", "n3")).toBe(0);
      expect(await ends("--node", "n4")).toBe(3);
      // the node's recorded decisions are compared nevertheless
      const history = await upgrade("--to", "1.37", ...source, "--node", "n4", "--since", "1h", "-o", "json");
      expect([history.code, history.stderr]).toEqual([3, ""]);
      expect(parsed(history.stdout)).toMatchObject({ unreported: [{ node: "n4", why }], history: { counts: {} } });
      expect(await ends("--node", "n3", "n4")).toBe(3);
      expect(await ends("--node", "n1", "n4")).toBe(1);
      // no decision was recorded in that time
      expect(await ends("--node", "n3", "--until", "1h")).toBe(3);
      expect(await ends("--node", "n3", "--since", "1h")).toBe(0);
    }
  });

  test("refuses another kubelet's /configz in the words of decide, for files and nodes", async () => {
    const nodes = captured("node.json");
    nodes.status.nodeInfo.kubeletVersion = "v1.35.1";
    const files = ["--node", written("node35.json", JSON.stringify(nodes)), "--config", realNode("configz.json")];
    const words = (name: string) =>
      `kubeletConfiguration.memoryReservationPolicy: a kubelet 1.35, which node ${name} has, does not know the field, so this is another kubelet's /configz: give that of ${name}`;
    const decided = await run(["decide", "allocatable", ...files]);
    expect([decided.code, decided.stderr]).toEqual([2, expect.stringContaining(words("n1"))]);
    for (const source of [[], ["--api", api.url]]) {
      expect(await run(["lint", ...files, ...source])).toEqual({ ...decided, stdout: "" });
    }
    const configz = captured("configz.json");
    for (const [node, more] of Object.entries({ n5: {}, n6: { kubeletConfiguration: configz } })) {
      const stored = await fetch(`${api.url}/v1/nodes/${node}/snapshot`, {
        method: "PUT",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ...snapshotOf(node, "v1.35.1"), sequence: 2, ...more }),
      });
      expect(stored.status).toBeLessThan(300);
    }
    const config = ["--config", realNode("configz.json")];
    for (const source of [
      ["--data-dir", dataDir],
      ["--api", api.url],
    ]) {
      // the configuration is given with the command, or it is stored with the node
      for (const [node, given] of [["n5", config] as const, ["n6", []] as const]) {
        const { code, stdout } = await upgrade("--to", "1.37", "--node", node, ...given, ...source, "--json");
        expect([code, parsed(stdout)["unreported"]]).toEqual([3, [{ node, why: words(node) }]]);
        const linted = await run(["lint", "--node-name", node, ...given, ...source]);
        expect([linted.code, linted.stderr]).toEqual([2, expect.stringContaining(words(node))]);
      }
    }
    const change = capturedText("configz.json");
    for (const [path, texts] of [
      ["lint", { node: "n5", change, kubelet: "", args: "" }],
      ["upgrade", { node: "n5", change, to: "1.37", from: "", dropIns: "", args: "" }],
    ] as const) {
      const form = new FormData();
      for (const [name, text] of Object.entries(texts)) form.set(name, text);
      const response = await fetch(`${api.url}/${path}`, { method: "POST", body: form });
      const page = (await response.text()).replaceAll("&#39;", "'");
      expect([response.status, page]).toEqual([400, expect.stringContaining(words("n5"))]);
    }
  });

  test("uses a configuration in place of a node's own, and reports unknown nodes", async () => {
    const config = written("gone.yaml", "featureGates: {SidecarContainers: true}\n");
    const ran = await upgrade("--to", "1.37", "--config", config, "--node", "n1", "--data-dir", dataDir);
    expect(ran.code).toBe(5);
    expect(ran.stdout).toContain("unrecognized feature gate: SidecarContainers");
    const lost = await upgrade("--to", "1.37", "--node", "n11", "--data-dir", dataDir);
    expect(lost).toMatchObject({ code: 2, stdout: "" });
    expect(lost.stderr).toContain("--node n11: the history has no such node: did you mean");
    const asked = await upgrade("--to", "1.37", "--node", "n11", "--api", api.url);
    expect(asked).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("unknown_node") });
    const folder = await upgrade("--to", "1.37", ...since, "--data-dir", join(scratch, "empty"));
    expect(folder.code).toBe(4);
    const bad = await upgrade("--to", "1.37", "--data-dir", dataDir, "--page-token", "x", "--node", "n1");
    expect(bad.code).toBe(2);
    expect(bad.stderr).toContain("--page-token: the page token is not one");
  });
});
