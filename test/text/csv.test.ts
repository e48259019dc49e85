import { expect, test } from "vitest";
import { csvText, decisionsCsv } from "../../api/text/csv.ts";

test("cells are quoted like in RFC 4180, and null is an empty cell", () => {
  const text = csvText(
    ["a", "b"],
    [
      ['say "hi"', "x,y"],
      ["two\nlines", null],
      [1.5, -2],
    ],
  );
  expect(text).toBe('a,b\r\n"say ""hi""","x,y"\r\n"two\nlines",\r\n1.5,-2\r\n');
});

test.each(["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "\tx", "\rx", "＝1", "\n@x"])(
  "the cell `%s` is escaped so that a spreadsheet does not run it as a formula",
  (cell) => {
    const [, line = ""] = csvText(["a"], [[cell]]).split(/(?<=^a)\r\n/);
    expect(line.replace(/^"/, "")[0]).toBe("'");
    expect(line).toContain(cell);
  },
);

test("ordinary text is not escaped", () => {
  expect(csvText(["a"], [["OutOfcpu"], ["a=b"], ["node-1"], [""]])).toBe("a\r\nOutOfcpu\r\na=b\r\nnode-1\r\n\r\n");
});

test("the outcome of an admission is admitted, with its reason if it preempts", () => {
  const head = { decidedAt: "t", node: "n", kind: "admission", policyVersion: "p", snapshotId: null, id: "1" };
  const pod = { namespace: "prod", name: "web", uid: "u" };
  const outcomes = decisionsCsv([
    { ...head, verdict: "decided", reason: null, pod },
    { ...head, verdict: "decided", reason: "Preempting", pod },
  ]);
  expect(outcomes.match(/[^,\r\n]*(?=\r\n)/g)?.filter((text) => text !== "")).toEqual([
    ...["outcome", "admitted", "admitted: Preempting"],
  ]);
  expect(outcomes.split("\r\n").map((line) => line.split(",")[3])).toEqual([
    "verdict",
    "admitted",
    "admitted",
    undefined,
  ]);
});

test("a decision is one row, also when fields of an older API are missing", () => {
  const decision = { decidedAt: "t", node: "=n", kind: "admission", verdict: "refused", pod: null, policyVersion: "p" };
  const pod = { namespace: "prod", name: "web", uid: "u" };
  const text = decisionsCsv([
    { ...decision, snapshotId: null, id: "1" },
    { ...decision, reason: "OutOfcpu", pod, snapshotId: "s", id: "2" },
  ]);
  expect(text.split("\r\n").slice(1)).toEqual([
    "t,'=n,admission,refused,,,,,p,,1,1,t,refused",
    "t,'=n,admission,refused,OutOfcpu,prod,web,u,p,s,2,1,t,refused: OutOfcpu",
    "",
  ]);
});
