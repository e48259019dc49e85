import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { outcomeText } from "../../api/cli/agreement/agreement.ts";
import type { ListedOutcome } from "../../api/http/agreement.ts";
import { plainPaint } from "../../api/text/style.ts";
import { sharedApi } from "../kit/api.ts";
import { captured } from "../kit/real-node.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { run } from "./run.ts";

const REPORT = readFileSync(new URL("../data/real-outcomes/report.json", import.meta.url), "utf8");
const SINCE = ["--since", "2026-11-01"];

describe("nodewise agreement", () => {
  const scratch = scratchFolder();
  const env = { NODEWISE_DATA_DIR: join(scratch, "history") };
  const api = sharedApi({ dataDir: env.NODEWISE_DATA_DIR });
  const send = async (method: string, path: string, body: string): Promise<void> => {
    const response = await fetch(`${api.url}${path}`, {
      method,
      headers: { "content-type": "application/json" },
      body,
    });
    expect(response.status, await response.text()).toBe(201);
  };
  beforeAll(async () => {
    const snapshot = captured("snapshot.json");
    const whole = { ...snapshot, observedAt: "2026-11-21T06:26:20Z" };
    // the second snapshot lacks one pod
    const pods = snapshot.pods.filter((pod: { metadata: { name: string } }) => pod.metadata.name !== "guar-frac");
    const lacking = { ...snapshot, observedAt: "2026-11-21T06:26:45Z", pods };
    for (const body of [whole, lacking]) await send("PUT", "/v1/nodes/n1/snapshot", JSON.stringify(body));
    await send("POST", "/v1/nodes/n1/outcomes", REPORT);
  });

  test("prints the same from a data directory and from a running API: counts, share and differences", async () => {
    const own = await run(["agreement", ...SINCE], { env });
    const asked = await run(["agreement", ...SINCE, "--api", api.url]);
    expect([own.code, own.stderr]).toEqual([1, ""]);
    expect(asked).toEqual(own);
    const lines = own.stdout.split("\n");
    expect(lines.slice(0, 9)).toEqual([
      "KIND       AGREES  DIFFERS  NOT COMPARABLE   SHARE",
      "admission      13        5               0  72.2 %  ██████████████××××××",
      "█ agrees   × differs   · not comparable; the share is of those that could be compared",
      "",
      "2026-11-21T06:26:56.000Z  n1  admission  default/x-gate  differs",
      "  used: kubelet 1800, nodewise 1600",
      "  kubelet:   starts true, requested 1, used 1800, capacity 1800, admitted false, reason OutOfcpu, message Node didn't have enough resource: cpu, requested: 1, used: 1800, capacity: 1800",
      "  nodewise:  starts true, requested 1, used 1600, capacity 1800, admitted true",
      expect.stringMatching(/^ {2}snapshot [0-9a-f]{32}, 11s before, kubelet-1\.36\+\d+$/),
    ]);
    expect(lines.filter((line) => line.endsWith("differs"))).toHaveLength(5);
  });

  test("filters, limits and prints JSON, and exits with 0 without a difference", async () => {
    const json = async (...args: string[]) => {
      const { code, stdout } = await run(["agreement", ...SINCE, ...args, "-o", "json"], { env });
      return { code, ...JSON.parse(stdout) };
    };
    const agreeing = await json("--until", "2026-11-21T06:26:44Z", "--verdict", "agrees", "--limit", "3");
    expect(agreeing).toMatchObject({ code: 0, kinds: [{ kind: "admission", agrees: 13, differs: 0, share: 1 }] });
    expect(agreeing.outcomes).toHaveLength(3);
    expect(await json("--node", "n1", "--kind", "eviction")).toMatchObject({ code: 0, kinds: [], outcomes: [] });
    const limited = await run(["agreement", ...SINCE, "--limit", "2"], { env });
    expect(limited.stderr).toBe("3 more; --limit shows them\n");
    const none = await run(["agreement", "--since", "1s"], { env });
    expect([none.code, none.stdout, none.stderr]).toEqual([0, "", "no outcomes of kubelets are recorded for this\n"]);
  });

  test("lists all outcomes of one reason as a table or file, from a data directory or an API", async () => {
    const asked = ["agreement", ...SINCE, "--reason", "OutOfmemory"];
    const file = await run([...asked, "-o", "csv"], { env });
    expect(file.code).toBe(0);
    const [head, ...lines] = file.stdout.trimEnd().split("\r\n");
    expect(head).toMatch(/^at,node,kind,verdict,reason,namespace,pod,podUid,message,differsIn,/);
    expect(lines).toEqual([
      expect.stringMatching(/,n1,admission,agrees,OutOfmemory,default,.*Node didn't have enough/),
    ]);
    expect(await run([...asked, "-o", "csv", "--api", api.url])).toEqual(file);
    // the options list all outcomes or only some of them
    expect((await run(asked, { env })).stdout).toContain("  agrees\n");
    const none = await run([...asked, "--verdict", "differs"], { env });
    expect(none.stdout).not.toContain("  agrees\n");
    const cpu = await run(["agreement", ...SINCE, "--reason", "OutOfcpu", "--limit", "500", "-o", "csv"], { env });
    expect(cpu.stdout.trimEnd().split("\r\n")).toHaveLength(17);
    const json = async (...args: string[]) =>
      JSON.parse((await run([...asked, ...args, "-o", "json"], { env })).stdout);
    const { pod } = (await json()).outcomes[0];
    for (const one of [pod.uid, pod.name, `${pod.namespace}/${pod.name}`])
      expect((await json("--pod", one)).outcomes).toHaveLength(1);
    expect((await json("-n", pod.namespace)).outcomes).toHaveLength(1);
    expect((await json("-n", "other")).outcomes).toEqual([]);
  });

  test("is suggested by `nodewise history` when only kubelets, and no decision, have the reason", async () => {
    const hint = (more: string) =>
      `no such decisions\nkubelets did that: nodewise agreement --reason OutOfcpu${more}\n`;
    const asked = ["history", "--reason", "OutOfcpu", ...SINCE];
    const own = await run(asked, { env });
    expect([own.code, own.stdout, own.stderr]).toEqual([
      0,
      "",
      hint(` --since 2026-11-01 --data-dir ${env.NODEWISE_DATA_DIR}`),
    ]);
    const ofApi = await run([...asked, "--node", "n1", "--api", api.url]);
    expect(ofApi.stderr).toBe(hint(` --node n1 --since 2026-11-01 --api ${api.url}`));
    const command = own.stderr.split("nodewise ")[1]?.trim().split(" ") ?? [];
    expect((await run(command, { env })).stdout).toContain("OutOfcpu");
    expect((await run([...asked, "-o", "csv"], { env })).stderr).toContain("nodewise agreement --reason OutOfcpu");
    for (const more of [
      ["--until", "2026-11-02"],
      ["--reason", "OutOfpods"],
    ])
      expect((await run([...asked, ...more], { env })).stderr).toMatch(/^(?:no such decisions\n)?$/);
    expect((await run(["history", "--kind", "admission"], { env })).stderr).toBe("no such decisions\n");
    expect(await run([...asked, "--node", "other"], { env })).toMatchObject({ code: 2, stdout: "" });
  });

  test("reports invalid arguments", async () => {
    const fault = async (...args: string[]) => {
      const { code, stderr } = await run(["agreement", ...args], { env });
      return [code, stderr];
    };
    expect(await fault("--since", "yesterday")).toEqual([2, expect.stringContaining("--since: `yesterday`")]);
    expect(await fault("--kind", "cpus")).toEqual([2, expect.stringContaining("admission, preemption")]);
    expect(await fault("--data-dir", join(scratch, "nowhere"))).toEqual([4, expect.stringContaining("no history")]);
    expect(await fault("--node", "n11")).toEqual([2, expect.stringMatching(/no such node: did you mean n1/)]);
    expect(await fault("--node", "n11", "--api", api.url)).toEqual([2, expect.stringContaining("404 unknown_node")]);
    expect(await fault("--api", "http://127.0.0.1:1")).toEqual([4, expect.stringContaining("does not answer")]);
  });
});

describe("the text of one outcome", () => {
  const listed = (over: Partial<ListedOutcome>): ListedOutcome => ({
    id: "0",
    node: "n\u001b[31m1",
    kind: "eviction",
    verdict: "not-comparable",
    at: "2026-01-31T12:00:00.000Z",
    recordedAt: "2026-01-31T12:00:01.000Z",
    pod: { namespace: "shop", name: "web", uid: "u" },
    reason: "Evicted",
    outcome: null,
    comparison: {
      verdict: "not-comparable",
      snapshotId: null,
      snapshotAgeMs: null,
      policyVersion: null,
      kubelet: { pod: "shop/web", reason: "" },
      nodewise: null,
      measured: [{ field: "available", kubelet: 5, nodewise: null }],
      difference: null,
      why: { code: "signal_moved", message: "too early", missing: ["stats"] },
    },
    ...over,
  });
  test("says why it cannot be compared, and cannot control the terminal", () => {
    const lines = outcomeText(listed({}), { columns: 80, paint: plainPaint } as never).split("\n");
    expect(lines).toEqual([
      "2026-01-31T12:00:00.000Z  n␛[31m1  eviction  shop/web  not-comparable",
      "  signal_moved: stats; too early",
      "  kubelet:   pod shop/web, reason –",
      "  measured: available: kubelet 5, nodewise –",
      "",
    ]);
  });
  test("of another version shows its head only", () => {
    const text = outcomeText(listed({ comparison: null, pod: null, kind: "shutdown" }), {
      columns: 80,
      paint: plainPaint,
    } as never);
    expect(text).toContain("shutdown  not-comparable\n  (another version recorded it)");
  });
});
