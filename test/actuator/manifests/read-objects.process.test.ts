import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { type ReadObjectsOptions, readObjects } from "../../../actuator/daemon/configuration-file.ts";
import { problemText } from "../../../api/documents/problem.ts";
import { podYaml } from "../../kit/manifests.ts";
import { scratch } from "./scratch.ts";

async function outcome(path: string, options: ReadObjectsOptions = {}): Promise<unknown> {
  const read = await readObjects(path, options);
  return read.ok ? read.value.map((d) => d.value) : problemText(read.error);
}

test("each document of a file is returned as a plain value", async () => {
  const directory = scratch({ "two.yaml": "a: 1\n---\nb: [2]\n", "one.json": '\uFEFF{"kind": "Node"}' });
  expect(await outcome(join(directory, "two.yaml"))).toEqual([{ a: 1 }, { b: [2] }]);
  expect(await outcome(join(directory, "one.json"))).toEqual([{ kind: "Node" }]);
});

test("`-` reads standard input, also with a character split between two chunks", async () => {
  const bytes = Buffer.from("name: grün\n");
  const stdin = Readable.from([bytes.subarray(0, 9), bytes.subarray(9)]);
  expect(await outcome("-", { stdin })).toEqual([{ name: "grün" }]);
});

test("a real pipe is read to its end", () => {
  const module = join(import.meta.dirname, "../../../actuator/daemon/configuration-file.ts");
  const program = `const { readObjects } = await import(${JSON.stringify(module)}); console.log(JSON.stringify(await readObjects("-")));`;
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
    input: podYaml("p"),
    encoding: "utf8",
  });
  expect(JSON.parse(stdout)).toMatchObject({
    ok: true,
    value: [{ file: "standard input", value: { metadata: { name: "p" } } }],
  });
});

test("a fault names file, line and column, and what to do", async () => {
  const directory = scratch({
    "bad.json": '{\n  "a": 1\n  "b": 2\n}',
    "empty.yaml": "# nothing\n",
    "second.yaml": "a: 1\n---\nb: ]\n",
    binary: Uint8Array.of(0xc3, 0x28),
  });
  const at = (name: string) => join(directory, name);
  expect(await outcome(at("bad.json"))).toBe(
    `${at("bad.json")}:3:3: is not JSON: expected \`,\` or \`}\`, found \`"\``,
  );
  expect(await outcome(at("second.yaml"))).toMatch(
    new RegExp(`^${at("second.yaml")}:3:4: document 2: is not YAML or JSON: `),
  );
  expect(await outcome(at("empty.yaml"))).toBe(`${at("empty.yaml")}: holds no object: expected JSON or YAML`);
  expect(await outcome(at("binary"))).toBe(`${at("binary")}: is not UTF-8 text: expected YAML or JSON`);
  expect(await outcome(at("none.yaml"))).toBe(`${at("none.yaml")}: no such file: check the path`);
  expect(await outcome(directory)).toBe(`${directory}: is a directory: name a file in it`);
});

test("a text of the maximum size is read, and one with a byte more is refused", async () => {
  const file = join(scratch({ "a.yaml": "a: 12345\n" }), "a.yaml");
  expect(await outcome(file, { maxBytes: 9 })).toEqual([{ a: 12345 }]);
  expect(await outcome(file, { maxBytes: 8 })).toBe(`${file}: is larger than 8 bytes: split it`);
  expect(await outcome("-", { maxBytes: 4, stdin: Readable.from([Buffer.from("a: 1"), Buffer.from("2")]) })).toBe(
    "standard input: is larger than 4 bytes: split it",
  );
});
