import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type LastGood, type Manifests, readManifests } from "../../../actuator/manifests/read-manifests.ts";
import { podYaml } from "../../kit/manifests.ts";
import { scratch } from "./scratch.ts";

describe("a manifest file without any object", () => {
  const EMPTY = [
    ["no byte", ""],
    ["blank lines", "\n \n"],
    ["a comment", "# soon\n"],
    ["empty documents", "---\n---\n"],
    ["a byte order mark", "\ufeff"],
  ] as const;
  const MESSAGE = "holds no object: expected JSON or YAML; to end its pods remove the file";
  const namesOf = ({ pods }: Manifests) => pods.map((p) => p.metadata.name);

  test.each(EMPTY)("(%s) is a fault when read first, and its neighbours are read", async (_, text) => {
    const directory = scratch({ "a.yaml": text, "b.yaml": podYaml("b") });
    const read = await readManifests(directory, "n1");
    const problem = { code: "malformed", file: join(directory, "a.yaml"), message: MESSAGE };
    expect([namesOf(read), read.problems, read.kept]).toEqual([["b-n1"], [problem], []]);
  });
  test.each(EMPTY)("(%s) is a fault when it is the only file", async (_, text) => {
    const file = join(scratch({ "a.yaml": text }), "a.yaml");
    const { pods, problems } = await readManifests(file, "n1");
    expect([pods, problems]).toEqual([[], [{ code: "malformed", file, message: MESSAGE }]]);
  });
  test.each(EMPTY)("(%s) keeps the pods it had before, and is reported until it is corrected", async (_, text) => {
    const directory = scratch({ "a.yaml": podYaml("a"), "b.yaml": podYaml("b") });
    const file = join(directory, "a.yaml");
    const lastGood: LastGood = new Map();
    await readManifests(directory, "n1", lastGood);
    writeFileSync(file, text);
    for (let i = 0; i < 2; i++) {
      const read = await readManifests(directory, "n1", lastGood);
      expect(namesOf(read)).toEqual(["a-n1", "b-n1"]);
      expect([read.kept, read.problems]).toEqual([[file], [{ code: "malformed", file, message: MESSAGE }]]);
    }
    writeFileSync(file, podYaml("c"));
    const mended = await readManifests(directory, "n1", lastGood);
    expect([namesOf(mended), mended.kept, mended.problems]).toEqual([["c-n1", "b-n1"], [], []]);
  });
  test("differs from one with an empty list, which removes its pods", async () => {
    const directory = scratch({ "a.yaml": podYaml("a") });
    const lastGood: LastGood = new Map();
    await readManifests(directory, "n1", lastGood);
    writeFileSync(join(directory, "a.yaml"), "apiVersion: v1\nkind: PodList\nitems: []\n");
    const read = await readManifests(directory, "n1", lastGood);
    expect([namesOf(read), read.kept, read.problems]).toEqual([[], [], []]);
  });
});
