import { createHash } from "node:crypto";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { beforeAll, describe, expect, test } from "vitest";
import { NEWEST } from "../../api/profiles/index.ts";
import { historyFile } from "../../db/open/node.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import { exampleSnapshot } from "../contract/api-subject.ts";
import { value } from "../contract/store-rows.ts";
import { sharedApi } from "../kit/api.ts";
import { captured } from "../kit/real-node.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { run } from "./run.ts";

const scratch = scratchFolder();

const SNAPSHOT = { node: captured("node.json"), pods: [], cgroup: { version: 2 } };
const post = (url: string, kind: string, snapshot: unknown, token?: string) =>
  fetch(`${url}/v1/decisions/${kind}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ snapshot }),
  });

describe("history and tokens", () => {
  const env = { NODEWISE_DATA_DIR: join(scratch, "history") };
  const api = sharedApi({ dataDir: env.NODEWISE_DATA_DIR });
  beforeAll(async () => {
    for (const name of ["n1", "n2"]) {
      const snapshot = exampleSnapshot(name);
      for (const kind of ["allocatable", "cgroups"]) expect((await post(api.url, kind, snapshot)).status).toBe(200);
    }
    const refused = { ...SNAPSHOT, kubeletConfiguration: { enforceNodeAllocatable: ["kube-reserved"] } };
    expect((await post(api.url, "allocatable", refused)).status).toBe(200);
  });

  test("a data directory and a running API list the same decisions, newest first", async () => {
    const own = await run(["history", "-o", "json"], { env });
    const asked = await run(["history", "--api", api.url, "-o", "json"]);
    expect([own.code, own.stderr, asked.code, asked.stderr]).toEqual([0, "", 0, ""]);
    const decisions = JSON.parse(own.stdout);
    expect(decisions).toHaveLength(5);
    const byId = (list: { id: string }[]) => list.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    expect(byId(JSON.parse(asked.stdout))).toEqual(byId(decisions));
    const times = decisions.map((d: { decidedAt: string }) => d.decidedAt);
    expect(times).toEqual(times.toSorted().reverse());
  });

  test("decisions of one kubelet version can be selected, from a data directory and an API", async () => {
    const policies = async (...args: string[]) => {
      const { stdout, stderr } = await run(["history", "-o", "json", ...args], { env });
      return [JSON.parse(stdout).map(({ policyVersion }: { policyVersion: string }) => policyVersion), stderr];
    };
    for (const source of [[], ["--api", api.url]]) {
      const [newest] = await policies("--kubelet", NEWEST.version, ...source);
      expect(newest).toHaveLength(4);
      expect(new Set(newest.map((policy: string) => policy.split("+")[0]))).toEqual(
        new Set([`kubelet-${NEWEST.version}`]),
      );
      expect(await policies("--kubelet", "v1.35.4", ...source)).toEqual([[], ""]);
    }
    const unknown = await run(["history", "--kubelet", "1.99"], { env });
    expect([unknown.code, unknown.stderr]).toEqual([
      2,
      expect.stringContaining("--kubelet: kubelet 1.99 is not known"),
    ]);
    expect((await run(["history", "--kubelet", "newest"], { env })).code).toBe(2);
  });

  test("a decision is shown the same from a data directory and an API, with its reasons", async () => {
    const [first] = JSON.parse((await run(["history", "--kind", "cgroups", "-o", "json"], { env })).stdout);
    const own = await run(["history", "show", first.id], { env });
    const asked = await run(["history", "show", first.id, "--api", api.url]);
    expect([own.code, own.stderr, asked.code, asked.stderr]).toEqual([0, "", 0, ""]);
    expect(own.stdout).toBe(asked.stdout);
    expect(own.stdout).toContain(first.id);
    expect(own.stdout).toMatch(/cpuShares: /);
    const json = JSON.parse((await run(["history", "show", first.id, "-o", "json"], { env })).stdout);
    expect(json).toMatchObject({ id: first.id, kind: "cgroups", results: [] });
    const full = await run(["history", "show", first.id, "--explain", "full"], { env });
    expect(full.stdout.length).toBeGreaterThan(own.stdout.length);
    for (const args of [[], ["--api", api.url]]) {
      const none = await run(["history", "show", "none", ...args], { env });
      expect([none.code, none.stdout]).toEqual([2, ""]);
      expect(none.stderr).toContain("there is no decision `none`");
    }
  });

  test("at 80 columns id and time are shortened, and the beginning of an id finds its decision", async () => {
    const { stdout } = await run(["history"], { env: { ...env, COLUMNS: "80" } });
    const lines = stdout.trimEnd().split("\n");
    expect(lines.every((line) => line.length <= 80)).toBe(true);
    const [, short = ""] = / {2}([0-9a-f]{12})$/.exec(lines[1] ?? "") ?? [];
    for (const args of [[], ["--api", api.url]]) {
      const shown = await run(["history", "show", short, ...args, "-o", "json"], { env });
      expect([shown.code, JSON.parse(shown.stdout).id.slice(0, 12)]).toEqual([0, short]);
      const few = await run(["history", "show", short.slice(0, 7), ...args], { env });
      expect([few.code, few.stderr]).toEqual([2, expect.stringContaining("there is no decision")]);
    }
  });

  test("filters work in both places, and pages are joined up to the limit", async () => {
    const list = async (...args: string[]) =>
      JSON.parse((await run(["history", "-o", "json", ...args], { env })).stdout);
    for (const where of [[], ["--api", api.url]]) {
      const [ofNode, refused, few, recent, old] = await Promise.all([
        list(...where, "--node", "n2"),
        list(...where, "--kind", "allocatable", "--verdict", "kubelet-refuses"),
        list(...where, "--limit", "3"),
        list(...where, "--since", "1h"),
        list(...where, "--until", "1h"),
      ]);
      expect([ofNode.length, refused.length, few.length, recent.length, old.length]).toEqual([2, 1, 3, 5, 0]);
      expect(refused).toMatchObject([{ node: "n1", verdict: "kubelet-refuses" }]);
    }
  });

  test("decisions are printed as a table", async () => {
    const { stdout } = await run(["history", "--verdict", "kubelet-refuses"], { env });
    const [header, row] = stdout.split("\n");
    expect(header).toMatch(/^DECIDED +NODE +KIND +VERDICT +POLICY +ID$/);
    expect(row).toMatch(/^\d{4}-\d\d-\d\dT\S+Z +n1 +allocatable +kubelet-refuses +kubelet-\S+ +[0-9a-f]{32}$/);
  });

  test("a decision made by the nearest kubelet version is shown as such in both places", async () => {
    const idOf = async (kubeletVersion: string): Promise<string> => {
      const snapshot = structuredClone(SNAPSHOT);
      snapshot.node.metadata.name = "old";
      snapshot.node.status.nodeInfo.kubeletVersion = kubeletVersion;
      const answer = await post(api.url, "allocatable", snapshot);
      return ((await answer.json()) as { id: string }).id;
    };
    const [id, own] = [await idOf("v1.33.13"), await idOf("v1.36.3")];
    for (const source of [[], ["--api", api.url]]) {
      const shown = await run(["history", "show", id, ...source], { env });
      expect(shown.stdout).toContain(
        "\nanswered as kubelet 1.34: kubelet 1.33 is not known here: 1.34 is the nearest that is\ndecided ",
      );
      expect((await run(["history", "show", own, ...source], { env })).stdout).not.toContain("answered as");
    }
  });

  test("invalid arguments are reported in one line", async () => {
    const faults = [
      [["--since", "yesterday"], 2, /^nodewise: --since: `yesterday` is neither a time/],
      [["--api", "ftp://x"], 2, /^nodewise: --api: `ftp:\/\/x` is not an address/],
      [["--api", "http://127.0.0.1:1"], 4, /^nodewise: http:\/\/127\.0\.0\.1:1 does not answer/],
      [["--api", api.url, "--node", "n9"], 2, /answered 404 unknown_node: /],
      [
        ["--data-dir", join(scratch, "history"), "--node", "n9"],
        2,
        /^nodewise: --node n9: the history has no such node/,
      ],
      [["--data-dir", join(scratch, "nowhere")], 4, /^nodewise: there is no history at .*nowhere/],
    ] as const;
    for (const [args, code, message] of faults) {
      const ran = await run(["history", ...args]);
      expect(ran).toMatchObject({ code, stdout: "" });
      expect(ran.stderr).toMatch(message);
      expect(ran.stderr.trimEnd().split("\n")).toHaveLength(1);
    }
    expect(() => statSync(join(scratch, "nowhere"))).toThrow("ENOENT");
  });

  test.each([
    [["--scope", "decide,read"]],
    [["--scope", "decide", "read"]],
    [["--scope", "decide", "--scope", "read"]],
    [[]],
  ])("a token created with %j may decide and read", async (args) => {
    const made = await run(["token", "create", "t", ...args, "--data-dir", join(scratch, "scopes")]);
    expect(made).toMatchObject({ code: 0, stderr: expect.stringContaining(", scope decide, read. ") });
  });
  test("a token created with --print opens no history, and prints the SQL that stores it", async () => {
    const folder = join(scratch, "elsewhere");
    const print = ["token", "create", "it's a node's", "--scope", "decide", "--node", "n1", "--print"];
    const printed = await run([...print, "-o", "json"], { env: { NODEWISE_DATA_DIR: folder } });
    expect(printed.code).toBe(0);
    expect(existsSync(folder)).toBe(false);
    const { token, sql } = JSON.parse(printed.stdout) as { readonly token: string; readonly sql: string };
    const store = value(openNode({ file: historyFile(folder) }));
    new Sqlite(historyFile(folder)).exec(sql).close();
    expect(value(await store.findToken(token.slice(3, 15)))).toMatchObject({
      hash: createHash("sha256").update(token).digest("hex"),
      name: "it's a node's",
      scopes: ["decide"],
      node: "n1",
      revokedAtMs: null,
    });
    await store.close();
    const shown = await run(print);
    expect(shown).toMatchObject({ code: 0, stdout: expect.stringMatching(/^nw_[0-9a-f]{12}_[0-9a-f]{48}\n$/) });
    expect(shown.stderr).toContain("npx wrangler d1 execute DB --remote --command 'INSERT INTO");
  });
  test("an unknown scope is bad usage", async () => {
    const made = await run(["token", "create", "t", "--scope", "decide,write", "--data-dir", join(scratch, "scopes")]);
    expect(made).toMatchObject({ code: 2, stdout: "" });
    expect(made.stderr).toContain("Allowed choices are decide, read, admin.");
  });

  test("why for an unknown pod is bad input, from a data directory and an API", async () => {
    const own = ["--data-dir", env["NODEWISE_DATA_DIR"] ?? ""];
    for (const where of [own, ["--api", api.url]]) {
      const { code, stderr } = await run(["why", "nobody", ...where]);
      expect([code, stderr]).toEqual([2, expect.stringContaining("no pod `nobody`")]);
    }
  });

  test("the API requires a token once one exists, and refuses a revoked one", async () => {
    const none = await run(["token", "list"], { env });
    expect(none).toMatchObject({
      code: 0,
      stdout: "",
      stderr: "no tokens: on loopback every caller may use the API\n",
    });
    const made = await run(["token", "create", "reader of n1", "--scope", "read", "--node", "n1"], { env });
    expect(made.stdout).toMatch(/^nw_[0-9a-f]{12}_[0-9a-f]{48}\n$/);
    const token = made.stdout.trim();
    const id = token.split("_")[1] as string;
    expect(made.stderr).toBe(`token ${id} for node n1, scope read. It is shown only now; keep it secret.\n`);

    const without = await run(["history", "--api", api.url]);
    expect(without).toMatchObject({ code: 4, stdout: "" });
    expect(without.stderr).toContain("answered 401 unauthorized");
    const file = join(scratch, "token");
    writeFileSync(file, `${token}\n`);
    for (const [args, env] of [
      [[], { NODEWISE_TOKEN: token }],
      [["--token-file", file], {}],
    ] as const) {
      const { stdout } = await run(["history", "--api", api.url, "-o", "json", ...args], { env });
      expect(JSON.parse(stdout)).toHaveLength(3);
    }
    expect((await post(api.url, "allocatable", SNAPSHOT, token)).status).toBe(403);

    const listed = JSON.parse((await run(["token", "list", "-o", "json"], { env })).stdout);
    expect(listed).toMatchObject([{ id, name: "reader of n1", scopes: ["read"], node: "n1", revokedAt: null }]);
    expect(JSON.stringify(listed)).not.toMatch(/[0-9a-f]{48}/);
    expect(await run(["token", "revoke", id], { env })).toMatchObject({ code: 0, stdout: "" });
    expect((await run(["token", "revoke", id], { env })).code).toBe(2);
    expect((await run(["token", "list"], { env })).stdout).toMatch(new RegExp(`^${id} .*Z\\n$`, "m"));
    const revoked = await run(["history", "--api", api.url, "--token-file", file]);
    expect(revoked.code).toBe(4);
    expect(revoked.stderr).toMatch(/answered 401 unauthorized: .*revoked/);
  });

  test("a token is revoked by name if one active token has it, otherwise the ids are listed", async () => {
    const env = { NODEWISE_DATA_DIR: scratchFolder() };
    const create = async (name: string): Promise<string> => {
      const { stdout } = await run(["token", "create", name, "-o", "json"], { env });
      return (JSON.parse(stdout) as { id: string }).id;
    };
    const revoke = (which: string) => run(["token", "revoke", which], { env });
    const ci = await create("ci");
    expect(await revoke("ci")).toMatchObject({
      code: 0,
      stdout: "",
      stderr: expect.stringMatching(
        new RegExp(`^token ${ci} \\(ci\\) is revoked\nno token is active: .*token open --to-everyone.*\n$`),
      ),
    });
    expect(await revoke("ci")).toMatchObject({ code: 2, stdout: "" });
    const twins = [await create("ci"), await create("ci")];
    const refused = await revoke("ci");
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toMatch(/^nodewise: 2 active tokens have the name ci: name one by its id: /);
    for (const id of twins) expect(refused.stderr).toContain(id);
    expect((await revoke(twins[0] as string)).code).toBe(0);
    // one active token with this name remains, and one whose name is the id of another token
    const named = await create(twins[1] as string);
    expect((await revoke(twins[1] as string)).stderr).toBe(`token ${twins[1]} (ci) is revoked\n`);
    expect((await revoke("ci")).code).toBe(2);
    const open = (...args: string[]) => run(["token", "open", ...args], { env });
    expect(await open("--to-everyone")).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^nodewise: 1 token is active/),
    });
    expect((await revoke(named)).code).toBe(0);
    expect(await open()).toMatchObject({ code: 2, stderr: expect.stringContaining("give --to-everyone") });
    expect((await run(["token", "list"], { env })).stderr).toMatch(/^no token is active: /);
    expect(await open("--to-everyone")).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^4 revoked tokens are/),
    });
    expect((await run(["token", "list"], { env })).stderr).toMatch(/^no tokens: on loopback every caller/);
  });
});
