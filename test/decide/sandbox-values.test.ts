import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { containerResources } from "../../actuator/lifecycle/config/container-config.ts";
import { configurationOf } from "../../actuator/pass/snapshot.ts";
import { sandboxValues } from "../../api/decide/cgroups/container-config.ts";
import { pod as podForm } from "../../api/model/pod.ts";
import { profileOf } from "../../api/profiles/index.ts";
import { RECORDED } from "../kit/recorded.ts";

/** The cases of test/data/sandbox, with the answers of each version's function. */
interface Case {
  readonly name: string;
  readonly cgroupVersion: 1 | 2;
  readonly configuration: object;
  readonly pod: object;
}
type Answers = Readonly<Record<string, { readonly resources: object; readonly overhead: object }>>;
const read = (name: string): unknown => JSON.parse(readFileSync(`test/data/sandbox/${name}.json`, "utf8"));
const cases = read("cases") as readonly Case[];

function reported({ cgroupVersion: version, configuration, pod }: Case, kubelet: string, exclusiveCpus = false) {
  const config = configurationOf(configuration, profileOf(kubelet));
  const values = sandboxValues(podForm.parse(pod), config, { version, exclusiveCpus });
  const [resources, overhead] = [values.resources, values.overhead].map((one) => containerResources(one, version));
  return { resources, overhead };
}
/** The field names of CRI, as the daemon writes them. */
const NAMES = {
  cpuPeriod: "cpu_period",
  cpuQuota: "cpu_quota",
  cpuShares: "cpu_shares",
  memoryLimitInBytes: "memory_limit_in_bytes",
  unified: "unified",
} as const;
const asCri = (resources: object = {}): object =>
  Object.fromEntries(Object.entries(resources).map(([name, value]) => [NAMES[name as keyof typeof NAMES], value]));

describe.each(RECORDED.map(({ release }) => release))(
  "the resources that kubelet %s sends to the runtime for a sandbox",
  (kubelet) => {
    const answers = read(`kubelet-${kubelet}`) as Answers;
    test.each(cases.filter(({ name }) => name in answers))("$name", (one) => {
      const { resources, overhead } = reported(one, kubelet);
      expect({ resources: asCri(resources), overhead: asCri(overhead) }).toEqual(answers[one.name]);
    });
  },
);

test("resource claims count in a sandbox's CPU shares from 1.37 on", () => {
  const one = cases.find(({ name }) => name === "claims") as Case;
  const [older, newest] = ["1.36", "1.37"].map((kubelet) => reported(one, kubelet).resources);
  expect([older, newest]).toMatchObject([{ cpuShares: 256 }, { cpuShares: 768 }]);
});

test("a sandbox of a pod with exclusive CPUs has no CPU quota, but its overhead has one", () => {
  const one = cases.find(({ name }) => name === "overhead") as Case;
  expect(reported(one, "1.37", true)).toMatchObject({ resources: { cpuQuota: -1 }, overhead: { cpuQuota: 12_000 } });
  const off = cases.find(({ name }) => name === "no quotas") as Case;
  expect(reported(off, "1.37", true).resources).not.toHaveProperty("cpuQuota");
});
