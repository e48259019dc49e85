import { join } from "node:path";
import { expect, test } from "vitest";
import { readConfiguration } from "../../actuator/configuration-file.ts";
import { KUBELET_CONFIGURATION_FIELDS } from "../../actuator/kubelet-configuration-fields.ts";
import { kubeletConfiguration } from "../../api/model/kubelet-configuration.ts";
import { scratch } from "./manifests/scratch.ts";

async function read(text: string) {
  const file = join(scratch({ "kubelet.yaml": text }), "kubelet.yaml");
  const notices: string[] = [];
  const result = await readConfiguration(file, (now) => notices.push(...now.map(({ message }) => message)));
  return { file, result, notices };
}
const HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

test("an unknown field is told with its place and the name that was meant, and left out", async () => {
  const { file, result, notices } = await read(`${HEAD}cpuManagerPolicyy: static\nmaxPods: 5\nwhatever: {}\n`);
  const tail = "left out, as the kubelet's lenient decoding does";
  expect(notices).toEqual([
    `${file}:3:20: strict decoding error: unknown field "cpuManagerPolicyy" (cpuManagerPolicy?): ${tail}`,
    `${file}:5:11: strict decoding error: unknown field "whatever": ${tail}`,
  ]);
  expect(result).toMatchObject({ ok: true, value: { maxPods: 5 } });
});

test("what a kubelet tells of its own configuration has the fields of its version", async () => {
  expect((await read('{"kubeletconfig": {"ofAnother": 1}}')).notices).toEqual([]);
});

test.each([
  [`${HEAD}maxPods: [1\n`, /kubelet\.yaml:\d+:\d+: /],
  [`${HEAD}maxPods: 1\nmaxPods: 2\n`, /kubelet\.yaml:4:1: /],
])("a fault of YAML is told with its line and column: %j", async (text, told) => {
  const { result } = await read(text);
  expect(result).toEqual({ ok: false, error: { from: "configuration", message: expect.stringMatching(told) } });
});

test.each([
  [`${HEAD}maxPods: five\n`, ":3:10: maxPods: ", "expected number"],
  [`${HEAD}evictionHard:\n  memory.available: [1]\n`, ":4:21: evictionHard", "expected text"],
  ['{"kubeletconfig": {"maxPods": "five"}}', ":1:31: maxPods: ", "expected number"],
])("a field of another type is told with its place: %j", async (text, place, fault) => {
  const { file, result } = await read(text);
  expect(result).toMatchObject({ ok: false, error: { from: "configuration" } });
  const message = result.ok ? "" : result.error.message;
  expect(message.startsWith(`${file}${place}`), message).toBe(true);
  expect(message).toContain(fault);
});

test("the fields of the kubelet hold all that a decision reads, each once", async () => {
  expect(new Set(KUBELET_CONFIGURATION_FIELDS).size).toBe(KUBELET_CONFIGURATION_FIELDS.length);
  const readByDecisions = Object.keys(kubeletConfiguration.out.shape);
  expect(KUBELET_CONFIGURATION_FIELDS).toEqual(expect.arrayContaining(readByDecisions));
});
