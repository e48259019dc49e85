import { join } from "node:path";
import { expect, test } from "vitest";
import { readConfiguration } from "../../actuator/daemon/configuration-file.ts";
import { kubeletConfiguration } from "../../api/model/kubelet-configuration.ts";
import { NEWEST } from "../../api/profiles/index.ts";
import { scratch } from "./manifests/scratch.ts";

async function read(text: string) {
  const file = join(scratch({ "kubelet.yaml": text }), "kubelet.yaml");
  const notices: string[] = [];
  const result = await readConfiguration(file, NEWEST, (now) => notices.push(...now.map(({ message }) => message)));
  return { file, result, notices };
}
const HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

test("an unknown field is reported with its place and the closest name, and left out", async () => {
  const { file, result, notices } = await read(`${HEAD}cpuManagerPolicyy: static\nmaxPods: 5\nwhatever: {}\n`);
  const tail = "left out, as the kubelet's lenient decoding does";
  expect(notices).toEqual([
    `${file}:3:20: strict decoding error: unknown field "cpuManagerPolicyy" (cpuManagerPolicy?): ${tail}`,
    `${file}:5:11: strict decoding error: unknown field "whatever": ${tail}`,
  ]);
  expect(result).toMatchObject({ ok: true, value: { maxPods: 5 } });
});

test.each([
  ["memorySwap:\n  swapBehaviour: LimitedSwap\n", ":4:18: ", 'memorySwap.swapBehaviour" (swapBehavior?)'],
  ["authentication: {webhook: {enable: true}}\n", ":3:36: ", 'authentication.webhook.enable" (enabled?)'],
  [
    "reservedMemory:\n- numaNode: 0\n- {numaNode: 1, limit: {memory: 1Gi}}\n",
    ":5:24: ",
    'reservedMemory[1].limit" (limits?)',
  ],
  [
    "logging: {options: {json: {splitStreams: true}}}\n",
    ":3:42: ",
    'logging.options.json.splitStreams" (splitStream?)',
  ],
])("an unknown nested field is reported with its place and the closest name: %j", async (text, place, message) => {
  const { file, result, notices } = await read(HEAD + text);
  expect(notices).toHaveLength(1);
  expect(notices[0]?.startsWith(`${file}${place}strict decoding error: unknown field "${message}`), notices[0]).toBe(
    true,
  );
  expect(result.ok).toBe(true);
});

test("free keys of maps and valid fields are not reported", async () => {
  const maps = "evictionHard: {memory.available: 1Gi}\nfeatureGates: {NoneOfOurs: true}\nsystemReserved: {cpu: 1}\n";
  const right =
    "registerWithTaints: [{key: a, effect: NoSchedule}]\ntracing: null\nlogging: {vmodule: [{verbosity: 5}]}\n";
  expect((await read(HEAD + maps + right)).notices).toEqual([]);
});

test("unknown fields in the output of a kubelet's configz are not reported", async () => {
  expect((await read('{"kubeletconfig": {"ofAnother": 1}}')).notices).toEqual([]);
});

test.each([
  [`${HEAD}maxPods: [1\n`, /kubelet\.yaml:\d+:\d+: /],
  [`${HEAD}maxPods: 1\nmaxPods: 2\n`, /kubelet\.yaml:4:1: /],
])("a YAML fault is reported with line and column: %j", async (text, pattern) => {
  const { result } = await read(text);
  expect(result).toEqual({ ok: false, error: { from: "configuration", message: expect.stringMatching(pattern) } });
});

test.each([
  [`${HEAD}maxPods: five\n`, ":3:10: maxPods: ", "expected number"],
  [`${HEAD}evictionHard:\n  memory.available: [1]\n`, ":4:21: evictionHard", "expected text"],
  ['{"kubeletconfig": {"maxPods": "five"}}', ":1:31: maxPods: ", "expected number"],
])("a field of another type is reported with its place: %j", async (text, place, fault) => {
  const { file, result } = await read(text);
  expect(result).toMatchObject({ ok: false, error: { from: "configuration" } });
  const message = result.ok ? "" : result.error.message;
  expect(message.startsWith(`${file}${place}`), message).toBe(true);
  expect(message).toContain(fault);
});

test("fieldNames of a profile contain each field that decisions read, once", async () => {
  const { fieldNames } = NEWEST;
  const top = fieldNames.get("") ?? [];
  expect(new Set(top).size).toBe(top.length);
  const readByDecisions = Object.keys(kubeletConfiguration.out.shape);
  expect(top).toEqual(expect.arrayContaining(readByDecisions));
  const shape = kubeletConfiguration.out.shape;
  for (const [path, inner] of [
    ["memorySwap", shape.memorySwap.unwrap().shape],
    ["reservedMemory", shape.reservedMemory.unwrap().element.shape],
  ] as const)
    expect(fieldNames.get(path), path).toEqual(expect.arrayContaining(Object.keys(inner)));
  for (const path of fieldNames.keys()) {
    if (path === "") continue;
    const [name = "", above = ""] = [path.split(".").at(-1), path.split(".").slice(0, -1).join(".")];
    expect(fieldNames.get(above), path).toContain(name);
  }
});
