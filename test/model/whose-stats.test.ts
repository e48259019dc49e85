import { expect, test } from "vitest";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { pod } from "../kit/pods.ts";

const stats = (nodeName: unknown, more: object = {}) => ({ node: { nodeName, ...more } });
const nodeNamed = (name?: string) => ({ metadata: name === undefined ? {} : { name } });
const podOn = (name: string, nodeName?: string) => pod(name, { spec: { nodeName } });
const said = (input: unknown, at?: string) => {
  const decoded = decodeSnapshot(input, at);
  return decoded.ok ? [] : decoded.error.map(({ path, message }) => `${path}: ${message}`);
};
const of = (its: string, name: string) =>
  `stats.node.nodeName: the stats are of node ${its}, the snapshot is of node ${name}: post the /stats/summary of ${name}'s kubelet`;

test.each([
  ["the node's", { node: nodeNamed("n1"), stats: stats("n2") }],
  ["that of all pods", { pods: [podOn("a", "n1"), podOn("b", "n1")], stats: stats("n2") }],
  ["that of all pods of a PodList", { pods: { kind: "PodList", items: [podOn("a", "n1")] }, stats: stats("n2") }],
  ["that of all pods, of a node without a name", { node: nodeNamed(), pods: [podOn("a", "n1")], stats: stats("n2") }],
  ["the node's, whatever its pods name", { node: nodeNamed("n1"), pods: [podOn("a", "n2")], stats: stats("n2") }],
])("stats with another node name than %s are refused", (_, input) => {
  expect(said(input)).toEqual([of("n2", "n1")]);
  expect(said(input, "snapshot")).toEqual([`snapshot.${of("n2", "n1")}`]);
});

test("stats of another node are reported beside other faults", () => {
  expect(said({ node: nodeNamed("n1"), pods: [podOn("a"), podOn("a")], stats: stats("n2") })).toEqual([
    expect.stringMatching(/^pods\[1\]/),
    of("n2", "n1"),
  ]);
});

test.each([
  ["its own", { node: nodeNamed("n1"), stats: stats("n1") }],
  ["nobody's", { node: nodeNamed("n1"), stats: stats(undefined) }],
  ["of no text", { node: nodeNamed("n1"), stats: stats(7) }],
  ["of null", { node: nodeNamed("n1"), stats: stats(null) }],
  ["of a machine without a name", { node: nodeNamed("n1"), stats: stats("") }],
  ["of no node that anybody names", { stats: stats("n2") }],
  ["beside no pods", { pods: [], stats: stats("n2") }],
  ["beside a PodList of none", { pods: { kind: "PodList", items: null }, stats: stats("n2") }],
  ["beside pods of several nodes", { pods: [podOn("a", "n1"), podOn("b", "n2")], stats: stats("n2") }],
  ["beside pods that are nowhere yet", { pods: [podOn("a"), podOn("b", "n1")], stats: stats("n2") }],
])("stats that are %s are accepted", (_, input) => {
  expect(said(input)).toEqual([]);
});

test("the node name in stats is not stored", () => {
  const memory = { availableBytes: 1, workingSetBytes: 2 };
  const with_ = decodeSnapshot({ node: nodeNamed("n1"), stats: stats("n1", { memory }) });
  const without = decodeSnapshot({ node: nodeNamed("n1"), stats: { node: { memory } } });
  expect(JSON.stringify(with_)).toBe(JSON.stringify(without));
  expect(JSON.stringify(with_)).not.toContain("nodeName");
});
