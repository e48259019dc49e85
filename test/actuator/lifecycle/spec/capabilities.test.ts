import { expect, test } from "vitest";
import { linesOf, readPod, withContainer } from "./sample.ts";

const asking = (capabilities: object) => withContainer({ securityContext: { capabilities } });
const AT = "spec.containers[0].securityContext.capabilities";

test("every Linux capability and ALL are accepted, in any case, and kept as written", () => {
  const add = ["NET_ADMIN", "sys_time", "CHECKPOINT_RESTORE", "all"];
  const { security } = readPod(asking({ add, drop: ["ALL"] })).spec.containers[0] ?? {};
  expect([security?.addCapabilities, security?.dropCapabilities]).toEqual([add, ["ALL"]]);
});

test.each<[object, string]>([
  [{ add: ["CHOWN", "NOT_A_CAP"] }, `${AT}.add[1]: Invalid value: "NOT_A_CAP": Linux has no such capability`],
  [{ drop: ["NET_ADMN"] }, `${AT}.drop[0]: Invalid value: "NET_ADMN": Linux has no such capability; \`NET_ADMIN\`?`],
  [
    { drop: ["CAP_NET_RAW"] },
    `${AT}.drop[0]: Invalid value: "CAP_NET_RAW": the runtime puts CAP_ before each name: write NET_RAW`,
  ],
  [{ add: [""] }, `${AT}.add[0]: Invalid value: "": Linux has no such capability`],
  [{ add: [3] }, `${AT}.add[0]: expected text, found \`3\` (in YAML it needs quotes)`],
])("the capabilities %j are refused by name", (capabilities, line) => {
  expect(linesOf(asking(capabilities))).toEqual([line]);
});
