import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { PUBLISHED } from "../../api/cli/schema/output-schemas.ts";
import { KINDS } from "../../api/model/decision.ts";
import { manifest, realNode, run } from "./run.ts";

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
/** What is asked of each kind, and what it refuses for want of something. */
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
  test.each(KINDS)("of %s is that of what `decide` prints", async (kind) => {
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
  test("of a refusal too", async () => {
    const refusal = (await outputOf("decide", "admission", ...SNAPSHOT)) as Json;
    expect(refusal).toHaveProperty("refusal.code", "needs_input");
    expect(faultsOf(await printed("admission"), refusal)).toEqual([]);
  });
  test("of a snapshot is that of what `snapshot` prints", async () => {
    expect(faultsOf(await printed("snapshot"), await outputOf("snapshot"))).toEqual([]);
  });
  test.each([...PUBLISHED.keys()])("of %s refers to nothing outside of itself", async (name) => {
    const schema = await printed(name);
    const refs = [...JSON.stringify(schema).matchAll(/"\$ref":"([^"]+)"/g)].map(([, to = ""]) => to);
    const { $defs } = schema as { $defs: Json };
    expect(refs.filter((to) => !(to.slice("#/$defs/".length) in $defs))).toEqual([]);
    expect(Object.keys($defs).filter((name) => !refs.includes(`#/$defs/${name}`))).toEqual([]);
  });
  test("lists them, and says so of a name that there is not", async () => {
    const { stdout } = await run(["schema"]);
    for (const name of PUBLISHED.keys()) expect(stdout).toMatch(new RegExp(`^${name} +(?:nodewise|a file) `, "m"));
    expect(await run(["schema", "alocatable"])).toMatchObject({
      code: 2,
      stderr: "nodewise: schema alocatable: no such schema; `nodewise schema` lists them\n",
    });
  });
});
