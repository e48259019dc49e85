import { describe, expect, test } from "vitest";
import { configurationSet } from "../../api/documents/configuration-set.ts";
import { NEWEST, PROFILES } from "../../api/profiles/index.ts";
import { v1_36 } from "../../api/profiles/v1_36.ts";
import { v1_37 } from "../../api/profiles/v1_37.ts";

const patchOf = (text: string): unknown => {
  const set = configurationSet(text, NEWEST);
  if (!set.ok) throw new Error(set.error);
  return set.value.patch;
};
const faultOf = (text: string, profile = NEWEST): string => {
  const set = configurationSet(text, profile);
  if (set.ok) throw new Error(`taken: ${JSON.stringify(set.value)}`);
  return set.error;
};

describe("paths of --set", () => {
  test.each([
    'evictionHard["memory.available"]=1Gi',
    "evictionHard['memory.available']=1Gi",
    "evictionHard[memory.available]=1Gi",
    "evictionHard.memory\\.available=1Gi",
    "evictionHard.memory.available=1Gi",
  ])("a key with a dot is written as %s", (text) => {
    expect(configurationSet(text, NEWEST)).toEqual({
      ok: true,
      value: { path: 'evictionHard["memory.available"]', patch: { evictionHard: { "memory.available": "1Gi" } } },
    });
  });
  test("the value is everything after the first `=`", () => {
    expect(patchOf("cgroupRoot=a=b")).toEqual({ cgroupRoot: "a=b" });
    expect(patchOf('staticPodURLHeader["a=b"]=[x]')).toEqual({ staticPodURLHeader: { "a=b": ["x"] } });
  });
  test.each([
    "",
    "maxPods",
    "=1",
    ".maxPods=1",
    "kubeReserved..cpu=1",
    "kubeReserved.=1",
    "kubeReserved[=1",
    "kubeReserved[]=1",
    "[maxPods",
    "a b",
  ])("%j is refused as no PATH=VALUE", (text) => {
    expect(faultOf(text)).toBe("expected PATH=VALUE, such as kubeReserved.cpu=500m");
  });
  test("an unknown field is refused with a similar name, at every depth", () => {
    expect(faultOf("kubeReserve.cpu=1")).toBe("the kubelet knows no field kubeReserve; did you mean kubeReserved?");
    expect(faultOf("memorySwap.swapBehaviour=NoSwap")).toBe(
      "the kubelet knows no field memorySwap.swapBehaviour; did you mean memorySwap.swapBehavior?",
    );
    expect(faultOf("somethingElse=1")).toBe("the kubelet knows no field somethingElse");
    expect(faultOf("__proto__.x=1")).toBe("the kubelet knows no field __proto__");
    expect(faultOf("maxPods.x=1")).toBe("maxPods has no fields of its own: give maxPods=VALUE");
    expect(faultOf("kubeReserved.__proto__=1")).toBe(
      "kubeReserved.__proto__: is no name that a field or an entry can have",
    );
  });
  test("the known fields are those of the kubelet's version", () => {
    const [added = ""] = [...v1_37.fields.keys()].filter((path) => !v1_36.fields.has(path) && !path.includes("."));
    expect(added).not.toBe("");
    expect(faultOf(`${added}=null`, v1_36)).toContain(`the kubelet knows no field ${added}`);
    expect(configurationSet(`${added}=null`, v1_37).ok).toBe(true);
  });
});

describe("values of --set are parsed by the field's type", () => {
  test.each<[text: string, patch: object]>([
    ["kubeReserved.cpu=2", { kubeReserved: { cpu: "2" } }],
    ["maxPods=50", { maxPods: 50 }],
    ["podPidsLimit=-1", { podPidsLimit: -1 }],
    ["memoryThrottlingFactor=0.8", { memoryThrottlingFactor: 0.8 }],
    ["failSwapOn=false", { failSwapOn: false }],
    ["featureGates.MemoryQoS=true", { featureGates: { MemoryQoS: true } }],
    ["cpuCFSQuotaPeriod=10ms", { cpuCFSQuotaPeriod: "10ms" }],
    ["logging.verbosity=4", { logging: { verbosity: 4 } }],
    ["logging.flushFrequency=5s", { logging: { flushFrequency: "5s" } }],
    ["logging.flushFrequency=5000000000", { logging: { flushFrequency: 5_000_000_000 } }],
    ["enforceNodeAllocatable=pods,kube-reserved", { enforceNodeAllocatable: ["pods", "kube-reserved"] }],
    ["enforceNodeAllocatable={pods, kube-reserved}", { enforceNodeAllocatable: ["pods", "kube-reserved"] }],
    ['enforceNodeAllocatable=["pods"]', { enforceNodeAllocatable: ["pods"] }],
    ["enforceNodeAllocatable=", { enforceNodeAllocatable: [] }],
    ["reservedSystemCPUs=", { reservedSystemCPUs: "" }],
    [
      "reservedMemory=[{numaNode: 0, limits: {memory: 1Gi}}]",
      { reservedMemory: [{ numaNode: 0, limits: { memory: "1Gi" } }] },
    ],
    ["kubeReserved=null", { kubeReserved: null }],
    ["kubeReserved.cpu=null", { kubeReserved: { cpu: null } }],
    ["maxPods=null", { maxPods: null }],
  ])("%s is parsed", (text, patch) => {
    expect(patchOf(text)).toEqual(patch);
  });
  test.each([
    ["maxPods=many", "maxPods: expected a whole number, found `many`, or null, which takes the field away"],
    ["maxPods=1.5", "maxPods: expected a whole number, found `1.5`, or null, which takes the field away"],
    ["maxPods=", "maxPods: expected a whole number, found ``, or null, which takes the field away"],
    ["failSwapOn=yes", "failSwapOn: expected true or false, found `yes`, or null, which takes the field away"],
    [
      "memoryThrottlingFactor=x",
      "memoryThrottlingFactor: expected a number, found `x`, or null, which takes the field away",
    ],
    [
      "kubeReserved=cpu=1",
      "kubeReserved: is an object: set one of its fields (--patch sets several), or null, which takes the field away",
    ],
    [
      "memorySwap={}",
      "memorySwap: is an object: set one of its fields (--patch sets several), or null, which takes the field away",
    ],
    [
      "enforceNodeAllocatable=[1]",
      "enforceNodeAllocatable: expected texts such as [a, b], found `[1]`, or null, which takes the field away",
    ],
    [
      "reservedMemory=1Gi",
      "reservedMemory: expected a list in JSON or YAML, such as [{name: value}], found `1Gi`, or null, which takes the field away",
    ],
    ["reservedMemory[0].numaNode=1", "reservedMemory is a list, which is set as a whole: reservedMemory=[...]"],
  ])("%s is refused", (text, message) => {
    expect(faultOf(text)).toBe(message);
  });
});

test("every field of every version can be set to null, and a misspelt path is unknown", () => {
  for (const profile of PROFILES) {
    const lists = [...profile.fields].flatMap(([path, type]) => (type.startsWith("[]") ? [path] : []));
    for (const path of profile.fields.keys()) {
      if (lists.some((list) => path.startsWith(`${list}.`))) continue;
      const set = configurationSet(`${path}=null`, profile);
      expect(set, path).toMatchObject({ ok: true, value: { path } });
      const odd = path.replace(/.$/, "_");
      const isKey = [...profile.fields].some(([map, type]) => type.startsWith("map[") && path.startsWith(`${map}.`));
      if (!isKey) expect(configurationSet(`${odd}=null`, profile).ok, odd).toBe(false);
    }
  }
});
