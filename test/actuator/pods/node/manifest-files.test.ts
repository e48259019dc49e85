import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { actuatorConfig } from "../../../../actuator/core/config.ts";
import { podsSource } from "../../../../actuator/manifests/pods-source.ts";
import { podYaml } from "../../../kit/manifests.ts";
import { scratch } from "../../manifests/scratch.ts";
import { SIM_SETTINGS } from "./settings.ts";
import { SimulatedPodsNode } from "./simulated-node.ts";

const NODE = SIM_SETTINGS.nodeName;
const yaml = (name: string, more = "") =>
  podYaml(name, `    imagePullPolicy: Never\n${more}`).replace("busybox", "busybox:1");
const edited = (name: string) => yaml(name, "    env: [{name: WORD, value: '2'}]\n");

/** The pod manager over a real directory of manifests. */
class ManifestsWorld {
  readonly directory;
  readonly world;
  #read;
  constructor(files: Readonly<Record<string, string>>) {
    this.directory = scratch(files);
    this.#read = this.#source();
    this.world = new SimulatedPodsNode({ readPods: (inForce) => this.#read(inForce) });
  }
  put(file: string, text: string): void {
    writeFileSync(join(this.directory, file), text);
  }
  remove(...files: readonly string[]): void {
    for (const file of files) rmSync(join(this.directory, file));
  }
  restart(): void {
    this.#read = this.#source();
    this.world.restart();
  }
  /** `NAME STATE` of each pod, by name. */
  pods(): readonly string[] {
    const all = [...this.world.manager.set.all()];
    return all.map(({ pod, record }) => `${pod.name} ${record.state}`).sort();
  }
  uidOf(name: string): string | undefined {
    return [...this.world.manager.set.all()].find(({ pod }) => pod.name === `${name}-${NODE}`)?.uid;
  }
  problems(): readonly string[] {
    const { problems = [], notices = [] } = this.world.last ?? {};
    return [...problems, ...notices].map(({ message }) => message.replaceAll(`${this.directory}/`, ""));
  }
  /** Removes the file from the record, as in records of older daemons. */
  forgetFile(name: string): void {
    const file = join(this.world.dir, "state/pods", `${this.uidOf(name)}.pod.json`);
    const { uid, record } = JSON.parse(readFileSync(file, "utf8"));
    expect(record.file).toContain(`${name}.yaml`);
    writeFileSync(file, JSON.stringify({ uid, record: { ...record, file: undefined } }));
  }
  #source() {
    const config = actuatorConfig({ manifests: this.directory, nodeName: NODE, stateDir: "unused" });
    if (!config.ok) throw new Error(config.error);
    return podsSource(config.value);
  }
}
const THREE = { "gone.yaml": yaml("gone"), "edited.yaml": yaml("edited"), "stays.yaml": yaml("stays") };
const active = (...names: readonly string[]) => names.map((name) => `${name}-${NODE} active`);
const HELD = /^not ended/;

for (const isRestarted of [false, true])
  test(`a broken file that was never read does not hold back other files' pods${isRestarted ? ", nor after a restart" : ""}`, async () => {
    const node = new ManifestsWorld(THREE);
    await node.world.run(5);
    expect(node.pods()).toEqual(active("edited", "gone", "stays"));
    const before = [node.uidOf("edited"), node.uidOf("stays")];
    node.put("half.yaml", "kind: [");
    node.remove("gone.yaml");
    node.put("edited.yaml", edited("edited"));
    if (isRestarted) node.restart();
    await node.world.run(60);
    expect(node.pods()).toEqual(active("edited", "stays"));
    expect([node.uidOf("edited") === before[0], node.uidOf("stays")]).toEqual([false, before[1]]);
    expect(node.problems().filter((one) => HELD.test(one))).toEqual([]);
  });

test("a pod of a file that is now broken, or of an unknown file, stays as it was, with a notice", async () => {
  const node = new ManifestsWorld({ ...THREE, "old.yaml": yaml("old") });
  await node.world.run(5);
  node.forgetFile("old");
  node.put("gone.yaml", "kind: [");
  node.remove("stays.yaml", "old.yaml");
  node.restart();
  await node.world.run(60);
  expect(node.pods()).toEqual(active("edited", "gone", "old"));
  const held = node.problems().filter((one) => HELD.test(one));
  expect(held).toHaveLength(1);
  expect(held[0]).toMatch(/since gone\.yaml cannot be read and may name them: /);
  for (const name of ["gone", "old"]) expect(held[0]).toContain(`default/${name}-${NODE}`);
  node.remove("gone.yaml");
  await node.world.run(60);
  expect(node.pods()).toEqual(active("edited"));
});

test.each([
  ["no byte", ""],
  ["a comment", "# soon\n"],
  ["an empty document", "---\n"],
])("a manifest emptied to %s keeps its pod over restarts with a notice, until the file is removed", async (_, text) => {
  const node = new ManifestsWorld({ "db.yaml": yaml("db"), "web.yaml": yaml("web") });
  await node.world.run(5);
  const before = [node.uidOf("db"), node.world.idOf(node.uidOf("db") ?? "", "c")];
  expect(before[1]).not.toBe("none");
  node.put("db.yaml", text);
  for (let i = 0; i < 2; i++) {
    node.restart();
    await node.world.run(60);
    expect(node.pods()).toEqual(active("db", "web"));
    expect([node.uidOf("db"), node.world.idOf(node.uidOf("db") ?? "", "c")]).toEqual(before);
    expect(node.problems()).toContain(
      "db.yaml: holds no object: expected JSON or YAML; to end its pods remove the file",
    );
    expect(node.problems()).toContain(`not ended, since db.yaml cannot be read and may name them: default/db-${NODE}`);
  }
  // the unreadable file does not keep pods of other files
  node.remove("web.yaml");
  await node.world.run(60);
  expect(node.pods()).toEqual(active("db"));
  node.remove("db.yaml");
  await node.world.run(60);
  expect(node.pods()).toEqual([]);
});

test("a second manifest of a running pod changes nothing, nor does its removal or a restart", async () => {
  const node = new ManifestsWorld({ "m.yaml": yaml("twin") });
  await node.world.run(5);
  const uid = node.uidOf("twin");
  for (const [other, file] of [
    [edited("twin"), "z.yaml"],
    [edited("twin"), "a.yaml"],
  ] as const) {
    node.put(file, other);
    await node.world.run(5);
    expect([node.pods(), node.uidOf("twin")]).toEqual([active("twin"), uid]);
    expect(node.problems().join("\n")).toContain(
      `${file}:1:1: pod default/twin-${NODE} is also in m.yaml, which counts: rename one`,
    );
  }
  node.restart();
  await node.world.run(5);
  node.remove("z.yaml");
  await node.world.run(60);
  expect([node.pods(), node.uidOf("twin")]).toEqual([active("twin"), uid]);
  // the next version of the same file replaces the pod
  node.put("m.yaml", yaml("twin", "    env: [{name: WORD, value: '3'}]\n"));
  await node.world.run(60);
  expect(node.pods()).toEqual(active("twin"));
  expect(node.world.manager.set.inForce().get(`default/twin-${NODE}`)?.file).toBe(join(node.directory, "m.yaml"));
  expect(node.uidOf("twin")).not.toBe(uid);
});

test("while the manifest in force cannot be read its pod goes on, and a copy in another file waits", async () => {
  const node = new ManifestsWorld({ "m.yaml": yaml("twin") });
  await node.world.run(5);
  const uid = node.uidOf("twin");
  node.put("m.yaml", "kind: [");
  node.put("a.yaml", edited("twin"));
  node.restart();
  await node.world.run(60);
  expect(node.pods()).toEqual([...active("twin"), `twin-${NODE} pending`]);
  node.put("m.yaml", yaml("twin"));
  await node.world.run(60);
  expect([node.pods(), node.uidOf("twin")]).toEqual([active("twin"), uid]);
});

test("a refused manifest is reported with its place, and one for another node with both node names", async () => {
  const node = new ManifestsWorld({
    "unk.yaml": `${yaml("unk")}  terminatonGracePeriodSeconds: 5\n`,
    "far.yaml": `${yaml("far")}  nodeName: elsewhere\n`,
    "near.yaml": `${yaml("near")}  nodeName: ${NODE}\n`,
  });
  await node.world.run(5);
  expect(node.pods()).toEqual(active("near"));
  expect(node.world.last?.refused).toEqual([
    {
      pod: `default/far-${NODE}`,
      file: join(node.directory, "far.yaml"),
      faults: [
        {
          path: "spec.nodeName",
          message: `this node is \`${NODE}\`, not \`elsewhere\`: remove it`,
          line: 10,
          column: 13,
        },
      ],
    },
    {
      pod: `default/unk-${NODE}`,
      file: join(node.directory, "unk.yaml"),
      faults: [
        {
          path: "spec.terminatonGracePeriodSeconds",
          message: "no such field; `terminationGracePeriodSeconds`?",
          line: 10,
          column: 33,
        },
      ],
    },
  ]);
});

test("the second of two hostNetwork pods with the same port is refused", async () => {
  const port = (name: string) => `${yaml(name, "    ports: [{containerPort: 8080}]\n")}  hostNetwork: true\n`;
  const node = new ManifestsWorld({ "a.yaml": port("a") });
  await node.world.run(5);
  node.put("b.yaml", port("b"));
  await node.world.run(5);
  expect(node.pods()).toEqual([...active("a"), `b-${NODE} pending`]);
  const { reason, message } = node.world.pod(node.uidOf("b") ?? "").record.refusal ?? {};
  expect(reason).toBe("NodePorts");
  expect(message).toContain(`; default/a-${NODE} has TCP port 8080 of 0.0.0.0`);
});
