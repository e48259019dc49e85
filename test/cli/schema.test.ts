import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { SCHEMAS } from "../../api/cli/schema/command.ts";
import { PUBLISHED } from "../../api/cli/schema/output-schemas.ts";
import { KINDS } from "../../api/model/decision.ts";
import { historyFile } from "../../db/open/node.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import { decisionRow, value as stored } from "../contract/store-rows.ts";
import { startedApi } from "../kit/api.ts";
import { captured, realNode } from "../kit/real-node.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { manifest, run } from "./run.ts";

type Json = Record<string, unknown>;
const printed = async (name: string): Promise<Json> => {
  const { code, stdout, stderr } = await run(["schema", name]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout) as Json;
};
const outputOf = async (...args: readonly string[]): Promise<unknown> => {
  const { stdout, stderr } = await run([...args, "-o", "json"]);
  expect(stdout, stderr).not.toBe("");
  return JSON.parse(stdout);
};
const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
function faultsOf(schema: Json, value: unknown): readonly unknown[] {
  const isValid = ajv.compile(schema);
  return isValid(value) ? [] : (isValid.errors ?? []);
}

const SNAPSHOT = ["--snapshot", realNode("snapshot.json")];
const POD = ["--pod", manifest("trader.yaml")];
const RUNTIME = ["images", "containers", "sandboxes", "imagefs"].flatMap((part) => [
  `--${part}`,
  realNode(`${part}.json`),
]);
/** The arguments that some kinds need in addition to the snapshot; a kind may still refuse its request. */
const ASKED: Readonly<Record<string, readonly string[]>> = {
  cpus: POD,
  memory: POD,
  topology: POD,
  devices: POD,
  admission: POD,
  preemption: POD,
  "image-gc": RUNTIME,
  "container-gc": RUNTIME,
  probes: [...POD, "--outcomes", "ok,fail*3"],
};

describe("nodewise schema", () => {
  test.each(KINDS)("%s fits what `decide` prints", async (kind) => {
    const schema = await printed(kind);
    const answer = (await outputOf("decide", kind, ...SNAPSHOT, ...(ASKED[kind] ?? []))) as Json;
    expect(faultsOf(schema, answer)).toEqual([]);
    if ("decision" in answer) {
      expect(faultsOf(schema, { ...answer, decision: {} })).not.toEqual([]);
      expect(faultsOf(schema, { ...answer, more: 1 })).not.toEqual([]);
    }
    const change = ["--set", 'evictionHard["memory.available"]=1Gi'];
    expect(faultsOf(schema, await outputOf("decide", kind, ...SNAPSHOT, ...(ASKED[kind] ?? []), ...change))).toEqual(
      [],
    );
    const other = KINDS.find((one) => one !== kind) as string;
    expect(faultsOf(schema, { ...answer, kind: other })).not.toEqual([]);
  });
  test("dra-drivers fits what --dra-drivers accepts, and nothing else", async () => {
    const schema = await printed("dra-drivers");
    const drivers = parse(readFileSync("test/data/gpu-claim/drivers.yaml", "utf8"));
    expect(faultsOf(schema, drivers)).toEqual([]);
    expect(faultsOf(schema, [{ name: "gpu.example.com", regstered: true }])).not.toEqual([]);
  });
  test("of a kind fits a refusal too", async () => {
    const refusal = (await outputOf("decide", "admission", ...SNAPSHOT)) as Json;
    expect(refusal).toHaveProperty("refusal.code", "needs_input");
    expect(faultsOf(await printed("admission"), refusal)).toEqual([]);
  });
  test("snapshot fits what `snapshot` prints", async () => {
    expect(faultsOf(await printed("snapshot"), await outputOf("snapshot"))).toEqual([]);
  });
  test.each([...PUBLISHED.keys()])("%s refers to nothing outside itself", async (name) => {
    const schema = await printed(name);
    const refs = [...JSON.stringify(schema).matchAll(/"\$ref":"([^"]+)"/g)].map(([, to = ""]) => to);
    const { $defs } = schema as { $defs: Json };
    expect(refs.filter((to) => !(to.slice("#/$defs/".length) in $defs))).toEqual([]);
    expect(Object.keys($defs).filter((name) => !refs.includes(`#/$defs/${name}`))).toEqual([]);
  });
  test("without a name lists all, and suggests one for an unknown name", async () => {
    const { stdout } = await run(["schema"]);
    expect([...PUBLISHED.keys()]).toEqual(SCHEMAS);
    for (const name of PUBLISHED.keys()) expect(stdout).toMatch(new RegExp(`^${name} +(?:nodewise|a file) `, "m"));
    expect((await run(["schema", "nothing"])).stderr).toContain("no such schema; `nodewise schema` lists them\n");
    expect(await run(["schema", "alocatable"])).toMatchObject({
      code: 2,
      stderr: "nodewise: schema alocatable: no such schema; did you mean allocatable?\n",
    });
  });
});

describe("nodewise schema for recorded decisions", () => {
  const scratch = scratchFolder();
  const dataDir = join(scratch, "history");
  const config = join(scratch, "kubelet.yaml");
  const ofHistory = ["--data-dir", dataDir];
  let id: string;
  beforeAll(async () => {
    writeFileSync(config, "kubeReserved:\n  cpu: 200m\nmaxPod: 20\nevictionHard:\n  memory.available: 10Gi\n");
    const api = await startedApi({ dataDir });
    const post = async (method: string, path: string, body: string): Promise<{ readonly id: string }> => {
      const headers = { "content-type": "application/json" };
      const response = await fetch(`${api.url}${path}`, { method, headers, body });
      expect(response.ok).toBe(true);
      return (await response.json()) as { id: string };
    };
    const snapshot = captured("snapshot.json") as Json;
    const at = { ...snapshot, observedAt: "2026-11-21T06:26:20Z" };
    for (const kind of ["allocatable", "cgroups", "eviction"])
      ({ id } = await post("POST", `/v1/decisions/${kind}`, JSON.stringify({ snapshot: at })));
    const pod = {
      metadata: { namespace: "shop", name: "web", uid: "w" },
      spec: { containers: [{ name: "c", image: "i" }] },
    };
    await post("POST", "/v1/decisions/admission", JSON.stringify({ snapshot: at, ask: { pod } }));
    const report = readFileSync(new URL("../data/real-outcomes/report.json", import.meta.url), "utf8");
    await post("POST", "/v1/nodes/n1/outcomes", report);
    await api.close();
    const store = stored(openNode({ file: historyFile(dataDir) }));
    stored(
      await store.record({ decision: decisionRow({ id: "0".repeat(32), node: "n3", kind: "cgroups", body: "{torn" }) }),
    );
    await store.close();
  });

  test.each([
    ["lint", ["lint", config]],
    ["lint", ["lint", "--config", config, "--snapshot", realNode("snapshot.json")]],
    ["history", ["history", ...ofHistory]],
    ["upgrade", ["upgrade", "--to", "1.37", "--from", "1.36", "--config", config, ...ofHistory]],
    ["upgrade", ["upgrade", "--to", "1.37", "--node", "n1", ...ofHistory]],
    ["agreement", ["agreement", "--since", "2026-11-01", "--verdict", "all", ...ofHistory]],
  ])("%s fits what `%s` prints", async (name, args) => {
    const [schema, answer] = [await printed(name), await outputOf(...args)];
    expect(faultsOf(schema, answer)).toEqual([]);
    expect(JSON.stringify(answer).length).toBeGreaterThan(100);
    expect(faultsOf(schema, { ...(answer as Json), more: 1 })).not.toEqual([]);
  });

  test("gives an admitted pod the verdict admitted, by which it is found", async () => {
    const listed = (await outputOf("history", "--verdict", "admitted", ...ofHistory)) as readonly Json[];
    expect(listed.map(({ kind, verdict }) => [kind, verdict])).toEqual([["admission", "admitted"]]);
    expect(((await outputOf("history", ...ofHistory)) as readonly Json[]).map(({ verdict }) => verdict)).toContain(
      "decided",
    );
  });

  test("history-show fits a recorded decision", async () => {
    const [schema, answer] = [
      await printed("history-show"),
      (await outputOf("history", "show", id, ...ofHistory)) as Json,
    ];
    expect(faultsOf(schema, answer)).toEqual([]);
    expect(faultsOf(schema, { ...answer, kind: "cpus" })).not.toEqual([]);
  });

  test("replay fits each line of `replay --json`", async () => {
    const schema = await printed("replay");
    const { stdout } = await run(["replay", "--json", "--set", "maxPods=7", ...ofHistory]);
    const lines = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Json);
    for (const line of lines) expect(faultsOf(schema, line)).toEqual([]);
    const message = JSON.stringify(lines);
    for (const part of ["differences", "unreadable", "summary"]) expect(message).toContain(`"${part}":`);
    expect(faultsOf(schema, { summary: {} })).not.toEqual([]);
  });
});
